/*
 * runmove.h - ranges of a file that ranks have any of, exchanged with the ranks that move them
 */
#ifndef LEMON_RUNMOVE_H
#define LEMON_RUNMOVE_H

#include "sparse.h"
#include "runs.h"

/* Where the bytes of a rank's stream come from: copies n of them from byte `at` on. Each is
 * asked for once in a move: those of a turn of a mover together, turns and movers in any order.
 */
struct lemon_stream {
    void (*copy)(void *context, int64_t at, int64_t n, char *to);
    void *context;
};

enum {
    LEMON_RUNMOVE_PIECE = 512 << 10, /* of a stream, that a rank looks at and writes at once */
};

enum lemon_runmove_use {
    LEMON_RUNMOVE_WRITE,
    LEMON_RUNMOVE_KEEP, /* for lemon_runmove_keep() */
    LEMON_RUNMOVE_READ,
};

struct lemon_runmove {
    struct lemon_runs_plan plan;
    bool direct;           /* each rank writes its own runs: nothing is exchanged */
    int64_t mover;         /* this rank's number as one, or -1 */
    struct lemon_run *run; /* of this rank, the caller's */
    int64_t count;
    struct lemon_sparse pattern; /* to: the movers of this rank's runs other than itself */
    struct lemon_run *theirs;    /* of others, in this mover's range, source by source */
    MPI_Request *requests;
    int64_t *place; /* in `arriving`, of a source's message; -1: it is in the window */
    char *arriving, *staging; /* of a turn; what goes out, staging_bytes at once */
    int64_t staging_bytes;
    char *windows; /* of turns, unless they are kept */
    enum lemon_runmove_use use;
};

/* `run` lives as long as this. good: whether this rank has what else it needs. Collective,
 * agreed; nothing is to be closed after an error. */
int lemon_runmove_open(struct lemon_internal *, struct lemon_runmove *, int64_t bytes,
                       int64_t base, struct lemon_run *run, int64_t count,
                       enum lemon_runmove_use, bool good);
void lemon_runmove_close(struct lemon_runmove *);

/* ---- between ranks and file; collective, not agreed ---- */

/* All of it, turn by turn. */
int lemon_runmove_write(struct lemon_internal *, struct lemon_runmove *,
                        const struct lemon_stream *);
int lemon_runmove_read(struct lemon_internal *, struct lemon_runmove *, char *data);

/* Collects all turns in memory, pending.buffer: agreed. Then starts to write them: local. */
int lemon_runmove_keep(struct lemon_internal *, struct lemon_runmove *,
                       const struct lemon_stream *);
int lemon_runmove_start(struct lemon_internal *, const struct lemon_runmove *);

#endif
