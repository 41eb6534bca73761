/* cell_entries.h - iterate over the entries of an index in constant memory */
#ifndef CELL_ENTRIES_H
#define CELL_ENTRIES_H

#include "limecheckpoint.h"

enum { CELL_ENTRIES_AT_ONCE = 4096 };

struct cell_entries {
    struct limefile_source *source;
    const struct limecells *cells;
    uint64_t offset;    /* offset of the first entry */
    uint64_t next;      /* number of the next cell to read into raw */
    size_t count, used; /* numbers of entries in raw */
    unsigned char raw[CELL_ENTRIES_AT_ONCE * LIMECELLS_ENTRY_BYTES];
};

/* Begins at the first entry, which is at `offset`. Reads nothing. */
void cell_entries_begin(struct cell_entries *, struct limefile_source *,
                        const struct limecells *, uint64_t offset);

/* Returns 1 with a cell's number and its encoded entry (valid until the next call), 0 at the
 * end, or an error. */
int cell_entries_next(struct cell_entries *, uint64_t *number, const unsigned char **raw);

/* Checks all entries of the index, from `offset` on. Returns 0 and the result *out, or an
 * error. */
int cell_entries_check(struct limefile_source *, const struct limecells *, uint64_t offset,
                       struct limecells_checker *out);

#endif
