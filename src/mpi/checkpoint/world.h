/* world.h - the ranks of the job; errors of any rank, which rank 0 prints once */
#ifndef CHECKPOINT_WORLD_H
#define CHECKPOINT_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_PROGRAM "lime-checkpoint"

enum { /* exit statuses of all sub-commands but compare (cmd_compare.c) */
       CHECKPOINT_SUCCESS = 0,
       CHECKPOINT_FAILED = 1,
       CHECKPOINT_USAGE = 2,
};

enum {
    CHECKPOINT_ERROR_BYTES = 768, /* size of an error text, with its NUL */
};

struct checkpoint_world {
    int rank, ranks; /* in MPI_COMM_WORLD */
};

/* Sets rank and ranks. From then on, checkpoint_check_code() prints Lemon's messages. */
void checkpoint_world_init(struct checkpoint_world *);

/* Prints "lime-checkpoint: text" to stderr, on one line. Any rank may call it. */
__attribute__((format(printf, 1, 2))) void checkpoint_log(const char *format, ...);

/* Prints the reason and aborts the job. */
void checkpoint_abort(const char *reason) __attribute__((noreturn));

/* Reallocates data (or NULL) to `count` items of `bytes` bytes, or aborts the job. */
void *checkpoint_allocate(void *data, int64_t count, int64_t bytes);

/* error: this rank's error, or ""; path: or NULL. Rank 0 prints "lime-checkpoint: path: error"
 * for the lowest rank with an error. Returns true if no rank has an error. Collective. */
bool checkpoint_report(const struct checkpoint_world *, const char *path, const char *error);

/* code: the result of a Lemon call on this rank. Returns true if it is LEMON_SUCCESS on all
 * ranks. Otherwise rank 0 prints "lime-checkpoint: path: action: message", with the message of
 * the lowest rank that has one. action: for example "read", or NULL. Collective. */
bool checkpoint_check_code(const struct checkpoint_world *, const char *path,
                           const char *action, int code);

/* On all ranks, _broadcast returns rank 0's value, _sum the sum of all values. Collective. */
int checkpoint_broadcast(int value);
int64_t checkpoint_sum(int64_t value);

/* Writes MPI's message for the error code to text, and returns text. */
const char *checkpoint_mpi_strerror(int error, char text[CHECKPOINT_ERROR_BYTES]);

#endif
