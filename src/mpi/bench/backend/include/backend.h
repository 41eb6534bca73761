/*
 * backend.h - the back ends: each a table of functions that writes and reads a file, as in IOR
 *
 * A file is written by prepare, open, transfer, sync, close, release in that order, and read by
 * the same without sync; the time counts from before open to after close. All ranks call them
 * together. Each returns 0, or -1 on the ranks that met an error, which is then in io->error;
 * such a rank still takes part in what is collective. After an open or transfer that failed
 * anywhere, close and release follow; both cope with what is not open.
 */
#ifndef BENCH_BACKEND_H
#define BENCH_BACKEND_H

#include "task.h"

#include <jansson.h>
#include <mpi.h>
#include <stddef.h>

enum {
    BENCH_ERROR_BYTES = 768,
    BENCH_PATH_BYTES = 4096,
};

/* The record's type in a LIME container: SciDAC checksums belong to it. */
#define BENCH_RECORD_TYPE "scidac-binary-data"

struct bench_io;

/* What a back end can do if it is asked for. */
enum bench_ability {
    BENCH_CAN_INDEPENDENT = 1,
    BENCH_CAN_COLLECTIVE = 2,
    BENCH_CAN_ALIGN = 4,
    BENCH_CAN_CHUNK = 8,
    BENCH_CAN_GROW = 16, /* --unlimited */
    BENCH_CAN_SHAPE = 32,
    BENCH_CAN_HINT = 64,
    BENCH_CAN_SUM = 128,
    BENCH_CAN_LEAVE = 256, /* --no-fsync */
    BENCH_CAN_DATASET = BENCH_CAN_INDEPENDENT | BENCH_CAN_COLLECTIVE | BENCH_CAN_ALIGN |
                        BENCH_CAN_GROW | BENCH_CAN_SHAPE | BENCH_CAN_HINT | BENCH_CAN_LEAVE,
};

#define BENCH_PATTERN_BIT(kind) (1u << (kind))
#define BENCH_ALL_PATTERNS      ((1u << BENCH_PATTERNS) - 1)

struct bench_backend {
    const char *name, *about;
    unsigned abilities; /* enum bench_ability */
    unsigned patterns;  /* BENCH_PATTERN_BIT() */
    bool is_fragile;    /* after a transfer that failed, its library may wait for ever */
    size_t state_bytes; /* of io->state, which is zero before prepare */
    /* Optional. absent: why it cannot be used here at all, or NULL. refuses: why it cannot do
     * this task, though the masks allow it, or NULL. Local. */
    const char *(*absent)(void);
    const char *(*refuses)(const struct bench_task *);
    /* prepare and release are optional. */
    int (*prepare)(struct bench_io *);
    int (*open)(struct bench_io *);
    int (*transfer)(struct bench_io *);
    int (*sync)(struct bench_io *);
    int (*close)(struct bench_io *);
    void (*release)(struct bench_io *);
};

/* All of them, those that were not built too; NULL ends the list. */
extern const struct bench_backend *const bench_backends[];

/* Why it cannot do the task, or NULL. `text` is room for the answer. Local. */
const char *bench_backend_refuses(const struct bench_backend *, const struct bench_task *,
                                  char *text, size_t cap);

/* The versions of the libraries that were built in, by name. */
json_t *bench_backend_libraries(void);

/* One file, written or read once. */
struct bench_io {
    const struct bench_backend *backend;
    const struct bench_task *task;
    MPI_Comm comm; /* whose ranks are those of the pattern */
    int rank;
    bool writing;
    bool abandoned; /* a fragile one that has failed: nothing of it is called any more */
    char path[BENCH_PATH_BYTES];
    char *data;    /* this rank's bytes */
    void *state;   /* the back end's own */
    int fd;        /* -1: none */
    MPI_File file; /* MPI_FILE_NULL: none */
    json_t *hints; /* in effect, where MPI-IO tells; NULL otherwise */
    char error[BENCH_ERROR_BYTES];
};

#endif
