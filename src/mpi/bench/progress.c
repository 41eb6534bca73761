/* progress.c - a line that says what goes on */
#include "report.h"
#include "terminal.h"

enum {
    QUIET_SECONDS = 2, /* before the first line */
};

static bool shows, is_shown;
static double begun;

void bench_progress_start(const struct bench_options *o, const struct bench_world *world)
{
    shows = world->rank == 0 && !o->quiet && limefile_terminal_shows_errors();
    begun = MPI_Wtime();
}

void bench_progress_clear(void)
{
    if (is_shown)
        fputs("\r\033[K", stderr);
    is_shown = false;
}

void bench_progress(const struct bench_run *run, const struct bench_entry *entry,
                    enum bench_operation operation, int repetition)
{
    if (!shows || MPI_Wtime() - begun < QUIET_SECONDS)
        return;
    bench_progress_clear();
    fprintf(stderr, "repetition %d of %d: %s: %s", repetition + 1,
            (int)run->options->repetitions, entry->backend->name,
            operation == BENCH_WRITE ? "write" : "read");
    is_shown = true;
}
