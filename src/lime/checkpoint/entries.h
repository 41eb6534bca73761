/* entries.h - iterate over the entries of an index in constant memory */
#ifndef ENTRIES_H
#define ENTRIES_H

#include "limecheckpoint.h"

enum { ENTRIES_AT_ONCE = 4096 };

struct entries {
    struct limefile_source *source;
    const struct limecells *is;
    uint64_t offset;   /* offset of the first entry */
    uint64_t next;     /* number of the cell after those in raw */
    size_t have, used; /* numbers of entries in raw */
    unsigned char raw[ENTRIES_AT_ONCE * LIMECELLS_ENTRY_BYTES];
};

/* `raw` is filled when it is needed. */
void entries_begin(struct entries *, struct limefile_source *, const struct limecells *,
                   uint64_t offset);

/* Returns 1 with a cell's number and its encoded entry, 0 at the end, or an error. */
int entries_next(struct entries *, uint64_t *number, const unsigned char **raw);

/* Checks all entries of the index, which begin at `offset`. */
int entries_check(struct limefile_source *, const struct limecells *, uint64_t offset,
                  struct limecells_checker *out);

#endif
