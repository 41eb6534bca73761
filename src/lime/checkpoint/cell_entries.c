/* cell_entries.c - read the entries of an index in blocks */
#include "cell_entries.h"

#include <errno.h>
#include <stdlib.h>

void cell_entries_begin(struct cell_entries *e, struct limefile_source *source,
                        const struct limecells *cells, uint64_t offset)
{
    e->source = source;
    e->cells = cells;
    e->offset = offset;
    e->next = 0;
    e->count = e->used = 0;
}

/* Reads the next block. Returns 1, 0 at the end, or an error. */
static int cell_entries_fill(struct cell_entries *e)
{
    uint64_t left = limefile_cells_count(e->cells) - e->next;
    size_t n = left < CELL_ENTRIES_AT_ONCE ? (size_t)left : CELL_ENTRIES_AT_ONCE;
    if (n == 0)
        return 0;
    int err = limefile_read_exact(e->source, e->raw, n * LIMECELLS_ENTRY_BYTES,
                                  e->offset + e->next * LIMECELLS_ENTRY_BYTES);
    if (err)
        return err;
    e->next += n;
    e->count = n;
    e->used = 0;
    return 1;
}

int cell_entries_next(struct cell_entries *e, uint64_t *number, const unsigned char **raw)
{
    int got = e->used == e->count ? cell_entries_fill(e) : 1;
    if (got != 1)
        return got;
    *number = e->next - e->count + e->used;
    *raw = e->raw + LIMECELLS_ENTRY_BYTES * e->used++;
    return 1;
}

int cell_entries_check(struct limefile_source *source, const struct limecells *cells,
                       uint64_t offset, struct limecells_checker *out)
{
    struct cell_entries *e = malloc(sizeof *e);
    int got = e ? 1 : -ENOMEM;
    limefile_cells_check_begin(out, cells);
    if (e)
        cell_entries_begin(e, source, cells, offset);
    while (got == 1) {
        got = cell_entries_fill(e);
        if (got == 1)
            limefile_cells_check_add(out, e->raw, e->count);
    }
    if (!got)
        limefile_cells_check_end(out);
    free(e);
    return got;
}
