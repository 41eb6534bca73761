/* world.c - the ranks of the job, error messages and progress */
#include "world.h"
#include "backend.h"
#include "terminal.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    PROGRESS_DELAY = 2, /* seconds before progress is shown */
};

static bool shows_progress, is_shown;
static double start_time;

void bench_world_init(struct bench_world *world)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &world->host);
    MPI_Comm_rank(world->host, &world->host_rank);
    MPI_Comm_size(world->host, &world->host_ranks);
    int first = world->host_rank == 0;
    MPI_Allreduce(&first, &world->hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

void bench_world_free(struct bench_world *world)
{
    MPI_Comm_free(&world->host);
}

void bench_log(const char *format, ...)
{
    va_list args;
    bench_progress_clear();
    va_start(args, format);
    limefile_text_print(BENCH_PROGRAM, format, args);
    va_end(args);
}

void bench_progress_start(const struct bench_world *world, bool quiet)
{
    shows_progress = world->rank == 0 && !quiet && limefile_terminal_shows_errors();
    start_time = MPI_Wtime();
}

void bench_progress_clear(void)
{
    if (is_shown)
        fputs("\r\033[K", stderr);
    is_shown = false;
}

void bench_progress(const char *format, ...)
{
    va_list args;
    if (!shows_progress || MPI_Wtime() - start_time < PROGRESS_DELAY)
        return;
    bench_progress_clear();
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    is_shown = true;
}

bool bench_world_report(const struct bench_world *world, const char *path, const char *where,
                        const char *error)
{
    char text[BENCH_ERROR_BYTES];
    int failed = error[0] != '\0', first = failed ? world->rank : world->ranks, count;
    MPI_Allreduce(&failed, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (count == 0)
        return true;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    snprintf(text, sizeof text, "%s", error);
    MPI_Bcast(text, sizeof text, MPI_CHAR, first, MPI_COMM_WORLD);
    if (world->rank == 0 && count == 1)
        bench_log("%s: %s: rank %d: %s", path, where, first, text);
    else if (world->rank == 0)
        bench_log("%s: %s: rank %d: %s (and %d other rank%s)", path, where, first, text,
                  count - 1, count == 2 ? "" : "s");
    return false;
}

int bench_world_broadcast(int value)
{
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return value;
}
