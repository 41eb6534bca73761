/* verify_particles.c - compare a checkpoint's particles with its index
 *
 * Cells are verified in the order of their data, so that a disk reads forwards. They are sorted
 * in batches of CELLS_AT_ONCE; most checkpoints have only one batch. */
#define _GNU_SOURCE
#include "cell_entries.h"

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

struct numbered_cell {
    struct limecells_cell cell;
    uint64_t number;
};

struct verifier {
    struct limefile_source *source;
    const struct limecheckpoint *checkpoint;
    const struct limecells *description;
    limecheckpoint_progress_fn *progress;
    void *context;
    const struct limecells_field *position;
    bool swap; /* the numbers are not in this machine's byte order */

    struct cell_entries cell_entries;
    struct numbered_cell *cells; /* one batch, sorted by their data */
    size_t count;

    unsigned char *bytes; /* the data from particle `first` on */
    uint64_t first, particles;

    struct limecheckpoint_verdict *verdict;
    uint64_t first_bad; /* number of the first bad cell, if verdict->bad > 0 */
};

/* ---- one particle ---- */

static double coordinate(const struct verifier *w, const unsigned char *position, int d)
{
    uint64_t bits64;
    uint32_t bits32;
    double x;
    float y;
    if (w->position->type == LIMECELLS_FLOAT64) {
        memcpy(&bits64, position + 8 * d, sizeof bits64);
        bits64 = w->swap ? bswap_64(bits64) : bits64;
        memcpy(&x, &bits64, sizeof x);
        return x;
    }
    memcpy(&bits32, position + 4 * d, sizeof bits32);
    bits32 = w->swap ? bswap_32(bits32) : bits32;
    memcpy(&y, &bits32, sizeof y);
    return (double)y;
}

/* A cell, and a range of coordinates that are certainly in it. */
struct cell_bounds {
    uint64_t at[LIMECELLS_DIMS];
    double low[LIMECELLS_DIMS], high[LIMECELLS_DIMS];
};

static void compute_bounds(const struct limecells *c, uint64_t number, struct cell_bounds *out)
{
    limefile_cells_xyz(c, number, out->at);
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        out->low[d] = limefile_cells_edge(c, d, out->at[d]);
        out->high[d] = limefile_cells_edge(c, d, out->at[d] + 1);
    }
}

/* Returns why the particle is not in the cell, or NULL. */
static const char *why_misplaced(const struct verifier *w, const unsigned char *particle,
                                 const struct cell_bounds *cell)
{
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        double x = coordinate(w, particle + w->position->offset, d);
        if (x >= cell->low[d] && x < cell->high[d])
            continue;
        int64_t i = limefile_cells_locate(w->description, d, x);
        if (i < 0)
            return "is outside of the domain";
        if ((uint64_t)i != cell->at[d])
            return "is in another cell";
    }
    return NULL;
}

/* ---- one cell ---- */

static void record_bad_cell(struct verifier *w, uint64_t number,
                            const uint64_t at[LIMECELLS_DIMS], const char *reason)
{
    struct limecheckpoint_verdict *v = w->verdict;
    if (v->bad++ && number > w->first_bad)
        return;
    w->first_bad = number;
    memcpy(v->first_bad, at, sizeof v->first_bad);
    snprintf(v->why, sizeof v->why, "the first is (%" PRIu64 ", %" PRIu64 ", %" PRIu64 "): %s",
             at[0], at[1], at[2], reason);
}

/* Points *raw to particles from `first` on: *n of them, if possible. Sets *n to their number, 1
 * or more. */
static int get_particles(struct verifier *w, uint64_t first, uint64_t *n,
                         const unsigned char **raw)
{
    uint64_t size = w->description->particle_bytes, capacity = BYTES_AT_ONCE / size;
    if (first < w->first || first >= w->first + w->particles) {
        uint64_t left = w->description->particles - first;
        uint64_t batch = left < capacity ? left : capacity;
        int err = limefile_read_exact(w->source, w->bytes, (size_t)(batch * size),
                                      w->checkpoint->data.data_offset + first * size);
        w->particles = 0;
        if (err)
            return err;
        w->first = first;
        w->particles = batch;
    }
    uint64_t have = w->first + w->particles - first;
    *n = *n < have ? *n : have;
    *raw = w->bytes + (first - w->first) * size;
    return 0;
}

static int verify_cell(struct verifier *w, const struct numbered_cell *c)
{
    uint64_t size = w->description->particle_bytes, misplaced = 0;
    struct cell_bounds cell;
    const char *reason = NULL;
    char message[64];
    uint32_t crc = 0;
    compute_bounds(w->description, c->number, &cell);
    for (uint64_t done = 0, n; done < c->cell.count; done += n) {
        const unsigned char *bytes = NULL;
        n = c->cell.count - done;
        int err = get_particles(w, c->cell.first + done, &n, &bytes);
        if (err)
            return err;
        crc = limefile_cells_crc(crc, bytes, (size_t)(n * size));
        for (uint64_t i = 0; !reason && i < n; i++) {
            reason = why_misplaced(w, bytes + i * size, &cell);
            misplaced = c->cell.first + done + i;
        }
        if (w->progress && !w->progress(w->context, n * size))
            return -EINTR;
    }
    if (reason)
        snprintf(message, sizeof message, "particle %" PRIu64 " %s", misplaced, reason);
    if (crc != c->cell.crc)
        record_bad_cell(w, c->number, cell.at, "wrong checksum");
    else if (reason)
        record_bad_cell(w, c->number, cell.at, message);
    return 0;
}

/* ---- all cells ---- */

static int compare_first_particles(const void *a, const void *b)
{
    const struct numbered_cell *x = a, *y = b;
    return x->cell.first < y->cell.first ? -1 : x->cell.first > y->cell.first;
}

/* Reads and sorts the next batch of cells. Returns 1, 0 if there are no more, or an error. */
static int load_batch(struct verifier *w)
{
    struct numbered_cell *next;
    const unsigned char *raw;
    int got = 1;
    w->count = 0;
    while (w->count < CELLS_AT_ONCE && got == 1) {
        next = &w->cells[w->count];
        got = cell_entries_next(&w->cell_entries, &next->number, &raw);
        /* limecheckpoint_next() found valid entries, so the file has changed. */
        if (got == 1 && limefile_cells_entry_decode(w->description, raw, &next->cell))
            return LIMEFILE_E_SHRUNK;
        w->count += got == 1 && next->cell.count > 0;
    }
    if (got < 0)
        return got;
    qsort(w->cells, w->count, sizeof *w->cells, compare_first_particles);
    return got || w->count;
}

static int verify_cells(struct verifier *w)
{
    int got;
    while ((got = load_batch(w)) == 1)
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
    *out = (struct limecheckpoint_verdict){
        .cells = p->is_complete ? limefile_cells_count(&p->cells) : 0};
    if (!p->is_complete)
        return LIMEFILE_E_STATE;
    struct verifier *w = calloc(1, sizeof *w);
    uint64_t capacity = out->cells < CELLS_AT_ONCE ? out->cells : CELLS_AT_ONCE;
    if (!w)
        return -ENOMEM;
    w->source = source;
    w->checkpoint = p;
    w->description = &p->cells;
    w->progress = progress;
    w->context = context;
    w->position = limefile_cells_field(&p->cells, "position");
    w->swap = p->cells.big_endian != (__BYTE_ORDER == __BIG_ENDIAN);
    w->verdict = out;
    w->cells = malloc((size_t)capacity * sizeof *w->cells);
    w->bytes = malloc(BYTES_AT_ONCE);
    cell_entries_begin(&w->cell_entries, source, &p->cells,
                       p->index.data_offset + limefile_cells_header_bytes(&p->cells));
    int err = w->cells && w->bytes ? verify_cells(w) : -ENOMEM;
    free(w->cells);
    free(w->bytes);
    free(w);
    return err;
}
