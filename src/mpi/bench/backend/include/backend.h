/*
 * backend.h - back ends, tables of functions that write and read a file, as in IOR
 *
 * All ranks together call prepare, open, transfer, sync, close and release, in this order;
 * sync only after writing and without --no-fsync. The measured time is from before open to
 * after close. A function returns 0, or -1 on ranks with an error, with a message in io->error;
 * such a rank still takes part in collective calls. After an error on any rank, close (unless
 * prepare failed) and release are called; they must accept a file that is not open. But if
 * `may_hang` is set, no function is called after a failed transfer.
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

/* Type of the record in LIME containers. A SciDAC checksum can follow a record of this type. */
#define BENCH_RECORD_TYPE "scidac-binary-data"

struct bench_io;

/* Options that a back end supports. */
enum bench_ability {
    BENCH_CAN_INDEPENDENT = 1,
    BENCH_CAN_COLLECTIVE = 2,
    BENCH_CAN_ALIGN = 4,
    BENCH_CAN_CHUNK = 8,
    BENCH_CAN_GROW = 16, /* --unlimited */
    BENCH_CAN_SHAPE = 32,
    BENCH_CAN_HINT = 64,
    BENCH_CAN_CHECKSUM = 128,
    BENCH_CAN_NOSYNC = 256, /* --no-fsync */
    BENCH_CAN_DATASET = BENCH_CAN_INDEPENDENT | BENCH_CAN_COLLECTIVE | BENCH_CAN_ALIGN |
                        BENCH_CAN_GROW | BENCH_CAN_SHAPE | BENCH_CAN_HINT | BENCH_CAN_NOSYNC,
};

#define BENCH_PATTERN_BIT(kind) (1u << (kind))
#define BENCH_ALL_PATTERNS      ((1u << BENCH_PATTERNS) - 1)

struct bench_backend {
    const char *name, *about;
    unsigned abilities; /* enum bench_ability */
    unsigned patterns;  /* BENCH_PATTERN_BIT() */
    bool may_hang;      /* its library may hang after a failed transfer */
    size_t state_bytes; /* size of io->state, whose bytes are 0 before prepare */
    /* unavailable() returns why the back end cannot be used on this machine, or NULL.
     * unsupported() returns why it cannot do a task that abilities and patterns allow, or NULL.
     * Both are optional and not collective. */
    const char *(*unavailable)(void);
    const char *(*unsupported)(const struct bench_task *);
    /* prepare and release are optional. */
    int (*prepare)(struct bench_io *);
    int (*open)(struct bench_io *);
    int (*transfer)(struct bench_io *);
    int (*sync)(struct bench_io *);
    int (*close)(struct bench_io *);
    void (*release)(struct bench_io *);
};

/* All back ends, including those that were not built; NULL ends the list. */
extern const struct bench_backend *const bench_backends[];

/* Returns NULL if the back end can do the task, else text, with a reason. Not collective. */
const char *bench_backend_unsupported(const struct bench_backend *, const struct bench_task *,
                                      char *text, size_t cap);

/* Returns a new JSON object: the versions of the libraries that were built in, by name. */
json_t *bench_backend_libraries(void);

/* One file, written or read once. */
struct bench_io {
    const struct bench_backend *backend;
    const struct bench_task *task;
    MPI_Comm comm; /* its ranks are those of the pattern */
    int rank;
    bool is_writing;
    bool is_abandoned; /* the library may hang: no function may be called again */
    char path[BENCH_PATH_BYTES];
    char *data;    /* this rank's bytes */
    void *state;   /* the back end's data, state_bytes bytes */
    int fd;        /* -1: none */
    MPI_File file; /* MPI_FILE_NULL: none */
    json_t *hints; /* the MPI-IO hints in effect, on rank 0, or NULL */
    char error[BENCH_ERROR_BYTES];
};

#endif
