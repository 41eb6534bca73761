/*
 * box.h - the part of a lattice that a rank holds, as bytes of the file; pure, no MPI.
 *
 * A lattice lies in the file in row-major order of its disk dimensions, slowest first. A rank
 * holds a box of it, and its memory holds the box in the same order. So the rank's bytes are
 * in the file in the order in which they are in memory, only with gaps: what of them falls
 * into any one range of the file is one range of the memory. Everything rests on that.
 *
 * Offsets in the file count from the first byte of the lattice.
 */
#ifndef LEMON_BOX_H
#define LEMON_BOX_H

#include <stdint.h>

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum {
    LEMON_BOX_DIMS = 16,
};

struct lemon_box {
    int dims;
    int64_t extent[LEMON_BOX_DIMS]; /* of the lattice, in sites, slowest first */
    int64_t start[LEMON_BOX_DIMS];  /* of the box */
    int64_t sites[LEMON_BOX_DIMS];  /* of the box; 0 is an empty one */
    int64_t site_bytes;
};

/* Bytes of the lattice and of the box; -1 if they are more than an int64_t holds. */
int64_t lemon_box_lattice_bytes(const struct lemon_box *);
int64_t lemon_box_bytes(const struct lemon_box *);

/* How many bytes of the box come before byte `at` of the file: also where in memory the byte
 * is, if it belongs to the box. 0 <= at <= lattice bytes. */
int64_t lemon_box_before(const struct lemon_box *, int64_t at);

/* The box as runs of bytes that are contiguous in the file, all of one length. */
int64_t lemon_box_run_bytes(const struct lemon_box *); /* 0 for an empty box */
int64_t lemon_box_run_offset(const struct lemon_box *, int64_t run_bytes, int64_t run);

/* Goes over the box's runs in the order of the file, without a division for each. */
struct lemon_box_walk {
    int64_t offset; /* of the run, in the file */
    int dims;       /* that differ between runs, slowest first */
    int64_t at[LEMON_BOX_DIMS], sites[LEMON_BOX_DIMS], bytes[LEMON_BOX_DIMS];
};
void lemon_box_walk_set(struct lemon_box_walk *, const struct lemon_box *, int64_t run_bytes,
                        int64_t run);
void lemon_box_walk_next(struct lemon_box_walk *);

/* Where rank coordinate c of n starts in an extent, and how much of it it has. */
void lemon_box_split(int64_t extent, int n, int c, int64_t *start, int64_t *sites);

/* Copies between `window`, which is bytes [from, to) of the file, and `part`, which is those of
 * them that belong to the box, one after another. */
void lemon_box_scatter(const struct lemon_box *, int64_t from, int64_t to, const char *part,
                       char *window);
void lemon_box_gather(const struct lemon_box *, int64_t from, int64_t to, const char *window,
                      char *part);

#endif
