/* dataset.c - the file's data as an array of bytes with dimensions */
#include "dataset.h"

#include <string.h>

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Whole fastest dimensions as long as they fit in, then a part of the next one. */
static void set_chunk(struct bench_dataset *set, int64_t bytes)
{
    for (int d = set->dims - 1; d >= 0; d--) {
        set->chunk[d] = smaller(set->extent[d], bytes);
        bytes /= set->chunk[d];
        bytes = bytes ? bytes : 1;
    }
}

void bench_dataset_set(struct bench_dataset *set, const struct bench_task *task)
{
    const struct bench_pattern *p = &task->pattern;
    *set = (struct bench_dataset){.pattern = p};
    set->lattice = p->kind == BENCH_LATTICE && task->shape == BENCH_SHAPE_DEFAULT;
    if (set->lattice) {
        set->dims = BENCH_DATASET_DIMS;
        for (int d = 0; d < BENCH_DIMS; d++)
            set->extent[d] = p->lattice[d];
        set->extent[BENCH_DIMS] = p->site_bytes;
    } else if (task->shape == BENCH_SHAPE_2D) {
        set->dims = 2;
        set->extent[1] = p->transfer * p->ranks;
        set->extent[0] = bench_pattern_bytes(p) / set->extent[1];
    } else {
        set->dims = 1;
        set->extent[0] = bench_pattern_bytes(p);
    }
    if (task->chunk)
        set_chunk(set, task->chunk);
}

const char *bench_dataset_refuses(const struct bench_task *task)
{
    const struct bench_pattern *p = &task->pattern;
    if (task->shape != BENCH_SHAPE_2D)
        return NULL;
    if (p->kind == BENCH_LATTICE)
        return "--shape 2d: a lattice has its own shape, or 1d";
    if (p->kind == BENCH_DISJOINT && p->block % p->transfer != 0)
        return "--shape 2d: the block size is no multiple of the transfer size";
    return NULL;
}

/* ---- lattices: a rank's box in parts of at most BENCH_MOVE_MAX ---- */

/* The box is cut along dimension `dim` into parts of `step`; slower ones go one by one. */
struct cut {
    struct lemon_box box;
    int dim;
    int64_t step, per_slice, slabs;
};

static void set_cut(const struct bench_pattern *p, int rank, struct cut *cut)
{
    bench_pattern_box(p, rank, &cut->box);
    const int64_t *sites = cut->box.sites;
    int64_t inner = p->site_bytes;
    for (cut->dim = BENCH_DIMS - 1; cut->dim > 0; cut->dim--) {
        if (inner * sites[cut->dim] > BENCH_MOVE_MAX)
            break;
        inner *= sites[cut->dim];
    }
    cut->step = BENCH_MOVE_MAX / inner;
    cut->step = cut->step ? smaller(cut->step, sites[cut->dim]) : 1;
    cut->per_slice = (sites[cut->dim] + cut->step - 1) / cut->step;
    cut->slabs = cut->per_slice;
    for (int d = 0; d < cut->dim; d++)
        cut->slabs *= sites[d];
}

static void lattice_slab(const struct bench_pattern *p, int rank, int64_t i,
                         struct bench_slab *slab)
{
    struct cut cut;
    set_cut(p, rank, &cut);
    if (i >= cut.slabs)
        return;
    int64_t part = i % cut.per_slice, slice = i / cut.per_slice, before = 0, inner = 1;
    for (int d = BENCH_DIMS - 1; d >= 0; d--) {
        int64_t at = 0, n = cut.box.sites[d];
        if (d < cut.dim) {
            at = slice % n;
            slice /= n;
            n = 1;
        } else if (d == cut.dim) {
            at = part * cut.step;
            n = smaller(cut.step, n - at);
        }
        slab->start[d] = cut.box.start[d] + at;
        slab->count[d] = n;
        before += at * inner;
        inner *= cut.box.sites[d];
    }
    slab->count[BENCH_DIMS] = p->site_bytes;
    slab->memory = before * p->site_bytes;
    slab->bytes = p->site_bytes;
    for (int d = 0; d < BENCH_DIMS; d++)
        slab->bytes *= slab->count[d];
}

/* ---- all ---- */

int64_t bench_dataset_rounds(const struct bench_dataset *set)
{
    int64_t most = 0;
    if (!set->lattice)
        return bench_pattern_rounds(set->pattern);
    for (int rank = 0; rank < set->pattern->ranks; rank++) {
        struct cut cut;
        set_cut(set->pattern, rank, &cut);
        most = cut.slabs > most ? cut.slabs : most;
    }
    return most;
}

void bench_dataset_slab(const struct bench_dataset *set, int rank, int64_t i,
                        struct bench_slab *slab)
{
    struct bench_piece piece;
    memset(slab, 0, sizeof *slab);
    if (set->lattice) {
        lattice_slab(set->pattern, rank, i, slab);
        return;
    }
    if (i >= bench_pattern_pieces(set->pattern, rank))
        return;
    bench_pattern_piece(set->pattern, rank, i, &piece);
    slab->memory = piece.memory;
    slab->bytes = piece.bytes;
    slab->start[0] = piece.at;
    slab->count[0] = piece.bytes;
    if (set->dims == 2) {
        slab->start[0] = piece.at / set->extent[1];
        slab->count[0] = 1;
        slab->start[1] = piece.at % set->extent[1];
        slab->count[1] = piece.bytes;
    }
}

int64_t bench_dataset_reach(const struct bench_dataset *set, int64_t i)
{
    int64_t reach = 0;
    for (int rank = 0; rank < set->pattern->ranks; rank++) {
        struct bench_slab slab;
        bench_dataset_slab(set, rank, i, &slab);
        if (slab.bytes && slab.start[0] + slab.count[0] > reach)
            reach = slab.start[0] + slab.count[0];
    }
    return reach;
}
