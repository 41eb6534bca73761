/* test_recover.c - after a crash during a change, recovery finds the container as before or
 * as after
 *
 * The test records the writes of each change. For each moment of a crash, each write since the
 * last sync reaches the disk or not, whole or torn between multiples of 8; then recovery runs.
 * When a file is truncated, the zeros that fill the new last block may be stored alone, as file
 * systems write them as data but the length as metadata. */
#include "edit.h"

enum {
    RANDOM_ROUNDS = 300,
    SUBSETS_MAX = 1 << 9,
    ANY_TYPE = 1 << 8, /* the type may be part old, part new */
};

/* ---- the changes ---- */

struct change {
    const char *name;
    struct action script[SCRIPT_MAX];
    bool empty;  /* starts with an empty container */
    bool nested; /* the last record's data are a container */
    bool marked; /* its header has the mark, and nothing follows */
    bool keep;   /* tails need the keep function */
    bool bare;   /* although nested, they do not */
    bool mended; /* recovery refuses some states, which lime repair fixes */
    int with;    /* parts that must be as before or after */
};

static const struct change changes[] = {
    {.name = "append",
     .script = {{BEGIN, .text = "new"},
                {DATA, .at = 0, .n = 21, .value = 'n'},
                {COMMIT, .n = 21}}},
    {.name = "append a message",
     .script = {{BEGIN, .text = "new"},
                {MESSAGE, .n = 1},
                {DATA, .at = 0, .n = 24, .value = 'n'},
                {COMMIT, .n = 24}}},
    {.name = "append nothing",
     .script = {{BEGIN, .text = "a-type-of-many-bytes"}, {COMMIT, .n = 0}}},
    {.name = "append to what a crash has left",
     .script = {{BEGIN, .text = "new"},
                {DATA, .at = 0, .n = 9, .value = 'n'},
                {COMMIT, .n = 9}},
     .marked = true},
    {.name = "grow what a crash has left",
     .script = {{.what = GROWTH}, {DATA, .at = 13, .n = 9, .value = 'n'}, {COMMIT, .n = 22}},
     .marked = true},
    {.name = "append in steps",
     .script = {{BEGIN, .text = "new"},
                {DATA, .at = 0, .n = 21, .value = 'n'},
                {RESIZE, .at = 21, .n = 1000},
                {RESIZE, .at = 1000, .n = 17},
                {DATA, .at = 17, .n = 10, .value = 'm'},
                {COMMIT, .n = 27}}},
    {.name = "append what was resized",
     .script = {{BEGIN, .text = "new"},
                {RESIZE, .at = 0, .n = 4000},
                {DATA, .at = 0, .n = 9, .value = 'n'},
                {COMMIT, .n = 9}}},
    {.name = "append, other type",
     .script = {{BEGIN, .text = "new"},
                {DATA, .at = 0, .n = 3, .value = 'n'},
                {TYPE, .text = "another-type"},
                {COMMIT, .n = 3}}},
    {.name = "replace the last one", .script = {{REPLACE, .at = 4, .n = 13, .value = 'r'}}},
    {.name = "replace, shorter", .script = {{REPLACE, .at = 4, .n = 3, .value = 'r'}}},
    {.name = "replace, longer", .script = {{REPLACE, .at = 4, .n = 500, .value = 'r'}}},
    {.name = "replace by nothing", .script = {{REPLACE, .at = 4, .n = 0}}},
    {.name = "replace into the padding", .script = {{REPLACE, .at = 4, .n = 15, .value = 'r'}}},
    {.name = "replace an inner one", .script = {{REPLACE, .at = 2, .n = 8, .value = 'r'}}},
    {.name = "replace twice, then append",
     .script = {{REPLACE, .at = 4, .n = 40, .value = 'r'},
                {REPLACE, .at = 4, .n = 9, .value = 's'},
                {BEGIN, .text = "new"},
                {DATA, .at = 0, .n = 9, .value = 'n'},
                {COMMIT, .n = 9}}},
    {.name = "replace what a crash has left",
     .script = {{REPLACE, .at = 4, .n = 20, .value = 'r'}},
     .marked = true},
    {.name = "replace a container",
     .script = {{REPLACE, .at = 3, .n = 300, .value = 'r'}},
     .nested = true,
     .bare = true},
    {.name = "append, then not",
     .script = {{BEGIN, .text = "new"},
                {DATA, .at = 0, .n = 300, .value = 'n'},
                {.what = REMOVE}}},
    {.name = "append to nothing",
     .script = {{BEGIN, .text = "new"},
                {DATA, .at = 0, .n = 300, .value = 'n'},
                {COMMIT, .n = 300}},
     .empty = true},
    {.name = "grow",
     .script = {{.what = GROWTH},
                {DATA, .at = 13, .n = 200, .value = 'g'},
                {COMMIT, .n = 213}}},
    {.name = "grow into the padding",
     .script = {{.what = GROWTH}, {DATA, .at = 13, .n = 2, .value = 'g'}, {COMMIT, .n = 15}}},
    {.name = "grow by resize",
     .script = {{RESIZE, .at = 13, .n = 500},
                {DATA, .at = 100, .n = 50, .value = 'g'},
                {COMMIT, .n = 500}}},
    {.name = "grow without a word",
     .script = {{DATA, .at = 13, .n = 300, .value = 'g'}, {COMMIT, .n = 313}},
     .keep = true},
    {.name = "grow, then not",
     .script = {{.what = GROWTH},
                {DATA, .at = 13, .n = 300, .value = 'g'},
                {RESIZE, .at = 313, .n = 13}}},
    {.name = "grow, then less",
     .script = {{.what = GROWTH},
                {DATA, .at = 13, .n = 300, .value = 'g'},
                {RESIZE, .at = 313, .n = 20},
                {COMMIT, .n = 20}}},
    {.name = "grow until the disk is full, then not",
     .script = {{.what = GROWTH},
                {DATA, .at = 13, .n = 300, .value = 'g'},
                {.what = FULL},
                {COMMIT, .n = 13}}},
    {.name = "grow until the disk is full, then less",
     .script = {{.what = GROWTH},
                {DATA, .at = 13, .n = 300, .value = 'g'},
                {.what = FULL},
                {RESIZE, .at = 313, .n = 5}}},
    {.name = "commit once more", .script = {{COMMIT, .n = 13}}},
    {.name = "shrink", .script = {{RESIZE, .at = 13, .n = 2}}},
    {.name = "shrink to nothing", .script = {{RESIZE, .at = 13, .n = 0}}},
    {
        .name = "shrink a container",
        .script = {{RESIZE, .at = 608, .n = 152}},
        .nested = true,
    },
    {.name = "shrink a container a little",
     .script = {{RESIZE, .at = 608, .n = 600}},
     .nested = true},
    {.name = "grow by a container",
     .script = {{.what = GROWTH},
                {DATA, .at = 16, .n = 8, .value = 0},
                {TEXT, .at = 24, .text = "\x45\x67\x89\xab\0\1\xc0\0\0\0\0\0\0\0\0\0",
                 .text_len = 16},
                {DATA, .at = 40, .n = 128, .value = 't'},
                {COMMIT, .n = 168}}},
    {.name = "grow by a record",
     .script = {{.what = GROWTH},
                {TEXT, .at = 16, .text = "\x45\x67\x89\xab\0\1\xc0\0\0\0\0\0\0\0\0\0",
                 .text_len = 16},
                {DATA, .at = 32, .n = 128, .value = 't'},
                {COMMIT, .n = 160}},
     .keep = true},
    {.name = "remove", .script = {{.what = REMOVE}}},
    {.name = "remove a container", .script = {{.what = REMOVE}}, .nested = true, .bare = true},
    {.name = "append a container, then not",
     .script = {{BEGIN, .text = "new"},
                {DATA, .at = 0, .n = 1000, .value = 'n'},
                {TEXT, .at = 600, .text = "\x45\x67\x89\xab\0\1\xc0\0\0\0\0\0\0\0\0\0",
                 .text_len = 16},
                {DATA, .at = 616, .n = 128, .value = 't'},
                {.what = REMOVE}}},
    {.name = "remove the first message's end",
     .script = {{.what = REMOVE}, {.what = REMOVE}},
     .with = 8},
    {.name = "type", .script = {{TYPE, .text = "x"}}, .mended = true, .with = ANY_TYPE},
    {.name = "longer type",
     .script = {{TYPE, .text = "another-type-that-is-long"}},
     .mended = true,
     .with = ANY_TYPE},
    {.name = "boundary",
     .script = {{BOUNDARY, .at = 0, .n = 152, .value = 1}},
     .mended = true,
     .with = WITH_FLAGS},
    {.name = "no boundary",
     .script = {{BOUNDARY, .at = 152, .n = 304, .value = 0}},
     .mended = true,
     .with = WITH_FLAGS},
    {.name = "begin a message",
     .script = {{MESSAGE, .n = 1}},
     .mended = true,
     .with = WITH_FLAGS},
};

/* Three records in two messages; the last has 13 bytes or is a container. */
static struct bytes start_of(const struct change *change)
{
    struct bytes b = {0};
    if (change->empty)
        return b;
    bytes_record(&b, "first", 5, '1', MB);
    bytes_record(&b, "second", 8, '2', ME);
    if (change->nested) {
        bytes_header(&b, "container", 608, MB);
        for (int i = 0; i < 4; i++)
            bytes_record(&b, "inner", 3 + (size_t)i, 'i', MB | ME);
    } else {
        bytes_record(&b, "third", 3, '3', MB);
    }
    if (!change->nested)
        bytes_record(&b, "last", 13, 'z', ME);
    else
        b.at[304 + 6] |= ME;
    if (change->marked)
        b.at[456 + 7] = 0x5f;
    return b;
}

/* ---- crashes ---- */

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

/* Applies a write of which only some aligned groups of eight bytes were stored. */
static void apply_torn(struct limefile_memory *disk, const struct call *call)
{
    uint64_t end = call->offset + call->n;
    for (uint64_t at = call->offset; at < end;) {
        uint64_t next = (at / 8 + 1) * 8 < end ? (at / 8 + 1) * 8 : end;
        if (draw(2))
            limefile_write_full(&disk->source, call->data + (at - call->offset), next - at, at);
        at = next;
    }
    if (disk->size < end && draw(2))
        disk->source.ops->truncate(&disk->source, end);
}

static void apply(struct limefile_memory *disk, const struct call *call)
{
    if (call->kind == WRITE)
        limefile_write_full(&disk->source, call->data, call->n, call->offset);
    else if (call->kind == TRUNCATE)
        disk->source.ops->truncate(&disk->source, call->offset);
}

/* Zeros the rest of the last block, for a random block size. */
static void apply_zeros(struct limefile_memory *disk, uint64_t size)
{
    static const unsigned char zeros[4096];
    uint64_t block = UINT64_C(512) << draw(4), end = (size + block - 1) / block * block;
    if (end > disk->size)
        end = disk->size;
    struct call call = {WRITE, size, end > size ? end - size : 0, (unsigned char *)zeros};
    if (draw(2))
        apply_torn(disk, &call);
    else
        apply(disk, &call);
}

struct trial {
    const struct change *change;
    struct recorder *recorder;
    struct bytes start;
    struct bytes state[SCRIPT_MAX + 1]; /* contents after each action */
    size_t safe[SCRIPT_MAX + 1];        /* it or a later one after so many calls */
    size_t states;
    int with;
};

static int keep_all(void *context, uint64_t from, uint64_t size)
{
    (void)context;
    assert_true(from < size);
    return 0;
}

static bool is_expected(const struct trial *t, const struct limefile_memory *disk,
                        size_t stopped)
{
    bool found = false;
    struct bytes now = contents_of(disk, t->with);
    for (size_t i = t->states; !found && i-- > 0;) {
        found = same_bytes(&now, &t->state[i]);
        if (stopped >= t->safe[i])
            break;
    }
    bytes_free(&now);
    return found;
}

/* Zeros shorter than a header are not a container. */
static bool is_zero(const struct limefile_memory *disk)
{
    size_t n = 0;
    while (n < disk->size && disk->data[n] == 0)
        n++;
    return n == disk->size && n < LIMEFILE_HEADER_BYTES;
}

static void check_disk(struct trial *t, struct limefile_memory *disk, size_t stopped)
{
    struct limefile_memory first;
    memory_of(&first, &(struct bytes){disk->data, disk->size, disk->size});
    if (t->change->mended)
        assert_int_equal(limefile_repair_headers(&disk->source, false, NULL, NULL, NULL), 0);
    int err = limefile_recover(
        &disk->source, NULL,
        t->change->keep || (t->change->nested && !t->change->bare) ? keep_all : NULL, NULL);
    bool refused = err == LIMEFILE_E_MAGIC && t->change->empty && is_zero(disk);
    if (refused) {
        assert_int_equal(disk->size, first.size);
        assert_memory_equal(disk->data, first.data, first.size);
    } else if (err || !is_good(disk) || !is_expected(t, disk, stopped)) {
        fail_msg("%s: stopped after %zu calls of %zu: recovery: %s; %s", t->change->name,
                 stopped, t->recorder->calls, limefile_strerror(err),
                 is_good(disk) ? "good, but not as before or after" : "not good");
    }
    if (!err) { /* a second run has nothing to do */
        size_t size = disk->size;
        assert_int_equal(limefile_recover(&disk->source, NULL, NULL, NULL), 0);
        assert_int_equal(disk->size, size);
    }
    limefile_memory_release(&first);
}

/* Applies the writes since the last sync that `subset` selects, possibly torn. */
static void crash(struct trial *t, size_t stopped, unsigned subset, bool torn)
{
    struct limefile_memory disk;
    size_t synced = 0;
    memory_of(&disk, &t->start);
    for (size_t i = 0; i < stopped; i++)
        if (t->recorder->call[i].kind == SYNC)
            synced = i + 1;
    for (size_t i = 0; i < synced; i++)
        apply(&disk, &t->recorder->call[i]);
    for (size_t i = synced; i < stopped; i++) {
        const struct call *call = &t->recorder->call[i];
        if (torn && call->kind == WRITE && draw(2))
            apply_torn(&disk, call);
        else if (torn && call->kind == TRUNCATE && call->offset < disk.size && draw(2))
            apply_zeros(&disk, call->offset);
        else if (torn ? draw(2) : subset >> (i - synced) & 1)
            apply(&disk, call);
    }
    check_disk(t, &disk, stopped);
    limefile_memory_release(&disk);
}

static size_t unsynced(const struct recorder *r, size_t stopped)
{
    size_t n = 0;
    while (n < stopped && r->call[stopped - n - 1].kind != SYNC)
        n++;
    return n;
}

static void crash_everywhere(struct trial *t)
{
    for (size_t stopped = 0; stopped <= t->recorder->calls; stopped++) {
        size_t loose = unsynced(t->recorder, stopped);
        assert_true(1u << loose <= SUBSETS_MAX);
        for (unsigned subset = 0; subset < 1u << loose; subset++)
            crash(t, stopped, subset, false);
        for (int i = 0; loose && i < RANDOM_ROUNDS; i++)
            crash(t, stopped, 0, true);
    }
}

static void add_state(struct trial *t)
{
    t->state[t->states] = contents_of(&t->recorder->memory, t->with);
    t->safe[t->states++] = t->recorder->calls;
}

static void try_change(const struct change *change)
{
    struct recorder recorder;
    struct trial t = {.change = change, .recorder = &recorder};
    t.with = change->with & ANY_TYPE ? 0 : WITH_TYPES | change->with;
    t.start = start_of(change);
    recorder_init(&recorder, &t.start);
    struct limefile_editor *editor = editor_of(&recorder.source);
    add_state(&t);
    for (const struct action *a = change->script; a->what != END; a++) {
        assert_int_equal(act(editor, &recorder.source, a), 0);
        if (a->what >= COMMIT || a[1].what == END)
            add_state(&t);
    }
    assert_true(is_good(&recorder.memory));
    crash_everywhere(&t);
    limefile_editor_free(editor);
    recorder_release(&recorder);
    bytes_free(&t.start);
    while (t.states)
        bytes_free(&t.state[--t.states]);
}

/* ---- recovery by itself ---- */

struct notes {
    size_t notes, kept;
    int answer; /* result of keep */
    char last[400];
};

static void note(void *context, const char *text)
{
    struct notes *n = context;
    n->notes++;
    snprintf(n->last, sizeof n->last, "%s", text);
}

static int keep(void *context, uint64_t from, uint64_t size)
{
    struct notes *n = context;
    assert_true(from < size);
    n->kept++;
    return n->answer;
}

/* Returns three good records and `tail`. */
static struct bytes with_tail(const void *tail, size_t n)
{
    struct change plain = {0};
    struct bytes b = start_of(&plain);
    bytes_add(&b, tail, n);
    return b;
}

static int recover_bytes(const struct bytes *b, struct notes *notes, bool with_keep,
                         size_t *size)
{
    struct limefile_memory memory;
    memory_of(&memory, b);
    int err = limefile_recover(&memory.source, note, with_keep ? keep : NULL, notes);
    *size = memory.size;
    limefile_memory_release(&memory);
    return err;
}

TEST(test_good_is_unchanged)
{
    struct recorder recorder;
    struct bytes b = with_tail("", 0);
    recorder_init(&recorder, &b);
    assert_int_equal(limefile_recover(&recorder.source, NULL, NULL, NULL), 0);
    assert_int_equal(recorder.calls, 0);
    recorder_release(&recorder);
    recorder_init(&recorder, &(struct bytes){0});
    assert_int_equal(limefile_recover(&recorder.source, NULL, NULL, NULL), 0);
    assert_int_equal(recorder.calls, 0);
    recorder_release(&recorder);
    bytes_free(&b);
}

TEST(test_message_about_an_unfinished_record)
{
    unsigned char raw[144 + 17];
    struct notes notes = {0};
    size_t size;
    memset(raw, 'd', sizeof raw);
    raw_header(raw, "some/type", 9, 0, 0);
    memset(raw, 0, 8);
    struct bytes b = with_tail(raw, sizeof raw);
    size_t end = b.n - sizeof raw;
    char want[200];
    snprintf(want, sizeof want,
             "offset %zu: an unfinished record of type 'some%%2Ftype', 17 bytes, cut", end);
    assert_int_equal(recover_bytes(&b, &notes, true, &size), 0);
    assert_int_equal(size, end);
    assert_int_equal(notes.notes, 1);
    assert_int_equal(notes.kept, 0);
    assert_string_equal(notes.last, want);
    bytes_free(&b);
    b = (struct bytes){0}; /* the file contains nothing else */
    bytes_add(&b, raw, sizeof raw);
    assert_int_equal(recover_bytes(&b, &notes, false, &size), 0);
    assert_int_equal(size, 0);
    bytes_free(&b);
}

/* The record before states that the next one is being removed. */
TEST(test_message_about_a_removal)
{
    unsigned char raw[400] = {0};
    struct notes notes = {0};
    size_t size;
    raw_header(raw + 200, "inner", 5, 16, MB | ME);
    struct bytes b = with_tail(raw, sizeof raw);
    size_t end = b.n - sizeof raw;
    char want[200];
    b.at[456 + 7] = 0x2d;
    snprintf(want, sizeof want, "offset %zu: 400 bytes of a record that was being removed, cut",
             end);
    assert_int_equal(recover_bytes(&b, &notes, false, &size), 0);
    assert_int_equal(size, end);
    assert_int_equal(notes.kept, 0);
    assert_string_equal(notes.last, want);
    bytes_free(&b);
    b = with_tail(raw, 0); /* the record was not removed */
    b.at[456 + 7] = 0x2d;
    bytes_record(&b, "whole", 100, 'w', MB | ME);
    assert_int_equal(recover_bytes(&b, &notes, false, &size), 0);
    assert_int_equal(size, b.n);
    bytes_free(&b);
    b = with_tail(raw, 0); /* a later record of another writer, truncated */
    b.at[456 + 7] = 0x2d;
    bytes_record(&b, "cut", 100, 'w', MB | ME);
    b.n -= 50;
    assert_int_equal(recover_bytes(&b, &notes, true, &size), 0);
    assert_int_equal(size, end);
    assert_int_equal(notes.kept, 1);
    bytes_free(&b);
}

TEST(test_foreign_tails)
{
    struct notes notes = {0};
    size_t size;
    struct bytes b = with_tail("something else", 14);
    assert_int_equal(recover_bytes(&b, &notes, false, &size), LIMEFILE_E_TRAILING);
    assert_int_equal(size, b.n);
    notes.answer = -ENOSPC;
    assert_int_equal(recover_bytes(&b, &notes, true, &size), -ENOSPC);
    assert_int_equal(size, b.n);
    assert_int_equal(notes.notes, 0);
    notes.answer = 0;
    assert_int_equal(recover_bytes(&b, &notes, true, &size), 0);
    assert_int_equal(size, b.n - 14);
    assert_int_equal(notes.kept, 2);
    assert_int_equal(notes.notes, 1);
    bytes_free(&b);
}

/* Whole records after a fault: only a user may remove them. */
TEST(test_damage_is_unchanged)
{
    struct notes notes = {0};
    size_t size;
    for (int how = 0; how < 3; how++) {
        struct bytes b = with_tail("", 0);
        unsigned char *second = b.at + 152;
        if (how == 0)
            memset(second, 0, 8); /* like an unfinished record, but others follow it */
        if (how == 1)
            second[0] = 'x';
        if (how == 2)
            second[5] = 2;
        assert_int_not_equal(recover_bytes(&b, &notes, true, &size), 0);
        assert_int_equal(size, b.n);
        assert_int_equal(notes.kept + notes.notes, 0);
        bytes_free(&b);
    }
}

/* A program that does not know the mark may have written the records. */
TEST(test_records_behind_an_open_one)
{
    struct notes notes = {0};
    size_t size;
    struct bytes b = with_tail("", 0);
    b.at[152 + 7] = 0x5f;
    struct seen seen = scan_bytes(&b);
    assert_int_equal(seen.records, 2);
    assert_int_equal(seen.end, LIMEFILE_E_TRAILING);
    assert_int_equal(recover_bytes(&b, &notes, false, &size), LIMEFILE_E_TRAILING);
    assert_int_equal(size, b.n);
    assert_int_equal(recover_bytes(&b, &notes, true, &size), 0);
    assert_int_equal(size, 304);
    assert_int_equal(notes.kept, 1);
    bytes_free(&b);
}

TEST(test_not_a_container)
{
    static const char zeros[200];
    struct notes notes = {0};
    size_t size;
    struct bytes b = {0};
    bytes_add(&b, "text", 4);
    assert_int_equal(recover_bytes(&b, &notes, true, &size), LIMEFILE_E_MAGIC);
    for (size_t n = 1; n < sizeof zeros; n++) {
        b.n = 0;
        bytes_add(&b, zeros, n);
        assert_int_equal(recover_bytes(&b, &notes, true, &size),
                         n == LIMEFILE_HEADER_BYTES ? 0 : LIMEFILE_E_MAGIC);
        assert_int_equal(size, n == LIMEFILE_HEADER_BYTES ? 0 : n);
    }
    assert_int_equal(notes.kept, 0);
    bytes_free(&b);
}

static void check_refused(struct bytes *b, int code)
{
    struct notes notes = {0};
    struct limefile_memory memory;
    memory_of(&memory, b);
    assert_int_equal(limefile_recover(&memory.source, note, keep, &notes), code);
    assert_int_equal(memory.size, b->n);
    assert_memory_equal(memory.data, b->at, b->n);
    assert_int_equal(notes.notes + notes.kept, 0);
    limefile_memory_release(&memory);
    bytes_free(b);
}

/* Contradictory flags, with and without a tail; a replacement without its data. */
TEST(test_refused)
{
    for (int with_tail = 0; with_tail < 2; with_tail++) {
        struct bytes b = {0};
        bytes_record(&b, "a", 8, 'x', MB);
        bytes_record(&b, "b", 8, 'x', MB | ME);
        bytes_add(&b, "tail", with_tail ? 4 : 0);
        check_refused(&b, LIMEFILE_E_FLAGS);
        bytes_record(&b, "a", 8, 'x', MB | ME);
        b.at[7] = 0x3d;
        bytes_add(&b, "tail", with_tail ? 4 : 0);
        check_refused(&b, LIMEFILE_E_MIXED);
    }
    struct bytes b = {0};
    bytes_record(&b, "a", 8, 'x', MB);
    check_refused(&b, LIMEFILE_E_FLAGS);
}

/* Recovery keeps deviations that no crash of limefs leaves. */
TEST(test_other_deviations_are_kept)
{
    struct notes notes = {0};
    struct limefile_memory memory;
    struct bytes b = {0};
    bytes_record(&b, "\xff", 3, 'x', MB);
    bytes_record(&b, "b", 8, 'x', ME);
    b.at[7] = 3;
    b.at[149] = 'p';
    size_t n = b.n;
    bytes_add(&b, "tail", 4);
    memory_of(&memory, &b);
    assert_int_equal(limefile_recover(&memory.source, note, keep, &notes), 0);
    assert_int_equal(notes.notes, 1);
    assert_int_equal(memory.size, n);
    assert_memory_equal(memory.data, b.at, n);
    limefile_memory_release(&memory);
    bytes_free(&b);
}

/* Returns a container that needs several repairs. */
static struct bytes wreck(bool open)
{
    unsigned char tail[200];
    memset(tail, 't', sizeof tail);
    raw_header(tail, "tail", 4, 0, 0);
    memset(tail, 0, 8);
    if (open)
        memset(tail, 'o', sizeof tail);
    struct bytes b = with_tail(tail, sizeof tail);
    if (open)
        b.at[456 + 7] = 0x5f;
    b.at[456 + 6] &= (unsigned char)~ME;
    b.at[456 + 144 + 13] = open ? 'p' : 0;
    return b;
}

TEST(test_failures)
{
    for (int open = 0; open < 2; open++) {
        struct bytes b = wreck(open);
        int err = -EIO;
        for (size_t n = 1; err; n++) {
            struct recorder recorder;
            recorder_init(&recorder, &b);
            recorder.fail_at = n;
            recorder.fail_code = n % 2 ? -EIO : -ENOSPC;
            err = limefile_recover(&recorder.source, NULL, NULL, NULL);
            assert_true(n < 100 && (err == 0 || err == recorder.fail_code));
            assert_int_equal(limefile_recover(&recorder.source, NULL, NULL, NULL), 0);
            assert_true(is_good(&recorder.memory));
            recorder_release(&recorder);
        }
        bytes_free(&b);
    }
}

TEST(test_crashes_of_recovery)
{
    static const struct change recovery = {.name = "recovery"};
    for (int open = 0; open < 2; open++) {
        struct recorder recorder;
        struct trial t = {.change = &recovery, .recorder = &recorder, .with = WITH_TYPES};
        t.start = wreck(open);
        recorder_init(&recorder, &t.start);
        assert_int_equal(limefile_recover(&recorder.source, NULL, NULL, NULL), 0);
        assert_int_equal(recorder.call[recorder.calls - 1].kind, SYNC);
        add_state(&t);
        crash_everywhere(&t);
        recorder_release(&recorder);
        bytes_free(&t.start);
        bytes_free(&t.state[0]);
    }
}

TEST(test_crashes)
{
    for (size_t i = 0; i < COUNT(changes); i++)
        try_change(&changes[i]);
}
