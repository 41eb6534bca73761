/* dataset.c - describe the file's data as an array of bytes */
#include "dataset.h"

#include <string.h>

/* Sets the extents of a chunk of at most `bytes` bytes. The chunk has the whole extent of as
 * many of the fastest dimensions as fit, a part of the next slower one, and 1 of the others. */
static void set_chunk(struct bench_dataset *set, int64_t bytes)
{
    for (int d = set->dims - 1; d >= 0; d--) {
        set->chunk[d] = smaller(set->extent[d], bytes);
        bytes /= set->chunk[d];
        bytes = bytes ? bytes : 1;
    }
}

void bench_dataset_init(struct bench_dataset *set, const struct bench_task *task)
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

/* ---- lattices: a rank's box in slabs of at most BENCH_MOVE_MAX bytes ---- */

/* Returns the size of a slice: the part of the box at one coordinate of dimension 0. */
static int64_t slice_bytes(const struct lemon_box *box)
{
    int64_t bytes = box->site_bytes;
    for (int d = 1; d < BENCH_DIMS; d++)
        bytes *= box->sites[d];
    return bytes;
}

/* Sets *box. Returns the most slices that fit into a slab; 0: a slice exceeds BENCH_MOVE_MAX.
 */
static int64_t lattice_step(const struct bench_pattern *p, int rank, struct lemon_box *box)
{
    bench_pattern_box(p, rank, box);
    int64_t bytes = slice_bytes(box);
    return bytes ? BENCH_MOVE_MAX / bytes : 1;
}

static int64_t lattice_slabs(const struct bench_pattern *p, int rank)
{
    struct lemon_box box;
    int64_t step = lattice_step(p, rank, &box);
    return (box.sites[0] + step - 1) / step;
}

/* Sets *slab, whose bytes must be 0. Leaves *slab unchanged if the rank has no slab i. */
static void lattice_slab(const struct bench_pattern *p, int rank, int64_t i,
                         struct bench_slab *slab)
{
    struct lemon_box box;
    int64_t step = lattice_step(p, rank, &box), first = i * step;
    if (first >= box.sites[0])
        return;
    for (int d = 0; d < BENCH_DIMS; d++) {
        slab->start[d] = box.start[d];
        slab->count[d] = box.sites[d];
    }
    slab->start[0] += first;
    slab->count[0] = smaller(step, box.sites[0] - first);
    slab->count[BENCH_DIMS] = p->site_bytes;
    slab->mem_offset = first * slice_bytes(&box);
    slab->bytes = slab->count[0] * slice_bytes(&box);
}

const char *bench_dataset_unsupported(const struct bench_task *task)
{
    const struct bench_pattern *p = &task->pattern;
    bool lattice = p->kind == BENCH_LATTICE;
    struct lemon_box box;
    if (lattice && task->shape == BENCH_SHAPE_DEFAULT && lattice_step(p, 0, &box) == 0)
        return "a rank's part of a slice of the lattice has more than 1G bytes";
    if (task->shape != BENCH_SHAPE_2D)
        return NULL;
    if (lattice)
        return "--shape 2d: a lattice has its own shape, or 1d";
    if (p->kind == BENCH_DISJOINT && p->block % p->transfer != 0)
        return "--shape 2d: the block size is not a multiple of the transfer size";
    return NULL;
}

int64_t bench_dataset_rounds(const struct bench_dataset *set)
{
    int64_t max = 0;
    if (!set->lattice)
        return bench_pattern_max_pieces(set->pattern);
    for (int rank = 0; rank < set->pattern->ranks; rank++) {
        int64_t slabs = lattice_slabs(set->pattern, rank);
        max = slabs > max ? slabs : max;
    }
    return max;
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
    slab->mem_offset = piece.mem_offset;
    slab->bytes = piece.bytes;
    slab->start[0] = piece.offset;
    slab->count[0] = piece.bytes;
    if (set->dims == 2) {
        slab->start[0] = piece.offset / set->extent[1];
        slab->count[0] = 1;
        slab->start[1] = piece.offset % set->extent[1];
        slab->count[1] = piece.bytes;
    }
}

int64_t bench_dataset_length_for(const struct bench_dataset *set, int64_t i)
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
