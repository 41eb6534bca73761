/* world.c - the ranks of the job, and error messages */
#include "world.h"
#include "lemon.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MESSAGE_BYTES = 512,
};

/* Lemon's first message since the last call of checkpoint_check_code(). */
static char lemon_message[MESSAGE_BYTES];

static void store_message(const char *text, void *context)
{
    (void)context;
    if (!lemon_message[0])
        snprintf(lemon_message, sizeof lemon_message, "%s", text);
}

void checkpoint_world_init(struct checkpoint_world *world)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->ranks);
    lemonSetMessageHandler(store_message, NULL);
}

void checkpoint_log(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    limefile_text_print(CHECKPOINT_PROGRAM, format, args);
    va_end(args);
}

void checkpoint_abort(const char *reason)
{
    checkpoint_log("%s", reason);
    MPI_Abort(MPI_COMM_WORLD, CHECKPOINT_FAILED);
    abort();
}

void *checkpoint_allocate(void *data, int64_t count, int64_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all) || !(data = realloc(data, all ? all : 1)))
        checkpoint_abort("out of memory");
    return data;
}

bool checkpoint_report(const struct checkpoint_world *world, const char *path,
                       const char *error)
{
    char text[CHECKPOINT_ERROR_BYTES];
    int first = error[0] ? world->rank : world->ranks;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == world->ranks)
        return true;
    snprintf(text, sizeof text, "%s", error);
    MPI_Bcast(text, sizeof text, MPI_CHAR, first, MPI_COMM_WORLD);
    if (world->rank == 0)
        checkpoint_log("%s%s%s", path ? path : "", path ? ": " : "", text);
    return false;
}

/* Returns a message for `code`, used if Lemon sent none. The next call overwrites it. */
static const char *format_code(int code)
{
    static char text[32];
    snprintf(text, sizeof text, "Lemon error %d", code);
    return code == LEMON_EOF ? "no checkpoint in this file" : text;
}

/* Returns the text after Lemon's prefix "lemon: rank N: ". */
static const char *skip_prefix(const char *text)
{
    int prefix = 0;
    sscanf(text, "lemon: rank %*d: %n", &prefix);
    return text + prefix;
}

bool checkpoint_check_code(const struct checkpoint_world *world, const char *path,
                           const char *action, int code)
{
    char text[CHECKPOINT_ERROR_BYTES] = "";
    int rank = code != LEMON_SUCCESS && lemon_message[0] ? world->rank : world->ranks;
    MPI_Allreduce(MPI_IN_PLACE, &rank, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (code != LEMON_SUCCESS && (rank == world->rank || rank == world->ranks))
        snprintf(text, sizeof text, "%s%s%s", action ? action : "", action ? ": " : "",
                 lemon_message[0] ? skip_prefix(lemon_message) : format_code(code));
    lemon_message[0] = '\0';
    return checkpoint_report(world, path, text);
}

int checkpoint_broadcast(int value)
{
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return value;
}

int64_t checkpoint_sum(int64_t value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

const char *checkpoint_mpi_strerror(int error, char text[CHECKPOINT_ERROR_BYTES])
{
    char all[MPI_MAX_ERROR_STRING];
    int n;
    if (MPI_Error_string(error, all, &n) != MPI_SUCCESS)
        snprintf(all, sizeof all, "MPI error %d", error);
    snprintf(text, CHECKPOINT_ERROR_BYTES, "%s", all);
    return text;
}
