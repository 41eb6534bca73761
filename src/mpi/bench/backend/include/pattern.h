/*
 * pattern.h - the bytes of the file that each rank has, and their values; calls no MPI
 *
 * A rank's bytes are pieces: contiguous in the file and in the rank's memory. A rank moves its
 * pieces in order, and they follow each other in its memory in that order. The pieces of all
 * ranks together are the file, each byte once. Offsets count from the first byte of the data,
 * after whatever a format writes before them.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include "box.h"

#include <stdint.h>

enum {
    BENCH_DIMS = 4, /* of a lattice */
    BENCH_PATTERNS = 4,
};

enum bench_pattern_kind {
    BENCH_DISJOINT,    /* rank r has [r * block, (r + 1) * block) */
    BENCH_INTERLEAVED, /* segment s of rank r is piece s * ranks + r of the file */
    BENCH_RANDOM,      /* the same pieces in a random permutation */
    BENCH_LATTICE,     /* a block of a 4-dimensional lattice, row major */
};

struct bench_pattern {
    enum bench_pattern_kind kind;
    int ranks;
    int64_t transfer; /* maximum bytes of a piece; > 0 */
    int64_t block;    /* disjoint: bytes of a rank */
    int64_t segments; /* interleaved, random: pieces of a rank, of `transfer` bytes each */
    uint64_t seed;    /* random */
    int lattice[BENCH_DIMS], grid[BENCH_DIMS]; /* slowest dimension first */
    int64_t site_bytes;
};

struct bench_piece {
    int64_t offset;     /* offset in the file's data */
    int64_t mem_offset; /* offset in the rank's buffer */
    int64_t bytes;
};

/* "disjoint", ..., indexed by enum bench_pattern_kind; NULL ends the list. */
extern const char *const bench_pattern_names[BENCH_PATTERNS + 1];

/* Returns the bytes of the file, or -1 if int64_t is too small for them. All functions below
 * require that it is not. */
int64_t bench_pattern_bytes(const struct bench_pattern *);

/* Return the bytes and the pieces of one rank, and the maximum number of pieces of any rank. */
int64_t bench_pattern_rank_bytes(const struct bench_pattern *, int rank);
int64_t bench_pattern_pieces(const struct bench_pattern *, int rank);
int64_t bench_pattern_rounds(const struct bench_pattern *);

/* Gets piece i of a rank, 0 <= i < its pieces. */
void bench_pattern_piece(const struct bench_pattern *, int rank, int64_t i,
                         struct bench_piece *);

/* Gets a rank's part of the lattice. Ranks are assigned to the grid as in MPI_Cart_create(). */
void bench_pattern_box(const struct bench_pattern *, int rank, struct lemon_box *);

/* ---- values: a function of seed and offset, so that any rank can compare what it reads
 * without a copy of what was written ---- */

struct bench_mismatch {
    int64_t bytes;  /* number of wrong bytes */
    int64_t offset; /* offset of the first of them in the file's data */
    unsigned char expected, found;
};

/* Fills n bytes of data for the offsets from `at` on. */
void bench_data_fill(uint64_t seed, int64_t at, void *data, int64_t n);

/* Compares the data; adds the differences to *wrong, which keeps the lowest offset. */
void bench_data_check(uint64_t seed, int64_t at, const void *data, int64_t n,
                      struct bench_mismatch *wrong);

#endif
