/* particles.c - compare a checkpoint's particles with its index
 *
 * Cells are verified in the order of their data, so that a disk reads forwards. They are sorted
 * in batches of CELLS_AT_ONCE; most checkpoints have only one batch. */
#define _GNU_SOURCE
#include "entries.h"

#include <byteswap.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELLS_AT_ONCE = 1 << 20,
    BYTES_AT_ONCE = 1 << 20, /* bytes read at a time; no particle is larger */
};

_Static_assert((int)LIMECELLS_PARTICLE_MAX <= (int)BYTES_AT_ONCE, "a particle fits");

struct numbered {
    struct limecells_cell cell;
    uint64_t number;
};

struct work {
    struct limefile_source *source;
    const struct limecheckpoint *checkpoint;
    const struct limecells *is;
    limecheckpoint_progress_fn *progress;
    void *context;
    const struct limecells_field *position;
    bool swap; /* the numbers are not in this machine's byte order */

    struct entries entries;
    struct numbered *cells; /* one batch, sorted by their data */
    size_t count;

    unsigned char *bytes; /* the data from particle `first` on */
    uint64_t first, particles;

    struct limecheckpoint_verdict *verdict;
    uint64_t worst; /* number of the first bad cell, if verdict->bad > 0 */
};

/* ---- one particle ---- */

static double coordinate(const struct work *w, const unsigned char *position, int d)
{
    uint64_t word;
    uint32_t half;
    double x;
    float y;
    if (w->position->type == LIMECELLS_FLOAT64) {
        memcpy(&word, position + 8 * d, sizeof word);
        word = w->swap ? bswap_64(word) : word;
        memcpy(&x, &word, sizeof x);
        return x;
    }
    memcpy(&half, position + 4 * d, sizeof half);
    half = w->swap ? bswap_32(half) : half;
    memcpy(&y, &half, sizeof y);
    return (double)y;
}

/* A cell, and a range of coordinates that are certainly in it. */
struct place {
    uint64_t at[LIMECELLS_DIMS];
    double low[LIMECELLS_DIMS], high[LIMECELLS_DIMS];
};

static void find_place(const struct limecells *c, uint64_t number, struct place *out)
{
    limefile_cells_at(c, number, out->at);
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        out->low[d] = limefile_cells_edge(c, d, out->at[d]);
        out->high[d] = limefile_cells_edge(c, d, out->at[d] + 1);
    }
}

/* Returns why the particle is not in the cell, or NULL. */
static const char *misplaced(const struct work *w, const unsigned char *particle,
                             const struct place *cell)
{
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        double x = coordinate(w, particle + w->position->offset, d);
        if (x >= cell->low[d] && x < cell->high[d])
            continue;
        int64_t i = limefile_cells_locate(w->is, d, x);
        if (i < 0)
            return "is outside of the domain";
        if ((uint64_t)i != cell->at[d])
            return "is in another cell";
    }
    return NULL;
}

/* ---- one cell ---- */

static void note(struct work *w, uint64_t number, const uint64_t at[LIMECELLS_DIMS],
                 const char *what)
{
    struct limecheckpoint_verdict *v = w->verdict;
    if (v->bad++ && number > w->worst)
        return;
    w->worst = number;
    memcpy(v->at, at, sizeof v->at);
    snprintf(v->why, sizeof v->why, "the first is (%" PRIu64 ", %" PRIu64 ", %" PRIu64 "): %s",
             at[0], at[1], at[2], what);
}

/* Gets the particles from `first` on in *bytes; *n: at most so many, then how many (>= 1). */
static int need(struct work *w, uint64_t first, uint64_t *n, const unsigned char **bytes)
{
    uint64_t size = w->is->particle_bytes, room = BYTES_AT_ONCE / size;
    if (first < w->first || first >= w->first + w->particles) {
        uint64_t left = w->is->particles - first;
        uint64_t more = left < room ? left : room;
        int err = limefile_read_exact(w->source, w->bytes, (size_t)(more * size),
                                      w->checkpoint->data.data_offset + first * size);
        w->particles = 0;
        if (err)
            return err;
        w->first = first;
        w->particles = more;
    }
    uint64_t have = w->first + w->particles - first;
    *n = *n < have ? *n : have;
    *bytes = w->bytes + (first - w->first) * size;
    return 0;
}

static int verify_cell(struct work *w, const struct numbered *c)
{
    uint64_t size = w->is->particle_bytes, stray = 0;
    struct place cell;
    const char *what = NULL;
    char words[64];
    uint32_t crc = 0;
    find_place(w->is, c->number, &cell);
    for (uint64_t done = 0, n; done < c->cell.count; done += n) {
        const unsigned char *bytes = NULL;
        n = c->cell.count - done;
        int err = need(w, c->cell.first + done, &n, &bytes);
        if (err)
            return err;
        crc = limefile_cells_crc(crc, bytes, (size_t)(n * size));
        for (uint64_t i = 0; !what && i < n; i++) {
            what = misplaced(w, bytes + i * size, &cell);
            stray = c->cell.first + done + i;
        }
        if (w->progress && !w->progress(w->context, n * size))
            return -EINTR;
    }
    if (what)
        snprintf(words, sizeof words, "particle %" PRIu64 " %s", stray, what);
    if (crc != c->cell.crc)
        note(w, c->number, cell.at, "wrong checksum");
    else if (what)
        note(w, c->number, cell.at, words);
    return 0;
}

/* ---- all cells ---- */

static int by_place(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    return x->cell.first < y->cell.first ? -1 : x->cell.first > y->cell.first;
}

/* Reads and sorts the next batch of cells. Returns 0 if there are no more. */
static int gather(struct work *w)
{
    struct numbered *next;
    const unsigned char *raw;
    int got = 1;
    w->count = 0;
    while (w->count < CELLS_AT_ONCE && got == 1) {
        next = &w->cells[w->count];
        got = entries_next(&w->entries, &next->number, &raw);
        /* The entry was valid before, so the file has changed. */
        if (got == 1 && limefile_cells_entry_decode(w->is, raw, &next->cell))
            return LIMEFILE_E_SHRUNK;
        w->count += got == 1 && next->cell.count > 0;
    }
    if (got < 0)
        return got;
    qsort(w->cells, w->count, sizeof *w->cells, by_place);
    return got || w->count;
}

static int verify_all(struct work *w)
{
    int got;
    while ((got = gather(w)) == 1)
        for (size_t i = 0; i < w->count; i++) {
            int err = verify_cell(w, &w->cells[i]);
            if (err)
                return err;
        }
    return got;
}

int limecheckpoint_verify(struct limefile_source *source, const struct limecheckpoint *p,
                          limecheckpoint_progress_fn *progress, void *context,
                          struct limecheckpoint_verdict *out)
{
    *out =
        (struct limecheckpoint_verdict){.cells = p->whole ? limefile_cells_cells(&p->is) : 0};
    if (!p->whole)
        return LIMEFILE_E_STATE;
    struct work *w = calloc(1, sizeof *w);
    uint64_t room = out->cells < CELLS_AT_ONCE ? out->cells : CELLS_AT_ONCE;
    if (!w)
        return -ENOMEM;
    w->source = source;
    w->checkpoint = p;
    w->is = &p->is;
    w->progress = progress;
    w->context = context;
    w->position = limefile_cells_find(&p->is, "position");
    w->swap = p->is.big_endian != (__BYTE_ORDER == __BIG_ENDIAN);
    w->verdict = out;
    w->cells = malloc((size_t)room * sizeof *w->cells);
    w->bytes = malloc(BYTES_AT_ONCE);
    entries_begin(&w->entries, source, &p->is,
                  p->index.data_offset + limefile_cells_header_bytes(&p->is));
    int err = w->cells && w->bytes ? verify_all(w) : -ENOMEM;
    free(w->cells);
    free(w->bytes);
    free(w);
    return err;
}
