/* unit.h - helpers of the unit tests: containers built by hand, failing sources */
#ifndef UNIT_H
#define UNIT_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#include "limefile.h"
#include "splitmix64.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The same numbers in every run, so that a failure can be reproduced. */
static inline uint64_t chance(uint64_t *state)
{
    return mix64(*state += MIX64_STEP);
}

/* ---- growing byte arrays, written without the library's encoder ---- */

struct bytes {
    unsigned char *at;
    size_t n, capacity;
};

/* Reserves n more bytes; `at` is not NULL afterwards. */
static inline void bytes_reserve(struct bytes *b, size_t n)
{
    if (b->at && b->n + n <= b->capacity)
        return;
    b->capacity = 2 * (b->n + n) + 64;
    b->at = realloc(b->at, b->capacity);
    assert_non_null(b->at);
}

static inline void bytes_add(struct bytes *b, const void *data, size_t n)
{
    bytes_reserve(b, n);
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

static inline void bytes_fill(struct bytes *b, int value, size_t n)
{
    bytes_reserve(b, n);
    memset(b->at + b->n, value, n);
    b->n += n;
}

static inline void bytes_free(struct bytes *b)
{
    free(b->at);
    *b = (struct bytes){0};
}

/* The 144 bytes of a header as in docs/format.md. */
static inline void raw_header(unsigned char raw[144], const char *type, size_t type_len,
                              uint64_t bytes, unsigned flags)
{
    static const unsigned char start[6] = {0x45, 0x67, 0x89, 0xab, 0x00, 0x01};
    memset(raw, 0, 144);
    memcpy(raw, start, sizeof start);
    raw[6] = (unsigned char)flags;
    for (int i = 0; i < 8; i++)
        raw[8 + i] = (unsigned char)(bytes >> (56 - 8 * i));
    memcpy(raw + 16, type, type_len);
}

static inline void bytes_header(struct bytes *b, const char *type, uint64_t bytes,
                                unsigned flags)
{
    unsigned char raw[144];
    raw_header(raw, type, strlen(type), bytes, flags);
    bytes_add(b, raw, sizeof raw);
}

/* Adds a record of n data bytes, each `value`. */
static inline void bytes_record(struct bytes *b, const char *type, size_t n, int value,
                                unsigned flags)
{
    bytes_header(b, type, n, flags);
    bytes_fill(b, value, n);
    bytes_fill(b, 0, (8 - n % 8) % 8);
}

static inline void bytes_text(struct bytes *b, const char *type, const char *text,
                              unsigned flags)
{
    size_t n = strlen(text);
    bytes_header(b, type, n, flags);
    bytes_add(b, text, n);
    bytes_fill(b, 0, (8 - n % 8) % 8);
}

enum {
    MB = 0x80,
    ME = 0x40,
};

/* ---- a scan with all its findings ---- */

enum { FINDINGS_MAX = 64 };

struct seen {
    struct limefile_finding finding[FINDINGS_MAX];
    size_t findings; /* may be more than FINDINGS_MAX */
    size_t records;
    int end; /* result of the last limefile_scan_next() */
};

static inline void seen_report(void *context, const struct limefile_finding *finding)
{
    struct seen *seen = context;
    if (seen->findings < FINDINGS_MAX)
        seen->finding[seen->findings] = *finding;
    seen->findings++;
}

static inline struct seen scan_source(struct limefile_source *source)
{
    struct seen seen = {0};
    struct limefile_scan *scan = NULL;
    struct limefile_record record;
    assert_int_equal(limefile_scan_new(source, seen_report, &seen, &scan), 0);
    while ((seen.end = limefile_scan_next(scan, &record)) == 1) {
        seen.records++;
        assert_int_equal(record.ordinal, seen.records);
    }
    assert_int_equal(limefile_scan_next(scan, &record), seen.end); /* repeatable */
    limefile_scan_free(scan);
    return seen;
}

static inline struct seen scan_bytes(const struct bytes *b)
{
    struct limefile_memory memory;
    limefile_memory_borrow(&memory, b->at, b->n);
    return scan_source(&memory.source);
}

static inline void assert_finding(const struct seen *seen, size_t i, int code, uint64_t offset,
                                  uint64_t ordinal)
{
    assert_true(i < seen->findings);
    assert_string_equal(limefile_error_word(seen->finding[i].code), limefile_error_word(code));
    assert_int_equal(seen->finding[i].offset, offset);
    assert_int_equal(seen->finding[i].ordinal, ordinal);
}

/* There are `good` records, then exactly one finding. */
static inline void assert_only(const struct bytes *b, size_t records, int code, uint64_t offset,
                               uint64_t ordinal)
{
    struct seen seen = scan_bytes(b);
    assert_int_equal(seen.findings, 1);
    assert_finding(&seen, 0, code, offset, ordinal);
    assert_int_equal(seen.records, records);
    assert_int_equal(seen.end, limefile_is_fault(code) ? code : 0);
}

static inline struct limefile_index *index_of(struct limefile_source *source)
{
    struct limefile_index *index = NULL;
    assert_int_equal(limefile_index_build(source, &index), 0);
    assert_non_null(index);
    return index;
}

/* ---- a failing source in front of memory ---- */

struct faulty {
    struct limefile_source source;
    struct limefile_memory memory;
    size_t short_by;    /* moves at most this many bytes a call; 0: all */
    unsigned interrupt; /* one of this many calls fails first with EINTR; 0: none */
    unsigned fail_at;   /* this call fails (from 1; 0: none) ... */
    unsigned fail_for;  /* ... and this many in total */
    unsigned calls;
    uint64_t moved;
};

static inline int faulty_begin(struct faulty *faulty, size_t *n)
{
    faulty->calls++;
    if (faulty->fail_at && faulty->calls >= faulty->fail_at &&
        faulty->calls - faulty->fail_at < faulty->fail_for)
        return -EIO;
    if (faulty->interrupt && faulty->calls % faulty->interrupt == 0)
        return -EINTR;
    if (faulty->short_by && *n > faulty->short_by)
        *n = faulty->short_by;
    return 0;
}

static inline ssize_t faulty_read(struct limefile_source *source, void *buf, size_t n,
                                  uint64_t offset)
{
    struct faulty *faulty = (struct faulty *)source;
    int err = faulty_begin(faulty, &n);
    ssize_t got =
        err ? err : faulty->memory.source.ops->read(&faulty->memory.source, buf, n, offset);
    faulty->moved += got > 0 ? (uint64_t)got : 0;
    return got;
}

static inline ssize_t faulty_write(struct limefile_source *source, const void *buf, size_t n,
                                   uint64_t offset)
{
    struct faulty *faulty = (struct faulty *)source;
    int err = faulty_begin(faulty, &n);
    return err ? err : faulty->memory.source.ops->write(&faulty->memory.source, buf, n, offset);
}

static inline int faulty_size(struct limefile_source *source, uint64_t *size)
{
    *size = ((struct faulty *)source)->memory.size;
    return 0;
}

static const struct limefile_source_ops faulty_ops = {
    .read = faulty_read,
    .size = faulty_size,
    .write = faulty_write,
};

static inline void faulty_init(struct faulty *faulty, const struct bytes *b)
{
    *faulty = (struct faulty){.source.ops = &faulty_ops};
    if (b)
        limefile_memory_borrow(&faulty->memory, b->at, b->n);
    else
        limefile_memory_init(&faulty->memory);
}

#endif
