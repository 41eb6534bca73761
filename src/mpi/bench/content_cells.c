/* content_cells.c - what is measured: particles in cells */
#include "cells.h"
#include "measure.h"
#include "report.h"

#include <inttypes.h>

static int64_t bytes(const struct bench_options *o)
{
    return o->cells.particles * BENCH_PARTICLE_BYTES;
}

static void make(struct bench_run *run, char *error)
{
    int code;
    if (bench_cells_set(&run->cells, &run->options->cells, run->writers, run->readers, &code))
        return;
    if (code != LEMON_SUCCESS)
        snprintf(error, BENCH_ERROR_BYTES, "decomposition: Lemon's error %d", code);
    else
        snprintf(error, BENCH_ERROR_BYTES, "out of memory");
}

static void release(struct bench_run *run)
{
    bench_cells_free(&run->cells);
}

static void lend(struct bench_run *run, struct bench_io *io)
{
    io->cells = &run->cells;
}

static void fill(struct bench_run *run, const struct bench_io *io, uint64_t seed, char *error)
{
    if (!bench_cells_fill(&run->cells, io->rank, seed))
        snprintf(error, BENCH_ERROR_BYTES, "prepare: out of memory");
}

/* A reader makes room itself, as it cannot know how much. */
static void spoil(struct bench_run *run, const struct bench_io *io)
{
    (void)io;
    bench_cells_empty(&run->cells);
}

static void verify(struct bench_run *run, const struct bench_io *io, uint64_t seed, char *error)
{
    bench_cells_verify(&run->cells, io->comm, io->rank, seed, error);
    bench_cells_empty(&run->cells);
}

/* ---- in words ---- */

static const char *name_of(enum bench_decomposition decomposition)
{
    return decomposition == BENCH_KD ? "kd" : "regular";
}

static void show(const struct bench_run *run, FILE *to)
{
    const struct bench_options *o = run->options;
    const int64_t *cells = run->cells.domain.cells;
    fprintf(to,
            "%" PRId64 " particles of %d bytes in %" PRId64 " x %" PRId64 " x %" PRId64
            " cells, %s,\nwritten %s, read %s",
            o->cells.particles, BENCH_PARTICLE_BYTES, cells[0], cells[1], cells[2],
            o->cells.distribution == BENCH_CLUSTER ? "in drops" : "uniform",
            name_of(o->cells.writing), name_of(o->cells.reading));
    if (o->task.alignment)
        fprintf(to, ", alignment %" PRId64, o->task.alignment);
    if (o->reorder)
        fputs(", reordered", to);
    bench_text_hints(&o->task, to);
}

static void describe(const struct bench_run *run, json_t *to)
{
    const struct bench_cells_wish *wish = &run->options->cells;
    const int64_t *cells = run->cells.domain.cells;
    bool cluster = wish->distribution == BENCH_CLUSTER;
    json_object_set_new(to, "particles", json_integer(wish->particles));
    json_object_set_new(to, "particle_bytes", json_integer(BENCH_PARTICLE_BYTES));
    json_object_set_new(to, "cells",
                        json_pack("[I, I, I]", (json_int_t)cells[0], (json_int_t)cells[1],
                                  (json_int_t)cells[2]));
    json_object_set_new(to, "distribution", json_string(cluster ? "cluster" : "uniform"));
    json_object_set_new(to, "decomposition", json_string(name_of(wish->writing)));
    json_object_set_new(to, "read_decomposition", json_string(name_of(wish->reading)));
}

const struct bench_content bench_content_cells = {
    .bytes = bytes,
    .make = make,
    .free = release,
    .lend = lend,
    .fill = fill,
    .spoil = spoil,
    .verify = verify,
    .show = show,
    .describe = describe,
    .shows_times = true,
};
