/*
 * pattern.h - which bytes of the file each rank has, and their values; pure, no MPI.
 *
 * A rank's bytes are pieces: contiguous in the file and in the rank's memory. Their order is
 * the one in which the rank moves them; in memory they follow each other in that order. The
 * pieces of all ranks together are the file, each byte once. Offsets count from the first byte
 * of the data, whatever a format puts before them.
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
    BENCH_RANDOM,      /* the same pieces, dealt to the ranks by chance and in any order */
    BENCH_LATTICE,     /* a block of a 4-dimensional lattice, row major */
};

struct bench_pattern {
    enum bench_pattern_kind kind;
    int ranks;
    int64_t transfer; /* the most bytes of a piece; > 0 */
    int64_t block;    /* disjoint: bytes of a rank */
    int64_t segments; /* interleaved, random: pieces of a rank, of `transfer` bytes each */
    uint64_t seed;    /* random */
    int lattice[BENCH_DIMS], grid[BENCH_DIMS]; /* slowest dimension first */
    int64_t site_bytes;
};

struct bench_piece {
    int64_t at;     /* in the file's data */
    int64_t memory; /* in the rank's buffer */
    int64_t bytes;
};

/* "disjoint", ..., by enum bench_pattern_kind; NULL behind them. */
extern const char *const bench_pattern_names[BENCH_PATTERNS + 1];

/* Of the file, or -1 if that is more than an int64_t holds. All functions below expect that it
 * is not. */
int64_t bench_pattern_bytes(const struct bench_pattern *);

/* What one rank has, and in how many pieces; also the most pieces that any rank has. */
int64_t bench_pattern_rank_bytes(const struct bench_pattern *, int rank);
int64_t bench_pattern_pieces(const struct bench_pattern *, int rank);
int64_t bench_pattern_rounds(const struct bench_pattern *);

/* Piece i of a rank, 0 <= i < its pieces. */
void bench_pattern_piece(const struct bench_pattern *, int rank, int64_t i,
                         struct bench_piece *);

/* A rank's part of the lattice. Ranks are dealt to the grid as MPI_Cart_create() does. */
void bench_pattern_box(const struct bench_pattern *, int rank, struct lemon_box *);

/* ---- values: a function of a seed and of the place, so that what was read is compared byte by
 * byte on any rank without a copy of what was written ---- */

struct bench_wrong {
    int64_t bytes; /* how many are wrong */
    int64_t at;    /* the first of them, in the file's data */
    unsigned char expected, found;
};

/* The n bytes from `at` on. */
void bench_data_fill(uint64_t seed, int64_t at, void *data, int64_t n);

/* Compares; what is wrong is added to *wrong, which keeps the lowest place. */
void bench_data_check(uint64_t seed, int64_t at, const void *data, int64_t n,
                      struct bench_wrong *wrong);

#endif
