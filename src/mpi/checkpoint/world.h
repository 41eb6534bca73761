/* world.h - the ranks of the job, and errors of any rank, printed once by rank 0 */
#ifndef CHECKPOINT_WORLD_H
#define CHECKPOINT_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_PROGRAM "lime-checkpoint"

enum { /* exit statuses; compare has its own: see its usage */
       CHECKPOINT_SUCCESS = 0,
       CHECKPOINT_FAILED = 1,
       CHECKPOINT_USAGE = 2,
};

enum {
    CHECKPOINT_ERROR_BYTES = 768, /* of a reason, with its NUL */
};

struct checkpoint_world {
    int rank, ranks; /* in MPI_COMM_WORLD */
};

/* Sets rank and ranks, and collects Lemon's messages for checkpoint_check_code(). */
void checkpoint_world_init(struct checkpoint_world *);

/* Prints "lime-checkpoint: text" to stderr, on one line and on any rank. */
__attribute__((format(printf, 1, 2))) void checkpoint_log(const char *format, ...);

/* Prints the reason and aborts the job. */
void checkpoint_abort(const char *reason) __attribute__((noreturn));

/* Reallocates data to `count` items of `bytes` bytes; never NULL: aborts the job instead. */
void *checkpoint_allocate(void *data, int64_t count, int64_t bytes);

/* Rank 0 prints the error of the lowest rank that has one: "lime-checkpoint: path: error". ""
 * means no error; path may be NULL. Returns true if no rank has an error. Collective. */
bool checkpoint_report(const struct checkpoint_world *, const char *path, const char *error);

/* Reports the errors of a Lemon call, which returned `code` on this rank, as
 * checkpoint_report() does: "lime-checkpoint: path: action: Lemon's message". action: "read"
 * for example, or NULL. Returns true if `code` is LEMON_SUCCESS on all ranks. Collective. */
bool checkpoint_check_code(const struct checkpoint_world *, const char *path,
                           const char *action, int code);

/* Return, on all ranks, rank 0's value or the sum of all values. Collective. */
int checkpoint_broadcast(int value);
int64_t checkpoint_sum(int64_t value);

/* Returns MPI's text for this error. */
const char *checkpoint_mpi_strerror(int error, char text[CHECKPOINT_ERROR_BYTES]);

#endif
