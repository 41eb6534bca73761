/* range.c - format and parse a record's range in its container (user.limefs.range) */
#include "limerange.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define VERSION 4

int limefile_range_encode(const struct limefile_range *range,
                          char text[LIMEFILE_RANGE_TEXT_MAX])
{
    const struct limefile_identity *s = &range->container;
    int n = snprintf(text, LIMEFILE_RANGE_TEXT_MAX,
                     "%d %" PRIu64 " %" PRIu64 " %" PRId64 " %jd %ld %jd %ld %" PRIu64
                     " %" PRIu64 " %" PRIu64 " %d %s",
                     VERSION, s->dev, s->ino, s->size, (intmax_t)s->mtime.tv_sec,
                     s->mtime.tv_nsec, (intmax_t)s->ctime.tv_sec, s->ctime.tv_nsec,
                     range->offset, range->bytes, range->prefix, range->has_job, range->path);
    return n < 0 || n >= LIMEFILE_RANGE_TEXT_MAX ? -ERANGE : n;
}

/* ---- parsing: without sscanf(), which is not async-signal-safe ---- */

struct cursor {
    const char *at, *end;
    int is_invalid;
};

/* Parses a decimal number of up to 64 bits and the space after it. */
static uint64_t parse_unsigned(struct cursor *cursor)
{
    uint64_t n = 0;
    const char *begin = cursor->at;
    while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
        unsigned digit = (unsigned)(*cursor->at++ - '0');
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n))
            cursor->is_invalid = 1;
    }
    if (cursor->at == begin || cursor->at == cursor->end || *cursor->at++ != ' ')
        cursor->is_invalid = 1;
    return n;
}

static int64_t parse_signed(struct cursor *cursor)
{
    int negative = cursor->at < cursor->end && *cursor->at == '-';
    cursor->at += negative;
    uint64_t n = parse_unsigned(cursor);
    if (n > INT64_MAX)
        cursor->is_invalid = 1;
    return negative ? -(int64_t)(n & INT64_MAX) : (int64_t)(n & INT64_MAX);
}

static uint32_t parse_nanoseconds(struct cursor *cursor)
{
    uint64_t n = parse_unsigned(cursor);
    if (n > 999999999)
        cursor->is_invalid = 1;
    return (uint32_t)n;
}

/* Returns true for an absolute path of that many bytes. */
static int is_path(const char *path, size_t bytes)
{
    return bytes > 0 && bytes < LIMEFILE_RANGE_PATH_MAX && *path == '/' &&
           !memchr(path, '\0', bytes);
}

int limefile_range_decode(char *text, size_t len, struct limefile_range *range)
{
    struct cursor cursor = {text, text + len, 0};
    struct limefile_identity *s = &range->container;
    if (parse_unsigned(&cursor) != VERSION)
        return -EPROTO;
    s->dev = parse_unsigned(&cursor);
    s->ino = parse_unsigned(&cursor);
    uint64_t size = parse_unsigned(&cursor);
    s->mtime.tv_sec = parse_signed(&cursor);
    s->mtime.tv_nsec = parse_nanoseconds(&cursor);
    s->ctime.tv_sec = parse_signed(&cursor);
    s->ctime.tv_nsec = parse_nanoseconds(&cursor);
    range->offset = parse_unsigned(&cursor);
    range->bytes = parse_unsigned(&cursor);
    range->prefix = parse_unsigned(&cursor);
    uint64_t has_job = parse_unsigned(&cursor);
    range->has_job = has_job == 1;
    if (cursor.is_invalid || has_job > 1 || size > INT64_MAX || range->offset > size ||
        range->bytes > size - range->offset || range->prefix > INT64_MAX)
        return -EPROTO;
    s->size = (int64_t)size;
    size_t left = (size_t)(cursor.end - cursor.at);
    if (!is_path(cursor.at, left))
        return -EPROTO;
    text[len] = '\0';
    range->path = cursor.at;
    return 0;
}
