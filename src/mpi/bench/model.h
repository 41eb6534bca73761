/*
 * model.h - what ways of moving a lattice, or particles in cells, ask of ranks, network and
 * servers, for any number of ranks; pure but for what it prints: no MPI, no I/O of data.
 */
#ifndef BENCH_MODEL_H
#define BENCH_MODEL_H

#include "grid.h"
#include "particle.h"

#include <stdbool.h>
#include <stdint.h>

/* `lime-bench model`: argv[0] is "model". Returns the exit status. */
int bench_model(int argc, char **argv);

/* Particles in cells, divided among ranks. */
struct model_cells {
    struct bench_gas gas;
    int64_t particle_bytes;
    bool kd; /* boxes of whole cells with as many particles; else equal boxes */
    int64_t cells[BENCH_SPACE];
    int64_t all;    /* of them */
    int64_t *count; /* particles of each cell */
    int64_t *owner; /* rank of each cell */
    int64_t *held;  /* of each rank: its particles, */
    int64_t *own;   /* and its cells that are not empty, one rank's after the other's */
    int64_t *first; /* of each rank in `own`; of none: the end */
};

/* What a machine is like; times in seconds, speeds in bytes a second. */
struct model {
    int64_t ranks, bytes;
    struct lemon_grid grid;  /* of a lattice, */
    struct model_cells *gas; /* or particles; else NULL */
    int64_t base;            /* where the lattice starts in the file */
    int64_t stripe;          /* bytes */
    int64_t servers;
    int64_t movers, round; /* wishes for `lime`; 0: none */
    int64_t target;        /* of `alltoallv`: the least bytes of an extent */
    int64_t aggregators;   /* of `collective` */
    int64_t buffer;        /* of an aggregator */
    double latency;        /* of a message, at each of its ends */
    double link;           /* of a rank */
    double server;         /* of a server */
    double request;        /* what a server needs for a request beside its bytes */
    double lock;           /* for a stripe that two ranks write */
};

/* Least, mean and most of something. */
struct model_tally {
    int64_t count;
    double sum, least, most;
};
void model_tally_add(struct model_tally *, double value);
double model_tally_mean(const struct model_tally *);

/* Seconds: how long something takes, not when it is. */
double model_now(void);

struct model_outcome {
    const char *method;
    bool direct;                  /* nothing is exchanged */
    int64_t movers;               /* ranks that write to the file */
    int64_t turns;                /* exchanges one after another */
    bool overlaps;                /* one exchange goes on beside the write before it */
    int64_t shared;               /* stripes that more than one rank writes */
    struct model_tally sent;      /* messages a rank sends to others */
    struct model_tally received;  /* messages a mover receives from others */
    struct model_tally out, in;   /* bytes of these */
    struct model_tally small;     /* messages of a few words that a rank sends and receives */
    int64_t rounds;               /* of messages in the collective calls that plan */
    struct model_tally extents;   /* bytes, of each contiguous range that is written */
    struct model_tally per_mover; /* ranges a mover writes */
    struct model_tally written;   /* bytes a mover writes */
    struct model_tally clients;   /* ranks that write to a server */
    struct model_tally requests;  /* ranges of stripes, a server */
    struct model_tally memory;    /* bytes a mover needs beside the lattice */
    double plan_seconds;          /* the most that a rank computes before it starts */
    double plan_bytes;            /* ... and keeps */
    double exchange, file, total; /* estimates, in seconds */
};

/* Each fills an outcome by asking what every rank does. False: no memory. */
bool model_lime(const struct model *, struct model_outcome *);
bool model_alltoallv(const struct model *, struct model_outcome *);
bool model_collective(const struct model *, struct model_outcome *);

/* A grid of ranks for a regular decomposition. */
void model_cells_grid(int64_t ranks, int64_t grid[BENCH_SPACE]);

/* Particles. Counts them, by examples if there are many, and deals the cells to the ranks.
 * False: no memory. */
bool model_cells_make(struct model_cells *, int64_t ranks);
void model_cells_free(struct model_cells *);

bool model_cells_lime(const struct model *, struct model_outcome *);
bool model_cells_independent(const struct model *, struct model_outcome *);
bool model_cells_gather(const struct model *, struct model_outcome *);

/* Which servers see what: ranges are told in any order, those of one rank one after another. */
struct model_servers {
    const struct model *model;
    int64_t *last;    /* of each server: the client that was told last */
    double *requests; /* of each server */
    double *clients;
    int64_t client;
};
bool model_servers_open(struct model_servers *, const struct model *);
void model_servers_write(struct model_servers *, int64_t client, int64_t from, int64_t to);
void model_servers_close(struct model_servers *, struct model_outcome *);

/* From what is in the outcome already. */
void model_estimate(const struct model *, struct model_outcome *);

/* On standard output. */
void model_print(const struct model *, const struct model_outcome *, int count);
void model_print_json(const struct model *, const struct model_outcome *, int count);

#endif
