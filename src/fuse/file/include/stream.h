/*
 * stream.h - sees that a file is read in sequence and fetches ahead of it.
 *
 * The kernel's requests for one stream come out of order and by several threads, which the
 * kernel's own read-ahead on the container takes for random access. So the daemon tells it.
 */
#ifndef LIMEFS_STREAM_H
#define LIMEFS_STREAM_H

#include <stddef.h>
#include <stdint.h>

/* All zero to begin with. Offsets are in the file that is read. */
struct limefs_stream {
    uint64_t next;   /* the end of the furthest request of this run */
    uint64_t ahead;  /* up to here it has been asked for */
    unsigned length; /* requests in this run */
};

/* Takes note of a request; what to fetch now: *n bytes at the returned offset, 0 for none.
 * `end` is where the file ends. */
uint64_t limefs_stream_note(struct limefs_stream *, uint64_t offset, size_t size, uint64_t end,
                            uint64_t *n);

/* What follows is fetched in another way: nothing is to be while the reader is before `to`. */
void limefs_stream_cover(struct limefs_stream *, uint64_t to);

#endif
