/* agree.c - agree on an error code across ranks, and report messages */
#include "internal.h"
#include "lemon_inside.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    VALUES_MAX = 64,
    MESSAGE_MAX = 512,
};

int lemon_inside_agree(MPI_Comm comm, int code)
{
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MIN, comm);
    return code;
}

int lemon_agree(const struct lemon_internal *in, int code)
{
    return lemon_inside_agree(in->comm, code);
}

int lemon_inside_agree_on(MPI_Comm comm, int code, const int64_t *values, int n)
{
    int64_t least[1 + 2 * VALUES_MAX];
    least[0] = code;
    for (int i = 0; i < n; i++) {
        least[1 + 2 * i] = values[i];
        least[2 + 2 * i] = ~values[i]; /* reverses the order without overflow */
    }
    MPI_Allreduce(MPI_IN_PLACE, least, 1 + 2 * n, MPI_INT64_T, MPI_MIN, comm);
    if (least[0] != LEMON_SUCCESS)
        return (int)least[0];
    for (int i = 0; i < n; i++)
        if (least[1 + 2 * i] != ~least[2 + 2 * i])
            return lemon_inside_say(comm, LEMON_ERR_PARAM,
                                    "the ranks' arguments are not the same");
    return LEMON_SUCCESS;
}

int lemon_agree_on(const struct lemon_internal *in, int code, const int64_t *values, int n)
{
    return lemon_inside_agree_on(in->comm, code, values, n);
}

int lemon_failure(enum lemon_direction direction)
{
    return direction == LEMON_READ ? LEMON_ERR_READ : LEMON_ERR_WRITE;
}

static _Atomic(lemonMessageHandler *) handler;
static _Atomic(void *) handler_context;

void lemonSetMessageHandler(lemonMessageHandler *call, void *context)
{
    atomic_store(&handler, (lemonMessageHandler *)NULL);
    atomic_store(&handler_context, context);
    atomic_store(&handler, call);
}

/* rank < 0: no rank. */
static void compose(int rank, char text[MESSAGE_MAX], const char *format, va_list args)
{
    int n = rank >= 0 ? snprintf(text, MESSAGE_MAX, "lemon: rank %d: ", rank)
                      : snprintf(text, MESSAGE_MAX, "lemon: ");
    vsnprintf(text + n, MESSAGE_MAX - (size_t)n, format, args);
}

static void hand_over(int rank, const char *format, va_list args)
{
    lemonMessageHandler *call = atomic_load(&handler);
    char text[MESSAGE_MAX];
    if (!call)
        return;
    compose(rank, text, format, args);
    call(text, atomic_load(&handler_context));
}

int lemon_say(const struct lemon_internal *in, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    hand_over(in ? in->rank : -1, format, args);
    va_end(args);
    return code;
}

int lemon_inside_say(MPI_Comm comm, int code, const char *format, ...)
{
    int rank = -1;
    va_list args;
    if (comm != MPI_COMM_NULL)
        MPI_Comm_rank(comm, &rank);
    va_start(args, format);
    hand_over(rank, format, args);
    va_end(args);
    return code;
}

int lemon_tell(const struct lemon_internal *in, int code, const char *text)
{
    struct {
        int code, rank;
    } lowest = {code, in->rank};
    char words[MESSAGE_MAX] = "";
    MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_2INT, MPI_MINLOC, in->comm);
    if (lowest.code == LEMON_SUCCESS)
        return LEMON_SUCCESS;
    if (in->rank == lowest.rank)
        snprintf(words, sizeof words, "%s", text);
    MPI_Bcast(words, sizeof words, MPI_CHAR, lowest.rank, in->comm);
    return lemon_say(in, lowest.code, "%s", words);
}

void lemon_warn(const struct lemon_internal *in, const char *format, ...)
{
    lemonMessageHandler *call = atomic_load(&handler);
    if (in->rank != 0)
        return;
    char text[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    compose(in->rank, text, format, args);
    va_end(args);
    if (call)
        call(text, atomic_load(&handler_context));
    else
        fprintf(stderr, "%s\n", text);
}
