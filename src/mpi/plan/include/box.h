/*
 * box.h - compute which bytes of the file belong to a rank's part of a lattice; no MPI, no I/O
 *
 * A file stores a lattice in row-major order of the disk dimensions, slowest first. A rank
 * holds a box of the lattice, which its memory stores in the same order. So the box's bytes
 * have the same order in the file as in memory, but there are gaps between them in the file.
 * The box's bytes in any range of the file are one range of memory. All functions rely on that.
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
    int64_t sites[LEMON_BOX_DIMS];  /* of the box; 0: the box is empty */
    int64_t site_bytes;
};

/* Return the size in bytes of the lattice or of the box, or -1 if an int64_t cannot hold it. */
int64_t lemon_box_lattice_bytes(const struct lemon_box *);
int64_t lemon_box_bytes(const struct lemon_box *);

/* Returns how many bytes of the box precede byte `at` of the file, 0 <= at <= lattice bytes. If
 * byte `at` belongs to the box, the returned number is that byte's offset in memory. */
int64_t lemon_box_bytes_before(const struct lemon_box *, int64_t at);

/* The box consists of runs of equal length, each contiguous in the file. The first function
 * returns a run's bytes (0 for an empty box), the second the offset of run number `run`. */
int64_t lemon_box_run_bytes(const struct lemon_box *);
int64_t lemon_box_run_offset(const struct lemon_box *, int64_t run_bytes, int64_t run);

/* Iterates over the box's runs in the order of the file, without a division per run. */
struct lemon_box_walk {
    int64_t offset; /* of the current run, in the file */
    int dims;       /* runs differ only in their coordinates in the `dims` slowest dimensions */
    int64_t at[LEMON_BOX_DIMS], sites[LEMON_BOX_DIMS], bytes[LEMON_BOX_DIMS];
};
void lemon_box_walk_init(struct lemon_box_walk *, const struct lemon_box *, int64_t run_bytes,
                         int64_t run);
void lemon_box_walk_next(struct lemon_box_walk *);

/* Divides an extent into n parts. Computes the first site and the number of sites of part c. */
void lemon_box_split(int64_t extent, int n, int c, int64_t *start, int64_t *sites);

/* window: bytes [from, to) of the file. part: only the box's bytes of that range, without gaps.
 * Copy the box's bytes from part to window (scatter), or from window to part (gather). */
void lemon_box_scatter(const struct lemon_box *, int64_t from, int64_t to, const char *part,
                       char *window);
void lemon_box_gather(const struct lemon_box *, int64_t from, int64_t to, const char *window,
                      char *part);

#endif
