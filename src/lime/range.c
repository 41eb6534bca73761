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
                     range->offset, range->bytes, range->head, range->has_job, range->path);
    return n < 0 || n >= LIMEFILE_RANGE_TEXT_MAX ? -ERANGE : n;
}

/* ---- parsing: without sscanf(), which is not async-signal-safe ---- */

struct reader {
    const char *at, *end;
    int bad;
};

/* Parses a decimal number of up to 64 bits and the space after it. */
static uint64_t unsigned_number(struct reader *reader)
{
    uint64_t n = 0;
    const char *begin = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9') {
        unsigned digit = (unsigned)(*reader->at++ - '0');
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n))
            reader->bad = 1;
    }
    if (reader->at == begin || reader->at == reader->end || *reader->at++ != ' ')
        reader->bad = 1;
    return n;
}

static int64_t signed_number(struct reader *reader)
{
    int negative = reader->at < reader->end && *reader->at == '-';
    reader->at += negative;
    uint64_t n = unsigned_number(reader);
    if (n > INT64_MAX)
        reader->bad = 1;
    return negative ? -(int64_t)(n & INT64_MAX) : (int64_t)(n & INT64_MAX);
}

static uint32_t nanoseconds(struct reader *reader)
{
    uint64_t n = unsigned_number(reader);
    if (n > 999999999)
        reader->bad = 1;
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
    struct reader reader = {text, text + len, 0};
    struct limefile_identity *s = &range->container;
    if (unsigned_number(&reader) != VERSION)
        return -EPROTO;
    s->dev = unsigned_number(&reader);
    s->ino = unsigned_number(&reader);
    uint64_t size = unsigned_number(&reader);
    s->mtime.tv_sec = signed_number(&reader);
    s->mtime.tv_nsec = nanoseconds(&reader);
    s->ctime.tv_sec = signed_number(&reader);
    s->ctime.tv_nsec = nanoseconds(&reader);
    range->offset = unsigned_number(&reader);
    range->bytes = unsigned_number(&reader);
    range->head = unsigned_number(&reader);
    uint64_t has_job = unsigned_number(&reader);
    range->has_job = has_job == 1;
    if (reader.bad || has_job > 1 || size > INT64_MAX || range->offset > size ||
        range->bytes > size - range->offset || range->head > INT64_MAX)
        return -EPROTO;
    s->size = (int64_t)size;
    size_t left = (size_t)(reader.end - reader.at);
    if (!is_path(reader.at, left))
        return -EPROTO;
    text[len] = '\0';
    range->path = reader.at;
    return 0;
}
