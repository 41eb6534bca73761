/*
 * entries.c - is an index good? In memory that does not grow with it
 *
 * The ranges of all cells cover the data once if each place where one begins, but for 0, is one
 * where another ends, and the reverse, but for the end of the data; the same place as often.
 * (No range is empty, so following them from 0 comes to the end, and none is left for a
 * circle.) Sums of hashes of the places tell; the hash has a key that nobody knows beforehand.
 */
#define _GNU_SOURCE
#include "entries.h"
#include "mix.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

/* A damaged index up to this size is looked at once more, as a whole, for the cell. */
#define NAMED_MAX (UINT64_C(64) << 20)

/* ---- one after another ---- */

void entries_begin(struct entries *e, struct limefile_source *source,
                   const struct limecells *is, uint64_t offset)
{
    e->source = source;
    e->is = is;
    e->offset = offset;
    e->next = 0;
    e->crc = 0;
    e->have = e->used = 0;
}

static int fill(struct entries *e, uint64_t left)
{
    size_t n = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE;
    ssize_t got = limefile_read_full(e->source, e->raw, n * LIMECELLS_ENTRY_BYTES,
                                     e->offset + e->next * LIMECELLS_ENTRY_BYTES);
    if (got < 0)
        return (int)got;
    if ((size_t)got < n * LIMECELLS_ENTRY_BYTES)
        return LIMEFILE_E_SHRUNK;
    e->crc = limefile_cells_crc(e->crc, e->raw, n * LIMECELLS_ENTRY_BYTES);
    e->have = n;
    e->used = 0;
    return 0;
}

int entries_next(struct entries *e, uint64_t *number, const unsigned char **raw)
{
    uint64_t left = limefile_cells_cells(e->is) - e->next;
    if (left == 0)
        return 0;
    int err = e->used == e->have ? fill(e, left) : 0;
    if (err)
        return err;
    *number = e->next++;
    *raw = e->raw + LIMECELLS_ENTRY_BYTES * e->used++;
    return 1;
}

/* ---- do they cover the data? ---- */

struct places {
    uint64_t key[2];
    uint64_t sum; /* of those where a range begins, less those where one ends */
};

static void begin_places(struct places *p)
{
    uint64_t here = (uint64_t)(uintptr_t)p;
    *p = (struct places){.key = {here, here >> 7}};
    ssize_t got = getrandom(p->key, sizeof p->key, GRND_NONBLOCK);
    (void)got; /* what is there is better than nothing */
}

static uint64_t hash(const struct places *p, uint64_t place)
{
    return mix64(mix64(place + p->key[0]) ^ p->key[1]);
}

static void add_range(struct places *p, uint64_t first, uint64_t count)
{
    if (count)
        p->sum += hash(p, first) - hash(p, first + count);
}

static bool cover(const struct places *p, uint64_t particles)
{
    return p->sum == hash(p, 0) - hash(p, particles);
}

/* ---- the whole index ---- */

struct check {
    struct entries entries;
    struct places places;
    const char *why;
    uint64_t bad;
};

static void add(struct check *c, struct limecheckpoint *p, const unsigned char *raw,
                uint64_t number)
{
    struct limecells_cell cell;
    const char *why = limefile_cells_decode_entry(&p->is, raw, &cell);
    if (why && !c->why) {
        c->why = why;
        c->bad = number;
    }
    if (c->why)
        return;
    add_range(&c->places, cell.first, cell.count);
    p->empty += cell.count == 0;
    p->most = cell.count > p->most ? cell.count : p->most;
    p->fewest = cell.count < p->fewest ? cell.count : p->fewest;
}

/* Of one whose ranges are wrong: which cell's is? */
static int name_cell(struct limefile_source *source, const struct limecheckpoint *p,
                     struct check *c)
{
    uint64_t cells = limefile_cells_cells(&p->is);
    size_t n = (size_t)(cells * LIMECELLS_ENTRY_BYTES);
    c->why = "the cells overlap, or leave particles out";
    c->bad = cells;
    if (cells * LIMECELLS_ENTRY_BYTES > NAMED_MAX)
        return 0;
    unsigned char *raw = malloc(n);
    struct limecells_cell *cell = calloc((size_t)cells, sizeof *cell);
    ssize_t got =
        raw && cell
            ? limefile_read_full(source, raw, n,
                                 p->index.data_offset + limefile_cells_header_bytes(&p->is))
            : -ENOMEM;
    if (got == (ssize_t)n) {
        uint64_t bad;
        const char *why = limefile_cells_decode_entries(&p->is, raw, cell, &bad);
        c->why = why ? why : c->why;
        c->bad = why ? bad : c->bad;
    }
    free(raw);
    free(cell);
    return got < 0 ? (int)got : (size_t)got < n ? LIMEFILE_E_SHRUNK : 0;
}

static int check_all(struct limefile_source *source, struct limecheckpoint *p, struct check *c)
{
    const unsigned char *raw;
    uint64_t number;
    int got;
    begin_places(&c->places);
    entries_begin(&c->entries, source, &p->is,
                  p->index.data_offset + limefile_cells_header_bytes(&p->is));
    while ((got = entries_next(&c->entries, &number, &raw)) == 1)
        add(c, p, raw, number);
    if (got < 0)
        return got;
    if (c->entries.crc != p->is.entries_crc) {
        c->why = "the cells' entries do not have the checksum that the header says";
        c->bad = limefile_cells_cells(&p->is);
    }
    return c->why || cover(&c->places, p->is.particles) ? 0 : name_cell(source, p, c);
}

int entries_check(struct limefile_source *source, struct limecheckpoint *p, const char **why,
                  uint64_t *bad)
{
    struct check *c = malloc(sizeof *c);
    if (!c)
        return -ENOMEM;
    c->why = NULL;
    c->bad = limefile_cells_cells(&p->is);
    p->empty = p->most = 0;
    p->fewest = UINT64_MAX;
    int err = check_all(source, p, c);
    *why = c->why;
    *bad = c->bad;
    free(c);
    return err;
}
