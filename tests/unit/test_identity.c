/* test_identity.c - is it the file that was seen, and did it stay as it was? */
#include "unit.h"
#include "limeidentity.h"

static const struct limefile_identity seen = {.dev = 1,
                                              .ino = 2,
                                              .uid = 3,
                                              .mode = S_IFREG | 0640,
                                              .size = 5,
                                              .mtime = {6, 60},
                                              .ctime = {7, 70}};

static void of_a_file(void **unused)
{
    struct stat st;
    (void)unused;
    assert_int_equal(stat("/", &st), 0);
    struct limefile_identity root = limefile_identity_of(&st);
    assert_true(root.dev == st.st_dev && root.ino == st.st_ino && root.uid == st.st_uid);
    assert_true(root.mode == st.st_mode && root.size == st.st_size);
    assert_true(limefile_time_equal(&root.mtime, &st.st_mtim));
    assert_true(limefile_time_equal(&root.ctime, &st.st_ctim));
}

static void differences(void **unused)
{
    struct limefile_identity others[9];
    static const unsigned differs[] = {LIMEFILE_DEV,   LIMEFILE_INO,   LIMEFILE_UID,
                                       LIMEFILE_MODE,  LIMEFILE_SIZE,  LIMEFILE_MTIME,
                                       LIMEFILE_MTIME, LIMEFILE_CTIME, LIMEFILE_CTIME};
    (void)unused;
    for (size_t i = 0; i < COUNT(others); i++)
        others[i] = seen;
    others[0].dev = others[1].ino = others[2].uid = others[3].mode = 9;
    others[4].size = others[5].mtime.tv_sec = others[6].mtime.tv_nsec = 9;
    others[7].ctime.tv_sec = others[8].ctime.tv_nsec = 9;
    assert_int_equal(limefile_identity_differences(&seen, &seen), 0);
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(limefile_identity_differences(&seen, &others[i]), differs[i]);
        assert_int_equal(limefile_identity_same_file(&seen, &others[i]), i >= 2);
        assert_int_equal(limefile_identity_same_data(&seen, &others[i]),
                         i == 2 || i == 3 || i >= 7);
        assert_int_equal(limefile_identity_equal(&seen, &others[i]), i == 2 || i == 3);
    }
}

static void racy(void **unused)
{
    static const struct {
        struct timespec time, seen;
        bool racy;
    } rows[] = {
        {{100, 5}, {100, 6}, true},         {{100, 5}, {100, 20000004}, true},
        {{100, 5}, {100, 20000005}, false}, {{100, 0}, {101, 0}, true},
        {{100, 0}, {101, 20000000}, false}, {{100, 5}, {99, 0}, true},
        {{100, 5}, {0, 0}, true},           {{0, 0}, {100, 0}, false},
    };
    (void)unused;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(limefile_time_is_racy(&rows[i].time, &rows[i].seen), rows[i].racy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_file),
        cmocka_unit_test(differences),
        cmocka_unit_test(racy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
