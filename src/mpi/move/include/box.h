/*
 * box.h - compute which bytes of the file belong to a rank's part of a lattice; no MPI, no I/O
 *
 * A file stores a lattice in row-major order of its disk dimensions, slowest first. A rank
 * holds a box of the lattice, in the same order in memory. So its bytes have the same order in
 * the file as in memory, but with gaps in the file, and those in any one range of the file are
 * one range of its memory. All functions here rely on that.
 *
 * Offsets in the file are relative to the first byte of the lattice.
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
    int64_t start[LEMON_BOX_DIMS];  /* first coordinate of the box */
    int64_t sites[LEMON_BOX_DIMS];  /* of the box; 0: it is empty */
    int64_t site_bytes;
};

/* Return the bytes of the lattice and of the box, or -1 if an int64_t cannot hold them. */
int64_t lemon_box_lattice_bytes(const struct lemon_box *);
int64_t lemon_box_bytes(const struct lemon_box *);

/* Returns how many bytes of the box precede byte `at` of the file, 0 <= at <= lattice bytes. If
 * that byte belongs to the box, this is its offset in memory. */
int64_t lemon_box_bytes_before(const struct lemon_box *, int64_t at);

/* The box consists of runs of equal length, each contiguous in the file. Return the length in
 * bytes (0 for an empty box), and the offset in the file of run number `run`. */
int64_t lemon_box_run_bytes(const struct lemon_box *);
int64_t lemon_box_run_offset(const struct lemon_box *, int64_t run_bytes, int64_t run);

/* Iterates over the box's runs in the order of the file, without a division per run. */
struct lemon_box_walk {
    int64_t offset; /* of the run, in the file */
    int dims;       /* number of dimensions, from the slowest on, that differ between runs */
    int64_t at[LEMON_BOX_DIMS], sites[LEMON_BOX_DIMS], bytes[LEMON_BOX_DIMS];
};
void lemon_box_walk_init(struct lemon_box_walk *, const struct lemon_box *, int64_t run_bytes,
                         int64_t run);
void lemon_box_walk_next(struct lemon_box_walk *);

/* Computes the first site and the number of sites of rank coordinate c (of n) in an extent. */
void lemon_box_split(int64_t extent, int n, int c, int64_t *start, int64_t *sites);

/* Copy between `window`, bytes [from, to) of the file, and `part`, which has only the box's
 * bytes of that range, contiguously. */
void lemon_box_scatter(const struct lemon_box *, int64_t from, int64_t to, const char *part,
                       char *window);
void lemon_box_gather(const struct lemon_box *, int64_t from, int64_t to, const char *window,
                      char *part);

#endif
