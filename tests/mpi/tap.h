/* tap.h - print TAP from an MPI program: rank 0 prints the results of all ranks */
#ifndef TAP_H
#define TAP_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef MPICH_VERSION
#include "yield.h"
#endif

static int tap_rank, tap_ranks, tap_number, tap_failed;

/* Returns the thread level that MPI provides. */
static inline int tap_begin_threads(int *argc, char ***argv, int level)
{
    MPI_Init_thread(argc, argv, level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &tap_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tap_ranks);
    alarm(1000); /* a rank that waits for ever ends the job; each result allows more time */
    return level;
}

static inline void tap_begin(int *argc, char ***argv)
{
    tap_begin_threads(argc, argv, MPI_THREAD_SINGLE);
}

/* Passes if the condition holds on every rank. Collective. */
__attribute__((format(printf, 2, 3))) static inline int tap_ok(int good, const char *format,
                                                               ...)
{
    int all;
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    alarm(1000);
    tap_number++;
    tap_failed += !all;
    if (tap_rank == 0) {
        va_list args;
        va_start(args, format);
        printf("%s %d - %d ranks: ", all ? "ok" : "not ok", tap_number, tap_ranks);
        vprintf(format, args);
        printf("\n");
        fflush(stdout);
        va_end(args);
    }
    return all;
}

/* Passes if every rank has this code. Collective. */
static inline void tap_code(int code, int want, const char *what)
{
    int least, most;
    MPI_Allreduce(&code, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&code, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    tap_ok(least == want && most == want, "%s: %d to %d, should be %d", what, least, most,
           want);
}

static inline int tap_end(void)
{
    if (tap_rank == 0)
        printf("1..%d\n", tap_number);
    MPI_Finalize();
    return tap_failed ? 1 : 0;
}

#endif
