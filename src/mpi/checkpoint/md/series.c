/* series.c - checkpoints while a run goes on */
#include "md_series.h"

#include <stdio.h>
#include <string.h>

bool md_series_open(const struct checkpoint_world *world, const char *prefix, int64_t keep,
                    bool overlap, struct md_series *s)
{
    *s = (struct md_series){.prefix = prefix, .overlap = overlap};
    int code = lemonOpenSeries(prefix, (int)keep, MPI_INFO_NULL, MPI_COMM_WORLD, &s->series);
    return checkpoint_lemon(world, prefix, "open", code);
}

/* ---- out ---- */

static bool publish(const struct checkpoint_world *world, struct md_series *s)
{
    double from = MPI_Wtime();
    int code = lemonSeriesEnd(s->series);
    s->waiting += MPI_Wtime() - from;
    s->under_way += MPI_Wtime() - s->begun;
    s->writing = false;
    s->count += code == LEMON_SUCCESS;
    return checkpoint_lemon(world, s->prefix, "write", code);
}

bool md_series_close(const struct checkpoint_world *world, struct md_series *s, bool good)
{
    if (s->writing && good)
        good = publish(world, s);
    else if (s->writing)
        lemonSeriesAbort(s->series);
    return checkpoint_lemon(world, s->prefix, "close", lemonCloseSeries(s->series)) && good;
}

bool md_series_write(const struct checkpoint_world *world, struct md_series *s,
                     const struct md_state *state, double start)
{
    LemonWriter *writer;
    if (s->writing && !publish(world, s))
        return false;
    s->begun = MPI_Wtime();
    int code = lemonSeriesBegin(s->series, state->step, &writer);
    if (!checkpoint_lemon(world, s->prefix, "write", code))
        return false;
    s->writing = true;
    code = md_file_write(writer, state, start, !s->overlap);
    s->handing += MPI_Wtime() - s->begun;
    if (!checkpoint_lemon(world, s->prefix, "write", code))
        return false;
    return s->overlap || publish(world, s);
}

bool md_series_look(const struct checkpoint_world *world, struct md_series *s)
{
    int done = 0;
    if (!s->writing)
        return true;
    int code = lemonSeriesTest(s->series, &done);
    if (code != LEMON_SUCCESS)
        return checkpoint_lemon(world, s->prefix, "write", code);
    return !done || publish(world, s);
}

/* ---- in ---- */

bool md_series_load(const struct checkpoint_world *world, struct md_series *s,
                    struct md_state *state, double *start, bool *found)
{
    char path[PATH_MAX];
    int64_t number = LEMON_SERIES_NEWEST;
    bool damaged = false; /* those that were tried before */
    *found = false;
    for (;; damaged = true) {
        int code = lemonSeriesLatest(s->series, number, &number, path, sizeof path);
        if (code == LEMON_EOF && !damaged)
            return true;
        if (code == LEMON_EOF && world->rank == 0)
            checkpoint_say("%s: no checkpoint of the series can be read", s->prefix);
        if (code == LEMON_EOF || !checkpoint_lemon(world, s->prefix, "find", code))
            return false;
        if (md_file_load(world, path, state, start))
            break;
        if (world->rank == 0)
            checkpoint_say("%s: left out; trying the checkpoint before it", path);
    }
    if (damaged &&
        !checkpoint_lemon(world, s->prefix, "rewind", lemonSeriesRewind(s->series, number))) {
        md_state_free(state);
        return false;
    }
    memcpy(s->read, path, sizeof s->read);
    if (world->rank == 0)
        checkpoint_say("%s: continued from step %lld", path, (long long)state->step);
    *found = true;
    return true;
}
