/*
 * world.h - all ranks: one message for what any of them has met
 */
#ifndef CHECKPOINT_WORLD_H
#define CHECKPOINT_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_PROGRAM "lime-checkpoint"

enum { /* exit statuses; compare has its own: see its usage */
       CHECKPOINT_GOOD = 0,
       CHECKPOINT_FAILED = 1,
       CHECKPOINT_USAGE = 2,
};

enum {
    CHECKPOINT_ERROR_BYTES = 768, /* of a reason, with its NUL */
};

struct checkpoint_world {
    int rank, ranks; /* of MPI_COMM_WORLD */
};

/* Also tells the library to give its messages to checkpoint_lemon(). */
void checkpoint_world_set(struct checkpoint_world *);

/* "lime-checkpoint: text" on stderr: one line, with nothing in it that steers a terminal. By
 * the rank that calls. */
__attribute__((format(printf, 1, 2))) void checkpoint_say(const char *format, ...);

/* The same, and ends the job. */
void checkpoint_abort(const char *reason) __attribute__((noreturn));

/* As realloc(), `count` items of `bytes`; never NULL: a rank without memory ends the job. */
void *checkpoint_allocate(void *data, int64_t count, int64_t bytes);

/* Collective. Rank 0 says what the lowest rank with an error has met: "lime-checkpoint: path:
 * error". An empty error is none, path may be NULL. Returns whether nobody has one. */
bool checkpoint_report(const struct checkpoint_world *, const char *path, const char *error);

/* The same for `code` of a call of Lemon, which each rank has got: the reason is the library's
 * own message. action: "read", or NULL. */
bool checkpoint_lemon(const struct checkpoint_world *, const char *path, const char *action,
                      int code);

/* The same value on all ranks: rank 0's. And their sum. */
int checkpoint_agree(int value);
int64_t checkpoint_sum(int64_t value);

/* What MPI calls this error. */
const char *checkpoint_mpi_text(int error, char text[CHECKPOINT_ERROR_BYTES]);

#endif
