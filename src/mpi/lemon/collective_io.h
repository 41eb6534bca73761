/* collective_io.h - read or write arbitrary runs (runs_plan.h) of a file through aggregators */
#ifndef LEMON_COLLECTIVE_H
#define LEMON_COLLECTIVE_H

#include "sparse_exchange.h"
#include "runs_plan.h"

/* Source of a rank's stream, the bytes of its runs. copy() copies n bytes of the stream, from
 * byte `at` on. In a write, the calls copy each byte exactly once, but in any order. */
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
    struct lemon_sparse pattern; /* receivers: the other aggregators of this rank's runs */
    struct lemon_run *peer_runs; /* other ranks' runs in this aggregator's range, by rank */
    MPI_Request *requests;
    int64_t *receive_offset;  /* of a sender's message in `received`; -1: not in `received` */
    char *received, *staging; /* messages of a round; buffer for sends (staging_bytes) */
    int64_t staging_bytes;
    char *windows; /* for one or two rounds; lemon_collective_gather() uses pending.buffer */
    enum lemon_collective_mode mode;
};

/* bytes, base: size and file offset of all ranks' data. run: this rank's runs; they must exist
 * until lemon_collective_close(). ok: false if this rank has failed. Collective, agreed. Do not
 * call lemon_collective_close() after an error. */
int lemon_collective_open(struct lemon_internal *, struct lemon_collective *, int64_t bytes,
                          int64_t base, struct lemon_run *run, int64_t count,
                          enum lemon_collective_mode, bool ok);
void lemon_collective_close(struct lemon_collective *);

/* ---- I/O; collective, not agreed ---- */

/* Write or read all ranks' runs. data: this rank's stream. */
int lemon_collective_write(struct lemon_internal *, struct lemon_collective *,
                           const struct lemon_stream *);
int lemon_collective_read(struct lemon_internal *, struct lemon_collective *, char *data);

/* Collects all ranks' data in the aggregators' memory, at pending.buffer. Agreed. */
int lemon_collective_gather(struct lemon_internal *, struct lemon_collective *,
                            const struct lemon_stream *);
/* Starts to write the data that lemon_collective_gather() has collected. Local. */
int lemon_collective_start_write(struct lemon_internal *, const struct lemon_collective *);

#endif
