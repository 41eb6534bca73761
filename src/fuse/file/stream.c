/* stream.c - sees that a file is read in sequence */
#include "stream.h"

#define MIB (UINT64_C(1) << 20)

/* Measured: docs/performance.md. */
static const uint64_t window = 32 * MIB; /* how far ahead */
static const uint64_t step = 8 * MIB;    /* fetched at once */
static const uint64_t near = 16 * MIB;   /* requests of one stream are no further apart */
static const size_t small = 64 * 1024;   /* a reader of less than this is no stream */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void limefs_stream_cover(struct limefs_stream *stream, uint64_t to)
{
    if (stream->ahead < to + window)
        stream->ahead = to + window;
}

uint64_t limefs_stream_note(struct limefs_stream *stream, uint64_t offset, size_t size,
                            uint64_t end, uint64_t *n)
{
    *n = 0;
    if (size < small)
        return 0;
    uint64_t distance = offset > stream->next ? offset - stream->next : stream->next - offset;
    if (distance > near) {
        *stream = (struct limefs_stream){0};
        stream->ahead = offset + size;
    }
    if (stream->next < offset + size)
        stream->next = offset + size;
    if (stream->ahead < stream->next)
        stream->ahead = stream->next;
    stream->length++;
    uint64_t want = smaller(stream->next + window, end);
    if (stream->length < 2 || stream->ahead >= want ||
        (want - stream->ahead < step && want < end))
        return 0;
    uint64_t from = stream->ahead;
    *n = smaller(want - from, step);
    stream->ahead += *n;
    return from;
}
