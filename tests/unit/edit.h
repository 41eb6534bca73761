/* edit.h - scripts of container changes, over a source that records writes and can fail */
#ifndef TEST_EDIT_H
#define TEST_EDIT_H

#include "unit.h"
#include "limeedit.h"

/* ---- a source that records calls ---- */

enum kind {
    WRITE,
    TRUNCATE,
    SYNC,
};

struct call {
    enum kind kind;
    uint64_t offset; /* or size */
    size_t n;
    unsigned char *data;
};

enum { CALLS_MAX = 512 };

struct recorder {
    struct limefile_source source;
    struct limefile_memory memory;
    struct call call[CALLS_MAX];
    size_t calls;   /* successful calls */
    size_t tried;   /* all calls, also reads */
    size_t fail_at; /* number of the call that fails, from 1; 0: none */
    int fail_code;
    bool partly; /* a write that fails writes its first half */
    bool full;   /* writes fail until the file is truncated */
};

static inline int recorder_try(struct recorder *r)
{
    return ++r->tried == r->fail_at ? r->fail_code : 0;
}

static inline void recorder_note(struct recorder *r, enum kind kind, uint64_t offset,
                                 const void *data, size_t n)
{
    assert_true(r->calls < CALLS_MAX);
    struct call *call = &r->call[r->calls++];
    *call = (struct call){kind, offset, n, n ? malloc(n) : NULL};
    if (n)
        memcpy(call->data, data, n);
}

static inline ssize_t recorder_read(struct limefile_source *source, void *buf, size_t n,
                                    uint64_t offset)
{
    struct recorder *r = (struct recorder *)source;
    int err = recorder_try(r);
    return err ? err : r->memory.source.ops->read(&r->memory.source, buf, n, offset);
}

static inline ssize_t recorder_write(struct limefile_source *source, const void *buf, size_t n,
                                     uint64_t offset)
{
    struct recorder *r = (struct recorder *)source;
    int err = recorder_try(r);
    if (r->full)
        return -ENOSPC;
    if (err && r->partly && n > 1) {
        r->fail_at++;
        n /= 2;
    } else if (err) {
        return err;
    }
    recorder_note(r, WRITE, offset, buf, n);
    return r->memory.source.ops->write(&r->memory.source, buf, n, offset);
}

static inline int recorder_truncate(struct limefile_source *source, uint64_t size)
{
    struct recorder *r = (struct recorder *)source;
    int err = recorder_try(r);
    if (err)
        return err;
    recorder_note(r, TRUNCATE, size, NULL, 0);
    r->full = r->full && size >= r->memory.size;
    return r->memory.source.ops->truncate(&r->memory.source, size);
}

static inline int recorder_sync(struct limefile_source *source)
{
    struct recorder *r = (struct recorder *)source;
    int err = recorder_try(r);
    if (!err)
        recorder_note(r, SYNC, 0, NULL, 0);
    return err;
}

static inline int recorder_size(struct limefile_source *source, uint64_t *size)
{
    *size = ((struct recorder *)source)->memory.size;
    return 0;
}

static const struct limefile_source_ops recorder_ops = {
    .read = recorder_read,
    .size = recorder_size,
    .write = recorder_write,
    .truncate = recorder_truncate,
    .sync = recorder_sync,
};

static inline void memory_of(struct limefile_memory *memory, const struct bytes *b)
{
    limefile_memory_init(memory);
    if (b->n)
        assert_int_equal(limefile_write_full(&memory->source, b->at, b->n, 0), 0);
}

static inline void recorder_init(struct recorder *r, const struct bytes *b)
{
    *r = (struct recorder){.source.ops = &recorder_ops};
    memory_of(&r->memory, b);
}

static inline void recorder_release(struct recorder *r)
{
    for (size_t i = 0; i < r->calls; i++)
        free(r->call[i].data);
    limefile_memory_release(&r->memory);
}

/* ---- editors ---- */

static inline struct limefile_editor *editor_of(struct limefile_source *source)
{
    struct limefile_editor *editor = NULL;
    struct limefile_index *index = index_of(source);
    assert_int_equal(limefile_editor_new(source, index, &editor), 0);
    limefile_index_free(index);
    return editor;
}

static inline struct limefile_last_record last_of(const struct limefile_editor *editor)
{
    struct limefile_last_record last;
    assert_int_equal(limefile_editor_last(editor, &last), 0);
    return last;
}

/* ---- scripts ---- */

enum what {
    END,
    BEGIN,   /* text */
    MESSAGE, /* n: mb */
    GROWTH,
    DATA,   /* at, n, value */
    TEXT,   /* at, text: data */
    COMMIT, /* n */
    RESIZE, /* at: current length, n: new length */
    REMOVE,
    TYPE,     /* text */
    BOUNDARY, /* at: header before, n: header after, value: boundary */
    FULL,     /* needs a recorder */
    REPLACE,  /* at: ordinal, n, value */
};

struct action {
    enum what what;
    uint64_t at, n;
    int value;
    const char *text;
    size_t text_len; /* 0: strlen */
};

enum { SCRIPT_MAX = 16 };

static inline int write_data(struct limefile_editor *editor, struct limefile_source *source,
                             const struct action *a)
{
    struct bytes data = {0};
    if (a->text)
        bytes_add(&data, a->text, a->text_len ? a->text_len : strlen(a->text));
    else
        bytes_fill(&data, a->value, a->n);
    int err = limefile_write_full(source, data.at, data.n, last_of(editor).data_offset + a->at);
    bytes_free(&data);
    return err;
}

static inline int replace_data(struct limefile_editor *editor, struct limefile_source *source,
                               const struct action *a)
{
    struct limefile_redo redo;
    struct limefile_record record;
    struct bytes data = {0};
    struct limefile_index *index = index_of(source);
    assert_int_equal(limefile_index_get(index, a->at, &record), 0);
    bytes_fill(&data, a->value, a->n);
    int err = limefile_redo_begin(editor, &record, a->n, &redo);
    if (!err)
        err = limefile_write_full(source, data.at, data.n, redo.offset);
    if (!err)
        err = limefile_redo_commit(editor, &redo);
    limefile_index_free(index);
    bytes_free(&data);
    return err;
}

static inline int act(struct limefile_editor *editor, struct limefile_source *source,
                      const struct action *a)
{
    switch (a->what) {
    case BEGIN:
        return limefile_append_begin(editor, a->text, strlen(a->text));
    case MESSAGE:
        return limefile_editor_set_mb(editor, a->n);
    case GROWTH:
        return limefile_growth_begin(editor);
    case DATA:
    case TEXT:
        return write_data(editor, source, a);
    case COMMIT:
        return limefile_commit(editor, a->n);
    case RESIZE:
        return limefile_resize(editor, a->at, a->n);
    case REMOVE:
        return limefile_remove_last(editor);
    case TYPE:
        return limefile_editor_set_type(editor, a->text, strlen(a->text));
    case BOUNDARY:
        return limefile_set_boundary(source, a->at, a->n, a->value);
    case FULL:
        ((struct recorder *)source)->full = true;
        return 0;
    case REPLACE:
        return replace_data(editor, source, a);
    default:
        return 0;
    }
}

/* Returns the first error, or 0; *done is the number of successful actions. */
static inline int perform(struct limefile_editor *editor, struct limefile_source *source,
                          const struct action *script, size_t *done)
{
    for (*done = 0; script[*done].what != END; ++*done) {
        int err = act(editor, source, &script[*done]);
        if (err)
            return err;
    }
    return 0;
}

/* ---- contents of a container ---- */

enum {
    WITH_TYPES = 1,
    WITH_FLAGS = 2,
};

/* Returns all records as bytes that can be compared. */
static inline struct bytes contents_of(const struct limefile_memory *memory, int with)
{
    struct bytes out = {0};
    struct limefile_memory view;
    struct limefile_record record;
    limefile_memory_borrow(&view, memory->data, memory->size);
    struct limefile_index *index = index_of(&view.source);
    for (uint64_t i = 1; limefile_index_get(index, i, &record) == 0; i++) {
        if (with & WITH_TYPES)
            bytes_add(&out, record.type, record.type_len + 1u);
        if (with & WITH_FLAGS)
            bytes_fill(&out, record.mb * 2 + record.me, 1);
        bytes_add(&out, &record.bytes, sizeof record.bytes);
        if (record.bytes)
            bytes_add(&out, memory->data + record.data_offset, record.bytes);
    }
    limefile_index_free(index);
    return out;
}

static inline bool same_bytes(const struct bytes *a, const struct bytes *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->at, b->at, a->n) == 0);
}

/* The container has no fault and no deviation. */
static inline bool is_good(const struct limefile_memory *memory)
{
    struct limefile_memory view;
    limefile_memory_borrow(&view, memory->data, memory->size);
    struct seen seen = scan_source(&view.source);
    return seen.end == 0 && seen.findings == 0;
}

#endif
