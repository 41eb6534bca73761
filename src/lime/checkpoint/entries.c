/* entries.c - read the entries of an index in blocks */
#include "entries.h"

#include <errno.h>
#include <stdlib.h>

/* ---- iterating over entries ---- */

void entries_begin(struct entries *e, struct limefile_source *source,
                   const struct limecells *is, uint64_t offset)
{
    e->source = source;
    e->is = is;
    e->offset = offset;
    e->next = 0;
    e->have = e->used = 0;
}

/* Reads the next block. Returns 1, 0 at the end, or an error. */
static int entries_fill(struct entries *e)
{
    uint64_t left = limefile_cells_cells(e->is) - e->next;
    size_t n = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE;
    if (n == 0)
        return 0;
    int err = limefile_read_exact(e->source, e->raw, n * LIMECELLS_ENTRY_BYTES,
                                  e->offset + e->next * LIMECELLS_ENTRY_BYTES);
    if (err)
        return err;
    e->next += n;
    e->have = n;
    e->used = 0;
    return 1;
}

int entries_next(struct entries *e, uint64_t *number, const unsigned char **raw)
{
    int got = e->used == e->have ? entries_fill(e) : 1;
    if (got != 1)
        return got;
    *number = e->next - e->have + e->used;
    *raw = e->raw + LIMECELLS_ENTRY_BYTES * e->used++;
    return 1;
}

/* ---- the whole index ---- */

int entries_check(struct limefile_source *source, const struct limecells *is, uint64_t offset,
                  struct limecells_checker *out)
{
    struct entries *e = malloc(sizeof *e);
    int got = e ? 1 : -ENOMEM;
    limefile_cells_check_begin(out, is);
    if (e)
        entries_begin(e, source, is, offset);
    while (got == 1) {
        got = entries_fill(e);
        if (got == 1)
            limefile_cells_check_add(out, e->raw, e->have);
    }
    if (!got)
        limefile_cells_check_end(out);
    free(e);
    return got;
}
