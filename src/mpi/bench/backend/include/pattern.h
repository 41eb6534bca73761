/*
 * pattern.h - which bytes of the file belong to which rank, and their values; calls no MPI
 *
 * A rank's bytes are divided into pieces, each contiguous in the file and in the rank's
 * memory. A rank writes or reads its pieces in order, and in this order they follow each other
 * in its memory. Each byte of the data belongs to exactly one piece. Offsets count from the
 * first byte of the data, after anything that a file format puts before the data.
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
    uint64_t seed;    /* random: selects the permutation */
    int lattice[BENCH_DIMS], grid[BENCH_DIMS]; /* slowest dimension first */
    int64_t site_bytes;                        /* lattice; 1 for other patterns */
};

struct bench_piece {
    int64_t offset;     /* offset in the file's data */
    int64_t mem_offset; /* offset in the rank's buffer */
    int64_t bytes;
};

/* "disjoint", ..., indexed by enum bench_pattern_kind; NULL ends the list. */
extern const char *const bench_pattern_names[BENCH_PATTERNS + 1];

/* Returns the number of bytes of all ranks, or -1 if it exceeds INT64_MAX. After -1, none of
 * the functions below may be called. */
int64_t bench_pattern_bytes(const struct bench_pattern *);

/* Return the number of bytes and of pieces of a rank, and the most pieces that any rank has. */
int64_t bench_pattern_rank_bytes(const struct bench_pattern *, int rank);
int64_t bench_pattern_pieces(const struct bench_pattern *, int rank);
int64_t bench_pattern_max_pieces(const struct bench_pattern *);

/* Gets piece i of a rank: 0 <= i < bench_pattern_pieces(). */
void bench_pattern_piece(const struct bench_pattern *, int rank, int64_t i,
                         struct bench_piece *);

/* Gets a rank's part of the lattice. Ranks are placed in the grid as MPI_Cart_create() does. */
void bench_pattern_box(const struct bench_pattern *, int rank, struct lemon_box *);

/* ---- values: a function of seed and offset, so that any rank can compare what it reads
 * without a copy of what was written ---- */

struct bench_mismatch {
    int64_t bytes;                 /* number of wrong bytes */
    int64_t offset;                /* lowest offset of a wrong byte in the file's data */
    unsigned char expected, found; /* values of that byte */
};

/* Sets n bytes of data to the values at the offsets from `at` on. */
void bench_data_fill(uint64_t seed, int64_t at, void *data, int64_t n);

/* Compares n bytes of data with the values at the offsets from `at` on. Adds the wrong bytes to
 * *wrong, which the caller sets to 0 before the first call. */
void bench_data_check(uint64_t seed, int64_t at, const void *data, int64_t n,
                      struct bench_mismatch *wrong);

#endif
