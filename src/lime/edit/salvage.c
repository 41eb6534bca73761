/* salvage.c - search a byte range for a whole record */
#define _GNU_SOURCE
#include "limeedit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 4 * 1024 * 1024,
    PATTERN_BYTES = 6, /* magic and version */
};

/* Returns 1 if a whole record, header and data, is at `offset`; 0 if not; or an error code. */
static int is_whole_record(struct limefile_source *source, uint64_t offset, uint64_t size,
                           struct limefile_salvage *out)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    uint64_t data_end, next;
    ssize_t got = limefile_read_full(source, raw, sizeof raw, offset);
    if (got < 0)
        return (int)got;
    out->offset = offset;
    return got == (ssize_t)sizeof raw && limefile_header_decode(raw, &out->header) == 0 &&
           limefile_record_end(offset, out->header.bytes, &data_end, &next) == 0 &&
           data_end <= size;
}

static void make_pattern(unsigned char pattern[PATTERN_BYTES])
{
    struct limefile_header header;
    unsigned char raw[LIMEFILE_HEADER_BYTES] = {0};
    if (limefile_header_init(&header, "", 0, 0, false, false) == 0)
        limefile_header_encode(&header, raw);
    memcpy(pattern, raw, PATTERN_BYTES);
}

/* Searches at every byte, not only at multiples of 8: a damaged file may have lost bytes. */
static int search_block(struct limefile_source *source, const char *block, size_t n,
                        uint64_t offset, uint64_t size, struct limefile_salvage *out)
{
    unsigned char pattern[PATTERN_BYTES];
    make_pattern(pattern);
    const char *at = block, *end = block + n;
    while ((at = memmem(at, (size_t)(end - at), pattern, sizeof pattern))) {
        int found = is_whole_record(source, offset + (uint64_t)(at - block), size, out);
        if (found)
            return found;
        at++;
    }
    return 0;
}

int limefile_salvage_find(struct limefile_source *source, uint64_t from, uint64_t size,
                          limefile_progress_fn *progress, void *context,
                          struct limefile_salvage *out)
{
    int found = 0;
    uint64_t start = from;
    char *block = malloc(BLOCK_BYTES);
    if (!block)
        return -ENOMEM;
    while (!found && from < size && size - from >= LIMEFILE_HEADER_BYTES) {
        ssize_t got = limefile_read_full(source, block, BLOCK_BYTES, from);
        if (got < PATTERN_BYTES) {
            found = got < 0 ? (int)got : 0;
            break;
        }
        found = search_block(source, block, (size_t)got, from, size, out);
        /* Let blocks overlap, so that no pattern is missed at the end of a block. */
        from += (uint64_t)got - (PATTERN_BYTES - 1);
        if (progress)
            progress(context, from - start, size - start);
    }
    free(block);
    return found;
}
