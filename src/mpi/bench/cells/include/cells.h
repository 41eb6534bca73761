/*
 * cells.h - a gas in cells, divided among ranks, and the ways to write and read it
 *
 * The ways are back ends (backend.h). A way that writes finds the particles of its rank in
 * io->cells; a way that reads puts there those that came, in any order.
 */
#ifndef BENCH_CELLS_H
#define BENCH_CELLS_H

#include "backend.h"
#include "lemon_cells.h"
#include "particle.h"

/* Cells in all: counts of them go through MPI. */
enum {
    BENCH_CELLS_MAX = 1 << 24,
};

enum bench_decomposition {
    BENCH_REGULAR, /* equal boxes */
    BENCH_KD,      /* boxes of whole cells, with about as many particles in each */
};

/* What is asked for. */
struct bench_cells_wish {
    int64_t particles;
    int cells[BENCH_SPACE]; /* 0 ...: not given */
    enum bench_distribution distribution;
    enum bench_decomposition writing, reading;
    bool reading_given;
};

/* [lower, upper) of a rank. */
struct bench_cells_box {
    double lower[BENCH_SPACE], upper[BENCH_SPACE];
};

struct bench_cells {
    struct bench_gas gas;
    LemonDomain domain;
    int ranks;
    struct bench_cells_box *writer, *reader; /* of each rank */
    int64_t written, read; /* how many particles this rank has to write, and to read */
    /* This rank's, while something goes on: */
    char *data;
    int64_t count, room; /* particles; room for how many */
    bool anywhere; /* what was read is a part of the file, and not that of this rank's box */
};

/* Of these ranks, of which each has the place in `writers` and `readers` that it will have.
 * False on the ranks without memory; or with a code of Lemon's in *code. Collective. */
bool bench_cells_set(struct bench_cells *, const struct bench_cells_wish *, MPI_Comm writers,
                     MPI_Comm readers, int *code);
void bench_cells_free(struct bench_cells *);

/* The cells that are used: those that were asked for, the process grid of a regular
 * decomposition, or 16 in each dimension. */
void bench_cells_choose(const struct bench_cells_wish *, int ranks, int64_t cells[BENCH_SPACE]);

/* Makes the particles of a rank that writes; false: no memory. Or gives its memory back. */
bool bench_cells_fill(struct bench_cells *, int rank, uint64_t seed);
void bench_cells_empty(struct bench_cells *);

/* Room for n more at the end; NULL: no memory. The caller counts them. */
char *bench_cells_append(struct bench_cells *, int64_t n);

bool bench_cells_holds(const struct bench_cells_box *, const double at[BENCH_SPACE]);

/* In which cell a particle is: an estimate where it is on a face. 0 if it is nowhere. */
int64_t bench_cells_number(const LemonDomain *, const double at[BENCH_SPACE]);
int64_t bench_cells_all(const LemonDomain *);

/* Compares what was read on this rank: each particle was written, came once, belongs here, and
 * none is missing. "" if so, else what is wrong first. Collective. */
void bench_cells_verify(const struct bench_cells *, MPI_Comm, int rank, uint64_t seed,
                        char text[BENCH_ERROR_BYTES]);

/* What a particle is. */
extern const LemonParticle bench_cells_particle;

/* All of them, those that were not built too; NULL ends the list. */
extern const struct bench_backend *const bench_cells_ways[];

#endif
