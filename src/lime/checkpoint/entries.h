/* entries.h - the entries of an index, one after another, in little memory */
#ifndef ENTRIES_H
#define ENTRIES_H

#include "limecheckpoint.h"

enum { ENTRIES_AT_ONCE = 4096 };

struct entries {
    struct limefile_source *source;
    const struct limecells *is;
    uint64_t offset;   /* of the first one */
    uint64_t next;     /* number of the cell after those in raw */
    size_t have, used; /* in raw, entries */
    unsigned char raw[ENTRIES_AT_ONCE * LIMECELLS_ENTRY_BYTES];
};

/* `raw` is filled as it is needed; the rest is small. */
void entries_begin(struct entries *, struct limefile_source *, const struct limecells *,
                   uint64_t offset);

/* 1: a cell, its number in *number, its entry as bytes; 0: that were all; or an error. */
int entries_next(struct entries *, uint64_t *number, const unsigned char **raw);

/* Checks the entries of the whole index, which begin at `offset`. */
int entries_check(struct limefile_source *, const struct limecells *, uint64_t offset,
                  struct limecells_checker *out);

#endif
