/* world.h - all ranks, and one message for the errors of all of them */
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

/* Sets the ranks, and collects the library's messages for checkpoint_check_code(). */
void checkpoint_world_init(struct checkpoint_world *);

/* Prints "lime-checkpoint: text" to stderr as one line without control characters, on any rank.
 */
__attribute__((format(printf, 1, 2))) void checkpoint_log(const char *format, ...);

/* Prints the reason and aborts the job. */
void checkpoint_abort(const char *reason) __attribute__((noreturn));

/* Reallocates data to `count` items of `bytes` bytes; never NULL: aborts the job instead. */
void *checkpoint_allocate(void *data, int64_t count, int64_t bytes);

/* Rank 0 prints the error of the lowest rank that has one: "lime-checkpoint: path: error". ""
 * means no error; path may be NULL. Returns true if no rank has an error. Collective. */
bool checkpoint_report(const struct checkpoint_world *, const char *path, const char *error);

/* Reports the `code` of a Lemon call that each rank made, with the library's own message as the
 * reason. action: "read", or NULL. Otherwise as checkpoint_report(). */
bool checkpoint_check_code(const struct checkpoint_world *, const char *path,
                           const char *action, int code);

/* Return, on all ranks, rank 0's value, and the sum of all values. */
int checkpoint_broadcast(int value);
int64_t checkpoint_sum(int64_t value);

/* Returns MPI's text for this error. */
const char *checkpoint_mpi_strerror(int error, char text[CHECKPOINT_ERROR_BYTES]);

#endif
