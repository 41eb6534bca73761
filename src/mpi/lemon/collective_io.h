/* collective_io.h - read or write arbitrary ranges of a file through aggregators */
#ifndef LEMON_COLLECTIVE_H
#define LEMON_COLLECTIVE_H

#include "sparse_exchange.h"
#include "runs_plan.h"

/* Source of a rank's stream: copies n bytes from byte `at`. Each byte is requested once in a
 * move: the bytes of a round of an aggregator together, rounds and aggregators in any order. */
struct lemon_stream {
    void (*copy)(void *context, int64_t at, int64_t n, char *to);
    void *context;
};

enum {
    LEMON_COLLECTIVE_CHUNK = 512 << 10, /* bytes of a stream that are written at once */
};

enum lemon_collective_mode {
    LEMON_COLLECTIVE_WRITE,
    LEMON_COLLECTIVE_GATHER, /* for lemon_collective_gather() */
    LEMON_COLLECTIVE_READ,
};

struct lemon_collective {
    struct lemon_runs_plan plan;
    bool direct;           /* each rank writes its own runs, without exchange */
    int64_t aggregator;    /* this rank's number as an aggregator, or -1 */
    struct lemon_run *run; /* of this rank; owned by the caller */
    int64_t count;
    struct lemon_sparse pattern; /* to: other aggregators of this rank's runs */
    struct lemon_run *peer_runs; /* runs of others in this aggregator's range, by source */
    MPI_Request *requests;
    int64_t *receive_offset;  /* of a source's message in `received`; -1: it is in the window */
    char *received, *staging; /* in a round; buffer for sends, staging_bytes long */
    int64_t staging_bytes;
    char *windows; /* of rounds; not used by lemon_collective_gather() */
    enum lemon_collective_mode mode;
};

/* `run` must exist until the close. ok: false if this rank has failed before. Collective,
 * agreed; after an error do not call close. */
int lemon_collective_open(struct lemon_internal *, struct lemon_collective *, int64_t bytes,
                          int64_t base, struct lemon_run *run, int64_t count,
                          enum lemon_collective_mode, bool ok);
void lemon_collective_close(struct lemon_collective *);

/* ---- I/O; collective, not agreed ---- */

/* Write or read all rounds. data: the rank's stream. */
int lemon_collective_write(struct lemon_internal *, struct lemon_collective *,
                           const struct lemon_stream *);
int lemon_collective_read(struct lemon_internal *, struct lemon_collective *, char *data);

/* Collects all rounds in memory, pending.buffer: agreed. Then starts to write them: local. */
int lemon_collective_gather(struct lemon_internal *, struct lemon_collective *,
                            const struct lemon_stream *);
int lemon_collective_start_write(struct lemon_internal *, const struct lemon_collective *);

#endif
