/* content_bytes.c - what is measured: the bytes of a pattern */
#include "data.h"
#include "measure.h"
#include "report.h"
#include "size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t bytes(const struct bench_options *o)
{
    return bench_pattern_bytes(&o->task.pattern);
}

static void make(struct bench_run *run, char *error)
{
    const struct bench_pattern *p = &run->options->task.pattern;
    int writer, reader;
    MPI_Comm_rank(run->writers, &writer);
    MPI_Comm_rank(run->readers, &reader);
    int64_t own = bench_pattern_rank_bytes(p, writer);
    int64_t others = bench_pattern_rank_bytes(p, reader);
    own = own > others ? own : others;
    if (posix_memalign((void **)&run->data, 4096, own ? (size_t)own : 1) != 0)
        run->data = NULL;
    if (run->data)
        memset(run->data, 0, (size_t)own); /* the pages are there before the clock runs */
    else
        snprintf(error, BENCH_ERROR_BYTES, "out of memory");
}

static void release(struct bench_run *run)
{
    free(run->data);
    run->data = NULL;
}

static void lend(struct bench_run *run, struct bench_io *io)
{
    io->data = run->data;
}

static void fill(struct bench_run *run, const struct bench_io *io, uint64_t seed, char *error)
{
    const struct bench_pattern *p = &run->options->task.pattern;
    int64_t pieces = bench_pattern_pieces(p, io->rank);
    (void)error;
    for (int64_t i = 0; i < pieces; i++) {
        struct bench_piece piece;
        bench_pattern_piece(p, io->rank, i, &piece);
        bench_data_fill(seed, piece.at, run->data + piece.memory, piece.bytes);
    }
}

/* What was not read must not look like what was written. */
static void spoil(struct bench_run *run, const struct bench_io *io)
{
    const struct bench_pattern *p = &run->options->task.pattern;
    memset(run->data, 0, (size_t)bench_pattern_rank_bytes(p, io->rank));
}

static void verify(struct bench_run *run, const struct bench_io *io, uint64_t seed, char *error)
{
    const struct bench_pattern *p = &run->options->task.pattern;
    int64_t pieces = bench_pattern_pieces(p, io->rank);
    struct bench_wrong wrong = {0};
    for (int64_t i = 0; i < pieces; i++) {
        struct bench_piece piece;
        bench_pattern_piece(p, io->rank, i, &piece);
        bench_data_check(seed, piece.at, run->data + piece.memory, piece.bytes, &wrong);
    }
    if (wrong.bytes)
        snprintf(error, BENCH_ERROR_BYTES,
                 "verify: wrong byte at offset %" PRId64 " of the data: expected 0x%02x, "
                 "found 0x%02x; %" PRId64 " of its bytes are wrong",
                 wrong.at, wrong.expected, wrong.found, wrong.bytes);
}

/* ---- in words ---- */

static void show_pattern(const struct bench_pattern *p, FILE *to)
{
    char block[BENCH_SIZE_TEXT], transfer[BENCH_SIZE_TEXT];
    bench_size_text((double)p->block, block);
    bench_size_text((double)p->transfer, transfer);
    if (p->kind == BENCH_LATTICE)
        bench_text_lattice(p, to);
    else if (p->kind == BENCH_DISJOINT)
        fprintf(to, "disjoint blocks of %s, transfers of %s", block, transfer);
    else
        fprintf(to, "%s, %" PRId64 " segments of %s", bench_pattern_name(p->kind), p->segments,
                transfer);
}

static void show_options(const struct bench_options *o, FILE *to)
{
    const struct bench_task *task = &o->task;
    static const char *const modes[] = {"", ", independent", ", collective"};
    fputs(modes[task->mode], to);
    if (task->alignment)
        fprintf(to, ", alignment %" PRId64, task->alignment);
    if (task->chunk)
        fprintf(to, ", chunks of %" PRId64 " bytes", task->chunk);
    if (task->unlimited)
        fputs(", unlimited dimension", to);
    if (task->shape == BENCH_SHAPE_2D)
        fputs(", 2 dimensions", to);
    if (task->checksum)
        fputs(", with checksum", to);
    if (o->reorder)
        fputs(", reordered", to);
    bench_text_hints(task, to);
    if (o->outputs > 1)
        fprintf(to, ", %" PRId64 " outputs", o->outputs);
    if (o->compute > 0)
        fprintf(to, ", each after %g s of computing", o->compute);
}

static void show(const struct bench_run *run, FILE *to)
{
    show_pattern(&run->options->task.pattern, to);
    show_options(run->options, to);
}

static const char *shape_of(const struct bench_task *task)
{
    if (task->shape == BENCH_SHAPE_2D)
        return "2d";
    bool lattice = task->pattern.kind == BENCH_LATTICE && task->shape == BENCH_SHAPE_DEFAULT;
    return lattice ? "lattice" : "1d";
}

static void set_pattern(json_t *to, const struct bench_pattern *p)
{
    bool lattice = p->kind == BENCH_LATTICE;
    json_object_set_new(to, "pattern", json_string(bench_pattern_name(p->kind)));
    json_object_set_new(to, "block_bytes", lattice ? json_null() : json_integer(p->block));
    json_object_set_new(to, "transfer_bytes", json_integer(p->transfer));
    json_object_set_new(to, "segments", lattice ? json_null() : json_integer(p->segments));
    json_object_set_new(to, "lattice", lattice ? bench_json_extents(p->lattice) : json_null());
    json_object_set_new(to, "grid", lattice ? bench_json_extents(p->grid) : json_null());
    json_object_set_new(to, "site_bytes", lattice ? json_integer(p->site_bytes) : json_null());
}

static void describe(const struct bench_run *run, json_t *to)
{
    const struct bench_options *o = run->options;
    const struct bench_task *task = &o->task;
    set_pattern(to, &task->pattern);
    json_object_set_new(to, "collective", json_boolean(bench_is_collective(task)));
    json_object_set_new(to, "chunk", json_integer(task->chunk));
    json_object_set_new(to, "unlimited", json_boolean(task->unlimited));
    json_object_set_new(to, "shape", json_string(shape_of(task)));
    json_object_set_new(to, "checksum", json_boolean(task->checksum));
    json_object_set_new(to, "extent_bytes", json_integer(task->extent));
    json_object_set_new(to, "job_ranks", json_integer(task->job_ranks));
    json_object_set_new(to, "compute_seconds", json_real(o->compute));
    json_object_set_new(to, "outputs", json_integer(o->outputs));
    json_object_set_new(to, "phases", json_integer(o->phases));
}

const struct bench_content bench_content_bytes = {
    .bytes = bytes,
    .make = make,
    .free = release,
    .lend = lend,
    .fill = fill,
    .spoil = spoil,
    .verify = verify,
    .show = show,
    .describe = describe,
};
