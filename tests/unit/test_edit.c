/* test_edit.c - changes at the end of containers, failures at every call, locks */
#define _GNU_SOURCE
#include "edit.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Three records in two messages; the last has 13 bytes. */
static struct bytes three(void)
{
    struct bytes b = {0};
    bytes_record(&b, "first", 5, '1', MB);
    bytes_record(&b, "second", 8, '2', ME);
    bytes_record(&b, "third", 13, '3', MB | ME);
    return b;
}

enum { THIRD = 304, END_OF_THREE = 464 };

/* The container and its editor; each test begins with three() or with an empty container. */
static struct recorder recorder;
static struct limefile_editor *editor;

static void open_with(struct bytes b)
{
    recorder_init(&recorder, &b);
    editor = editor_of(&recorder.source);
    bytes_free(&b);
}

static int open_three(void **state)
{
    (void)state;
    open_with(three());
    return 0;
}

static int open_empty(void **state)
{
    (void)state;
    open_with((struct bytes){0});
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    limefile_editor_free(editor);
    recorder_release(&recorder);
    return 0;
}

#define TEST_THREE(name) TEST_WITH(name, open_three, close_it)
#define TEST_EMPTY(name) TEST_WITH(name, open_empty, close_it)

static void assert_holds(const struct bytes *want)
{
    assert_int_equal(recorder.memory.size, want->n);
    if (want->n)
        assert_memory_equal(recorder.memory.data, want->at, want->n);
}

static void assert_is(struct bytes *want)
{
    assert_holds(want);
    bytes_free(want);
}

/* Makes the n-th call from now on fail; 0: none. */
static void arm(size_t n, int code)
{
    recorder.tried = 0;
    recorder.fail_at = n;
    recorder.fail_code = code;
}

static void put(uint64_t at, size_t n, int value)
{
    struct action a = {.what = DATA, .at = at, .n = n, .value = value};
    assert_int_equal(write_data(editor, &recorder.source, &a), 0);
}

static void append(const char *type, size_t n, int value)
{
    assert_int_equal(limefile_append_begin(editor, type, strlen(type)), 0);
    put(0, n, value);
    assert_int_equal(limefile_commit(editor, n), 0);
}

TEST_THREE(test_visible_to_readers)
{
    assert_int_equal(limefile_append_begin(editor, "new", 3), 0);
    put(0, 30, 'n');
    struct bytes image = {recorder.memory.data, recorder.memory.size, recorder.memory.size};
    assert_only(&image, 3, LIMEFILE_E_TRAILING, END_OF_THREE, 4);
    struct limefile_last_record last = last_of(editor);
    assert_int_equal(last.ordinal, 4);
    assert_int_equal(last.header_offset, END_OF_THREE);
    assert_int_equal(last.data_offset, END_OF_THREE + 144);
    assert_int_equal(last.bytes, 0);
    assert_false(last.committed || last.mb);
    assert_string_equal(last.type, "new");
    assert_int_equal(last.type_len, 3);
    assert_int_equal(limefile_commit(editor, 29), 0);
    last = last_of(editor);
    assert_true(last.committed);
    assert_int_equal(last.bytes, 29);
    put(29, 100, 'm'); /* the new length counts only after a commit */
    struct bytes seen = contents_of(&recorder.memory, WITH_TYPES);
    assert_int_equal(limefile_growth_begin(editor), 0);
    struct bytes still = contents_of(&recorder.memory, WITH_TYPES);
    assert_true(same_bytes(&seen, &still));
    bytes_free(&seen);
    bytes_free(&still);
}

TEST_THREE(test_remove_and_append)
{
    struct bytes want = {0}, b;
    for (int round = 0; round < 3; round++) {
        append("fourth", 20, '4');
        append("fifth", 20, '5');
        assert_int_equal(limefile_append_begin(editor, "sixth", 5), 0);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(limefile_remove_last(editor), 0);
            assert_true(is_good(&recorder.memory));
        }
        b = three();
        assert_is(&b);
    }
    assert_int_equal(limefile_remove_last(editor), 0);
    assert_int_equal(limefile_remove_last(editor), 0);
    struct limefile_last_record last = last_of(editor);
    assert_int_equal(last.ordinal, 1);
    assert_int_equal(last.bytes, 5);
    assert_true(last.committed && last.mb);
    assert_string_equal(last.type, "first");
    append("next", 3, 'n');
    bytes_record(&want, "first", 5, '1', MB);
    bytes_record(&want, "next", 3, 'n', ME);
    assert_is(&want);
    assert_int_equal(limefile_remove_last(editor), 0);
    assert_int_equal(limefile_remove_last(editor), 0);
    assert_int_equal(limefile_remove_last(editor), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_editor_last(editor, &last), LIMEFILE_E_NO_RECORD);
    assert_int_equal(recorder.memory.size, 0);
    append("again", 3, 'a');
    bytes_record(&want, "again", 3, 'a', MB | ME);
    assert_is(&want);
}

/* The last record is `data`, n bytes, and the container is good. */
static void assert_third(const char *data, size_t n)
{
    struct bytes want = {0};
    bytes_record(&want, "first", 5, '1', MB);
    bytes_record(&want, "second", 8, '2', ME);
    bytes_header(&want, "third", n, MB | ME);
    bytes_add(&want, data, n);
    bytes_fill(&want, 0, (8 - n % 8) % 8);
    assert_is(&want);
}

TEST_THREE(test_resize)
{
    char data[1000] = {0};
    memset(data, '3', 13);
    assert_int_equal(limefile_resize(editor, 13, 13), 0);
    assert_third(data, 13);
    assert_int_equal(limefile_resize(editor, 13, 1000), 0);
    assert_int_equal(limefile_commit(editor, 1000), 0);
    assert_third(data, 1000);
    assert_int_equal(limefile_resize(editor, 1000, 7), 0);
    assert_third(data, 7);
    assert_int_equal(last_of(editor).bytes, 7);
    memset(data + 7, 0, 6);
    assert_int_equal(limefile_resize(editor, 7, 14), 0);
    assert_int_equal(limefile_commit(editor, 14), 0);
    assert_third(data, 14);
    assert_int_equal(limefile_resize(editor, 14, 0), 0);
    assert_third(data, 0);
}

/* Bytes that were written after the end and truncated must not reappear. */
TEST_THREE(test_resize_reads_as_zeros)
{
    char data[100] = {0};
    memset(data, '3', 13);
    for (size_t to = 13; to < 24; to++) {
        assert_int_equal(limefile_growth_begin(editor), 0);
        put(13, 40, 'x');
        assert_int_equal(limefile_resize(editor, 53, to), 0);
        assert_int_equal(limefile_resize(editor, to, 100), 0);
        memset(data + 13, 'x', to - 13);
        assert_int_equal(limefile_commit(editor, 100), 0);
        assert_third(data, 100);
        assert_int_equal(limefile_resize(editor, 100, 13), 0);
        assert_third(data, 13);
    }
    put(13, 40, 'x');
    assert_int_equal(limefile_resize(editor, 20, 60), 0); /* only 20 bytes were data */
    memset(data + 13, 'x', 7);
    memset(data + 20, 0, 80);
    assert_int_equal(limefile_commit(editor, 60), 0);
    assert_third(data, 60);
}

TEST_THREE(test_commit_sets_the_size_right)
{
    char data[30] = {0};
    memset(data, '3', 13);
    put(13, 100, 'x');
    assert_int_equal(limefile_commit(editor, 13), 0);
    assert_third(data, 13);
    put(13, 100, 'x');
    assert_int_equal(limefile_commit(editor, 21), 0);
    memset(data + 13, 'x', 8);
    assert_third(data, 21);
    assert_int_equal(limefile_commit(editor, 30), 0); /* these were never written */
    assert_third(data, 30);
}

TEST_EMPTY(test_states)
{
    char type[200];
    memset(type, 't', sizeof type);
    assert_int_equal(limefile_commit(editor, 0), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_resize(editor, 0, 1), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_growth_begin(editor), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_editor_set_mb(editor, true), LIMEFILE_E_STATE);
    assert_int_equal(limefile_editor_set_type(editor, "t", 1), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_append_begin(editor, "", 0), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_append_begin(editor, type, 128), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_append_begin(editor, "a\0b", 3), LIMEFILE_E_TYPE);
    assert_int_equal(recorder.memory.size, 0);
    assert_int_equal(limefile_append_begin(editor, type, 127), 0);
    assert_int_equal(limefile_append_begin(editor, "u", 1), LIMEFILE_E_STATE);
    assert_int_equal(limefile_editor_set_mb(editor, false), LIMEFILE_E_ORDER);
    assert_int_equal(limefile_editor_set_mb(editor, true), 0);
    assert_int_equal(limefile_commit(editor, INT64_MAX - 100), LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_resize(editor, 0, INT64_MAX - 100), LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_editor_set_type(editor, "", 0), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_commit(editor, 0), 0);
    assert_int_equal(limefile_editor_set_mb(editor, false), LIMEFILE_E_ORDER);
    put(0, 1, 'x');
    assert_int_equal(limefile_append_begin(editor, "u", 1), LIMEFILE_E_STATE);
    assert_int_equal(limefile_commit(editor, 1), 0);
    assert_int_equal(limefile_append_begin(editor, "u", 1), 0);
}

TEST(test_which_containers)
{
    struct limefile_memory memory;
    struct bytes want = three();
    memory_of(&memory, &want);
    struct limefile_index *index = index_of(&memory.source);
    memory.source.ops->truncate(&memory.source, want.n + 1);
    assert_int_equal(limefile_editor_new(&memory.source, index, &editor), LIMEFILE_E_STATE);
    limefile_index_free(index);
    index = index_of(&memory.source); /* with the new size it finds a fault */
    assert_int_equal(limefile_editor_new(&memory.source, index, &editor), LIMEFILE_E_STATE);
    limefile_index_free(index);
    limefile_memory_release(&memory);
    for (size_t cut = 1; cut <= 3; cut++) { /* part of the last padding */
        struct bytes less = three();
        less.n -= cut;
        open_with(less);
        assert_holds(&want);
        close_it(NULL);
    }
    limefile_editor_free(NULL);
    bytes_free(&want);
}

/* ---- failures ---- */

static const struct action long_script[] = {
    {BEGIN, .text = "new"},
    {DATA, .at = 0, .n = 21, .value = 'n'},
    {COMMIT, .n = 21},
    {.what = GROWTH},
    {DATA, .at = 21, .n = 100, .value = 'm'},
    {COMMIT, .n = 121},
    {RESIZE, .at = 121, .n = 50},
    {RESIZE, .at = 50, .n = 80},
    {RESIZE, .at = 80, .n = 50},
    {MESSAGE, .n = 1},
    {MESSAGE, .n = 0},
    {TYPE, .text = "newer"},
    {BEGIN, .text = "next"},
    {.what = REMOVE},
    {.what = REMOVE},
    {.what = END},
};

struct attempt {
    size_t fail_at;
    int code;
    bool partly;
};

/* A copy of the container can be recovered, with the first three records unchanged. */
static void assert_recoverable(const struct limefile_memory *memory, const struct action *a,
                               const char *what)
{
    struct limefile_memory copy;
    struct bytes b = three();
    memory_of(&copy, &(struct bytes){memory->data, memory->size, memory->size});
    if (a->what == MESSAGE) /* only one of the two headers has the new boundary */
        assert_int_equal(limefile_repair_headers(&copy.source, false, NULL, NULL, NULL), 0);
    int err = limefile_recover(&copy.source, NULL, NULL, NULL);
    b.at[THIRD + 6] = copy.size > THIRD ? copy.data[THIRD + 6] : 0;
    if (err || !is_good(&copy) || copy.size < b.n || memcmp(copy.data, b.at, b.n) != 0)
        fail_msg("%s: %s", what, limefile_strerror(err));
    bytes_free(&b);
    limefile_memory_release(&copy);
}

static bool is_gone(const struct action *a, uint64_t ordinal)
{
    return a->what == REMOVE && last_of(editor).ordinal < ordinal;
}

/* Returns true if the call that should fail was reached. */
static bool attempt(const struct attempt *how)
{
    open_three(NULL);
    arm(how->fail_at, how->code);
    recorder.partly = how->partly;
    for (const struct action *a = long_script; a->what != END; a++) {
        uint64_t ordinal = last_of(editor).ordinal;
        int err = act(editor, &recorder.source, a);
        if (!err)
            continue;
        assert_int_equal(err, how->code);
        assert_recoverable(&recorder.memory, a, "after a failure");
        recorder.fail_at = 0;
        if (!is_gone(a, ordinal))
            assert_int_equal(act(editor, &recorder.source, a), 0);
        assert_recoverable(&recorder.memory, a, "after another try");
    }
    /* A mark may remain if clearing it failed. */
    assert_int_equal(limefile_recover(&recorder.memory.source, NULL, NULL, NULL), 0);
    struct bytes want = three();
    assert_is(&want);
    bool was_reached = recorder.tried >= how->fail_at; /* some failures are repaired */
    close_it(NULL);
    return was_reached;
}

TEST(test_failures_and_another_try)
{
    static const int codes[] = {-ENOSPC, -EDQUOT, -EIO};
    for (size_t c = 0; c < COUNT(codes); c++)
        for (int partly = 0; partly < 2; partly++) {
            struct attempt how = {1, codes[c], partly};
            while (attempt(&how))
                how.fail_at++;
            assert_true(how.fail_at > 40);
        }
}

static bool is_recoverable(const struct limefile_memory *memory)
{
    struct limefile_memory copy;
    memory_of(&copy, &(struct bytes){memory->data, memory->size, memory->size});
    bool good = limefile_recover(&copy.source, NULL, NULL, NULL) == 0 && is_good(&copy);
    limefile_memory_release(&copy);
    return good;
}

/* A commit fails at each call, and another action than a retry follows. */
static void after_failed_commit(const struct action *script, uint64_t committed,
                                const struct action *then, struct bytes *want)
{
    int err = -1;
    for (size_t n = 1; err; n++) {
        size_t done;
        open_three(NULL);
        assert_int_equal(perform(editor, &recorder.source, script, &done), 0);
        arm(n, -EIO);
        err = limefile_commit(editor, committed);
        recorder.fail_at = 0;
        for (const struct action *a = then; err && a->what != END; a++) {
            assert_true(is_recoverable(&recorder.memory));
            assert_int_equal(act(editor, &recorder.source, a), 0);
        }
        if (err)
            assert_holds(want);
        close_it(NULL);
    }
    bytes_free(want);
}

/* Returns 0 or an error; abandons an unfinished replacement as lime replace does. */
static int replace(const struct limefile_record *record, const struct bytes *data,
                   struct limefile_redo *redo)
{
    int err = limefile_redo_begin(editor, record, data->n, redo);
    if (!err)
        err = limefile_write_full(&recorder.source, data->at, data->n, redo->offset);
    if (err)
        limefile_redo_abandon(editor);
    else
        err = limefile_redo_commit(editor, redo);
    return err;
}

/* Returns true if the call that should fail was reached. */
static bool attempt_replace(const struct attempt *how, uint64_t ordinal, uint64_t n)
{
    struct limefile_record record;
    struct limefile_redo redo;
    struct bytes b = three(), data = {0};
    bytes_fill(&data, 'r', n);
    open_three(NULL);
    struct limefile_index *index = index_of(&recorder.source);
    assert_int_equal(limefile_index_get(index, ordinal, &record), 0);
    arm(how->fail_at, how->code);
    recorder.partly = how->partly;
    int err = replace(&record, &data, &redo);
    bool was_reached = recorder.tried >= how->fail_at;
    recorder.fail_at = 0;
    assert_true(err == 0 || err == how->code);
    if (err && redo.is_committed) {
        assert_int_equal(limefile_recover(&recorder.source, NULL, NULL, NULL), 0);
    } else if (err) { /* the editor is still usable */
        assert_int_equal(recorder.memory.size, b.n);
        assert_int_equal(replace(&record, &data, &redo), 0);
    }
    assert_true(is_good(&recorder.memory));
    const unsigned char *now = recorder.memory.data + record.data_offset;
    assert_true((n && memcmp(now, data.at, n) == 0) ||
                (err && redo.is_committed &&
                 memcmp(now, b.at + record.data_offset, record.bytes) == 0) ||
                (n == 0 && recorder.memory.size == record.data_offset));
    close_it(NULL);
    limefile_index_free(index);
    bytes_free(&data);
    bytes_free(&b);
    return was_reached;
}

TEST(test_replace_and_failures)
{
    static const struct {
        uint64_t ordinal, n;
    } changes[] = {{3, 13}, {3, 0}, {3, 5}, {3, 500}, {2, 8}};
    for (size_t i = 0; i < COUNT(changes); i++)
        for (int how = 0; how < 4; how++) {
            struct attempt attempt = {1, how & 1 ? -ENOSPC : -EIO, how & 2};
            while (attempt_replace(&attempt, changes[i].ordinal, changes[i].n))
                assert_true(++attempt.fail_at < 200);
        }
}

TEST_THREE(test_replace_refused)
{
    struct limefile_record record;
    struct limefile_redo redo;
    struct limefile_index *index = index_of(&recorder.source);
    assert_int_equal(limefile_index_get(index, 2, &record), 0);
    assert_int_equal(limefile_redo_begin(editor, &record, record.bytes + 1, &redo),
                     LIMEFILE_E_STATE);
    assert_int_equal(limefile_index_get(index, 3, &record), 0);
    assert_int_equal(limefile_redo_begin(editor, &record, LIMEFILE_BYTES_MAX - 8, &redo),
                     LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_append_begin(editor, "new", 3), 0);
    assert_int_equal(limefile_redo_begin(editor, &record, 1, &redo), LIMEFILE_E_STATE);
    limefile_index_free(index);
}

TEST(test_after_a_failed_commit)
{
    static const struct action begin[] = {
        {BEGIN, .text = "new"}, {DATA, .at = 0, .n = 50, .value = 'n'}, {.what = END}};
    static const struct action grow[] = {
        {.what = GROWTH}, {DATA, .at = 13, .n = 50, .value = '3'}, {.what = END}};
    static const struct action removal[] = {{.what = REMOVE}, {.what = END}};
    static const struct action more[] = {{.what = GROWTH},
                                         {DATA, .at = 50, .n = 30, .value = 'n'},
                                         {COMMIT, .n = 80},
                                         {.what = END}};
    static const struct action less[] = {{COMMIT, .n = 20}, {.what = END}};
    static const struct action cut[] = {
        {RESIZE, .at = 63, .n = 20}, {COMMIT, .n = 20}, {.what = END}};
    struct bytes want = three();
    after_failed_commit(begin, 50, removal, &want);
    for (int how = 0; how < 2; how++) {
        want = three();
        want.at[THIRD + 6] &= (unsigned char)~ME;
        bytes_record(&want, "new", how ? 20 : 80, 'n', ME);
        after_failed_commit(begin, 50, how ? less : more, &want);
    }
    for (int how = 0; how < 2; how++) {
        want = three();
        want.n = THIRD;
        bytes_record(&want, "third", 20, '3', MB | ME);
        after_failed_commit(grow, 63, how ? cut : less, &want);
    }
}

/* Truncation of the last record fails half-way, without a retry. */
TEST(test_append_after_a_failed_cut)
{
    static const struct action then[] = {{BEGIN, .text = "new"},
                                         {DATA, .at = 0, .n = 10, .value = 'n'},
                                         {COMMIT, .n = 10},
                                         {.what = END}};
    int err = -1;
    for (size_t n = 1; err; n++) {
        struct limefile_last_record last;
        size_t done;
        open_three(NULL);
        arm(n, -EIO);
        err = limefile_resize(editor, 13, 5);
        recorder.fail_at = 0;
        if (err) {
            struct bytes want = three();
            limefile_editor_last(editor, &last);
            want.n = THIRD;
            bytes_record(&want, "third", last.bytes, '3', MB);
            bytes_record(&want, "new", 10, 'n', ME);
            assert_int_equal(perform(editor, &recorder.source, then, &done), 0);
            assert_is(&want);
        }
        close_it(NULL);
    }
}

TEST(test_message_after_a_failed_commit)
{
    for (size_t n = 1; n < 20; n++) {
        open_three(NULL);
        assert_int_equal(limefile_append_begin(editor, "new", 3), 0);
        arm(n, -EIO);
        int err = limefile_commit(editor, 5);
        recorder.fail_at = 0;
        if (err && limefile_editor_set_mb(editor, true) == 0) {
            assert_int_equal(limefile_commit(editor, 5), 0);
            assert_true(is_good(&recorder.memory));
            assert_int_equal(recorder.memory.data[END_OF_THREE + 6], MB | ME);
        }
        close_it(NULL);
    }
}

/* Some file systems have no space even for a change in place. */
TEST(test_full)
{
    static const struct action scripts[][SCRIPT_MAX] = {
        {{.what = GROWTH},
         {DATA, .at = 13, .n = 51, .value = 'x'},
         {.what = FULL},
         {COMMIT, .n = 13}},
        {{.what = GROWTH},
         {DATA, .at = 13, .n = 51, .value = 'x'},
         {.what = FULL},
         {RESIZE, .at = 64, .n = 13}},
        {{.what = GROWTH},
         {DATA, .at = 13, .n = 51, .value = 'x'},
         {.what = FULL},
         {RESIZE, .at = 64, .n = 5},
         {RESIZE, .at = 5, .n = 13},
         {DATA, .at = 5, .n = 8, .value = '3'},
         {COMMIT, .n = 13}},
        {{BEGIN, .text = "new"},
         {DATA, .at = 0, .n = 9, .value = 'x'},
         {.what = FULL},
         {.what = REMOVE}},
        {{.what = GROWTH},
         {DATA, .at = 13, .n = 51, .value = 'x'},
         {.what = FULL},
         {.what = REMOVE},
         {BEGIN, .text = "third"},
         {MESSAGE, .n = 1},
         {DATA, .at = 0, .n = 13, .value = '3'},
         {COMMIT, .n = 13}},
        {{MESSAGE, .n = 0},
         {.what = FULL},
         {.what = REMOVE}, /* REMOVE sets ME */
         {BEGIN, .text = "third"},
         {MESSAGE, .n = 1},
         {DATA, .at = 0, .n = 13, .value = '3'},
         {COMMIT, .n = 13}},
    };
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct bytes want = three();
        size_t done;
        open_three(NULL);
        assert_int_equal(perform(editor, &recorder.source, scripts[i], &done), 0);
        assert_false(recorder.full);
        assert_is(&want);
        assert_int_equal(limefile_append_begin(editor, "next", 4), 0);
        assert_int_equal(limefile_commit(editor, 0), 0);
        assert_true(is_good(&recorder.memory));
        close_it(NULL);
    }
}

/* Everything except the length was stored. */
TEST_THREE(test_no_room_for_the_length)
{
    static const struct action grow[] = {{.what = GROWTH},
                                         {DATA, .at = 13, .n = 51, .value = 'x'},
                                         {.what = FULL},
                                         {.what = END}};
    struct bytes want = three();
    size_t done;
    assert_int_equal(perform(editor, &recorder.source, grow, &done), 0);
    assert_int_equal(limefile_commit(editor, 64), -ENOSPC);
    assert_int_equal(limefile_commit(editor, 13), 0);
    assert_is(&want);
}

TEST(test_read_only_source)
{
    struct limefile_memory memory;
    struct bytes b = three();
    limefile_memory_borrow(&memory, b.at, b.n);
    editor = editor_of(&memory.source);
    assert_int_equal(limefile_append_begin(editor, "t", 1), -EROFS);
    assert_int_equal(limefile_remove_last(editor), -EROFS);
    assert_int_equal(limefile_resize(editor, 13, 100), -EROFS);
    assert_int_equal(last_of(editor).ordinal, 3);
    limefile_editor_free(editor);
    bytes_free(&b);
}

/* ---- locks ---- */

TEST(test_locks)
{
    char path[] = "/tmp/limefs-test-edit-XXXXXX";
    int first = mkostemp(path, O_CLOEXEC), second = open(path, O_RDWR | O_CLOEXEC);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(first >= 0 && second >= 0 && reader >= 0);
    assert_int_equal(limefile_lock_test(reader), 0);
    assert_int_equal(limefile_lock(first), 0);
    assert_int_equal(limefile_lock(first), 0); /* a second call has no effect */
    assert_int_equal(limefile_lock_test(first), 0);
    assert_int_equal(limefile_lock(second), -EBUSY);
    assert_int_equal(limefile_lock_test(second), -EBUSY);
    assert_int_equal(limefile_lock_test(reader), -EBUSY);
    assert_int_equal(limefile_lock(reader), -EBADF);
    int shared = dup(first);
    close(first);
    assert_int_equal(limefile_lock(second), -EBUSY);
    close(shared);
    assert_int_equal(limefile_lock(second), 0);
    close(second);
    close(reader);
    unlink(path);
}
