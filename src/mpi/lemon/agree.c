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
    int64_t lowest[1 + 2 * VALUES_MAX];
    lowest[0] = code;
    for (int i = 0; i < n; i++) {
        lowest[1 + 2 * i] = values[i];
        lowest[2 + 2 * i] = ~values[i]; /* reverses the order like -value, which may overflow */
    }
    MPI_Allreduce(MPI_IN_PLACE, lowest, 1 + 2 * n, MPI_INT64_T, MPI_MIN, comm);
    if (lowest[0] != LEMON_SUCCESS)
        return (int)lowest[0];
    for (int i = 0; i < n; i++)
        if (lowest[1 + 2 * i] != ~lowest[2 + 2 * i])
            return lemon_inside_log(comm, LEMON_ERR_PARAM,
                                    "the arguments differ between ranks");
    return LEMON_SUCCESS;
}

int lemon_agree_on(const struct lemon_internal *in, int code, const int64_t *values, int n)
{
    return lemon_inside_agree_on(in->comm, code, values, n);
}

int lemon_io_error(enum lemon_direction direction)
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

/* rank < 0: formats the message without a rank. */
__attribute__((format(printf, 3, 0))) static void format_message(int rank,
                                                                 char text[MESSAGE_MAX],
                                                                 const char *format,
                                                                 va_list args)
{
    int n = rank >= 0 ? snprintf(text, MESSAGE_MAX, "lemon: rank %d: ", rank)
                      : snprintf(text, MESSAGE_MAX, "lemon: ");
    vsnprintf(text + n, MESSAGE_MAX - (size_t)n, format, args);
}

__attribute__((format(printf, 2, 0))) static void call_handler(int rank, const char *format,
                                                               va_list args)
{
    lemonMessageHandler *call = atomic_load(&handler);
    char text[MESSAGE_MAX];
    if (!call)
        return;
    format_message(rank, text, format, args);
    call(text, atomic_load(&handler_context));
}

int lemon_log(const struct lemon_internal *in, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call_handler(in ? in->rank : -1, format, args);
    va_end(args);
    return code;
}

int lemon_inside_log(MPI_Comm comm, int code, const char *format, ...)
{
    int rank = -1;
    va_list args;
    if (comm != MPI_COMM_NULL)
        MPI_Comm_rank(comm, &rank);
    va_start(args, format);
    call_handler(rank, format, args);
    va_end(args);
    return code;
}

int lemon_agree_and_log(const struct lemon_internal *in, int code, const char *text)
{
    struct {
        int code, rank;
    } first_failed = {code, in->rank};
    char message[MESSAGE_MAX] = "";
    MPI_Allreduce(MPI_IN_PLACE, &first_failed, 1, MPI_2INT, MPI_MINLOC, in->comm);
    if (first_failed.code == LEMON_SUCCESS)
        return LEMON_SUCCESS;
    if (in->rank == first_failed.rank)
        snprintf(message, sizeof message, "%s", text);
    MPI_Bcast(message, sizeof message, MPI_CHAR, first_failed.rank, in->comm);
    return lemon_log(in, first_failed.code, "%s", message);
}

void lemon_log_warning(const struct lemon_internal *in, const char *format, ...)
{
    lemonMessageHandler *call = atomic_load(&handler);
    if (in->rank != 0)
        return;
    char text[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    format_message(in->rank, text, format, args);
    va_end(args);
    if (call)
        call(text, atomic_load(&handler_context));
    else
        fprintf(stderr, "%s\n", text);
}
