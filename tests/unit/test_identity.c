/* test_identity.c - is it the same file, and is it unchanged? */
#include "unit.h"
#include "limeidentity.h"

static const struct limefile_identity seen = {.dev = 1,
                                              .ino = 2,
                                              .uid = 3,
                                              .mode = S_IFREG | 0640,
                                              .size = 5,
                                              .mtime = {6, 60},
                                              .ctime = {7, 70}};

TEST(of_a_file)
{
    struct stat st;
    assert_int_equal(stat("/", &st), 0);
    struct limefile_identity root = limefile_identify(&st);
    assert_true(root.dev == st.st_dev && root.ino == st.st_ino && root.uid == st.st_uid);
    assert_true(root.mode == st.st_mode && root.size == st.st_size);
    assert_true(limefile_time_equal(&root.mtime, &st.st_mtim));
    assert_true(limefile_time_equal(&root.ctime, &st.st_ctim));
}

TEST(differences)
{
    struct limefile_identity others[9];
    static const unsigned differs[] = {LIMEFILE_DEV,   LIMEFILE_INO,   LIMEFILE_UID,
                                       LIMEFILE_MODE,  LIMEFILE_SIZE,  LIMEFILE_MTIME,
                                       LIMEFILE_MTIME, LIMEFILE_CTIME, LIMEFILE_CTIME};
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

TEST(suspect)
{
    static const struct {
        struct timespec time, seen;
        bool suspect;
    } rows[] = {
        {{100, 5}, {100, 6}, true},         {{100, 5}, {100, 20000004}, true},
        {{100, 5}, {100, 20000005}, false}, {{100, 0}, {101, 0}, true},
        {{100, 0}, {101, 20000000}, false}, {{100, 5}, {99, 0}, true},
        {{100, 5}, {0, 0}, true},           {{0, 0}, {100, 0}, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(limefile_time_is_suspect(&rows[i].time, &rows[i].seen),
                         rows[i].suspect);
}

TEST(validity)
{
    struct limefile_identity longer = seen, chmodded = seen;
    const struct timespec at_once = {7, 71}, later = {8, 0};
    longer.size++;
    chmodded.mode = 0;
    const struct {
        const struct limefile_identity *now;
        const struct timespec *seen_at;
        bool written_then;
        enum limefile_validity validity;
    } rows[] = {
        {&seen, &later, false, LIMEFILE_VALID},
        {&seen, &later, true, LIMEFILE_SUSPECT},
        {&seen, &at_once, false, LIMEFILE_SUSPECT},
        {&seen, &at_once, true, LIMEFILE_SUSPECT},
        {&longer, &later, false, LIMEFILE_CHANGED},
        {&longer, &later, true, LIMEFILE_CHANGED},
        {&longer, &at_once, false, LIMEFILE_CHANGED},
        {&longer, &at_once, true, LIMEFILE_CHANGED},
        {&chmodded, &later, false, LIMEFILE_VALID},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(
            limefile_validity(&seen, rows[i].seen_at, rows[i].written_then, rows[i].now),
            rows[i].validity);
}
