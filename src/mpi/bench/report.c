/* report.c - print the results as text and as JSON */
#include "report.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- statistics ---- */

struct statistics {
    double mean, min, max, median;
    double deviation; /* of a sample: divided by n - 1; 0 for a single value */
};

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the statistics of n values, at least 1, and sorts the values. */
static struct statistics compute_statistics(double *values, int n)
{
    struct statistics s = {0};
    double squares = 0;
    qsort(values, (size_t)n, sizeof *values, compare_numbers);
    for (int i = 0; i < n; i++)
        s.mean += values[i] / n;
    for (int i = 0; i < n; i++)
        squares += (values[i] - s.mean) * (values[i] - s.mean);
    s.min = values[0];
    s.max = values[n - 1];
    s.median = (values[(n - 1) / 2] + values[n / 2]) / 2;
    s.deviation = n > 1 ? sqrt(squares / (n - 1)) : 0;
    return s;
}

/* Returns the statistics of the speeds of all repetitions, in bytes per second. */
static struct statistics compute_speed_statistics(const struct bench_run *run,
                                                  const struct bench_result *result)
{
    double speeds[BENCH_REPETITIONS_MAX] = {0};
    for (int i = 0; i < result->n; i++)
        speeds[i] = (double)run->bytes / result->seconds[i].total;
    return compute_statistics(speeds, result->n);
}

/* ---- text: what is measured ---- */

static void print_pattern(const struct bench_pattern *p, FILE *to)
{
    char block[LIMEFILE_SIZE_CHARS], transfer[LIMEFILE_SIZE_CHARS];
    const int *l = p->lattice, *g = p->grid;
    limefile_format_bytes((uint64_t)p->block, block);
    limefile_format_bytes((uint64_t)p->transfer, transfer);
    if (p->kind == BENCH_LATTICE)
        fprintf(to,
                "lattice %d x %d x %d x %d of %" PRId64 "-byte sites, grid %d x %d x %d x %d",
                l[0], l[1], l[2], l[3], p->site_bytes, g[0], g[1], g[2], g[3]);
    else if (p->kind == BENCH_DISJOINT)
        fprintf(to, "disjoint blocks of %s, transfers of %s", block, transfer);
    else
        fprintf(to, "%s, %" PRId64 " segments of %s", bench_pattern_names[p->kind], p->segments,
                transfer);
}

static void print_options(const struct bench_options *o, FILE *to)
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
    for (int i = 0; i < task->hints; i++) {
        char text[MPI_MAX_INFO_KEY + MPI_MAX_INFO_VAL + 2];
        snprintf(text, sizeof text, "%s=%s", task->hint[i].key, task->hint[i].value);
        limefile_text_sanitize(text, "");
        fprintf(to, ", %s", text);
    }
    if (o->outputs > 1)
        fprintf(to, ", %" PRId64 " outputs", o->outputs);
    if (o->compute > 0)
        fprintf(to, ", each after %g s of computing", o->compute);
}

static const char *cache_text(const struct bench_run *run)
{
    if (strcmp(run->cache, "drop_caches") == 0)
        return "page cache dropped before each operation";
    if (strcmp(run->cache, "posix_fadvise") == 0)
        return "file dropped from the page cache before each operation";
    return "page cache warm";
}

void bench_print_head(const struct bench_run *run, const struct bench_system *system, FILE *to)
{
    const struct bench_options *o = run->options;
    char all[LIMEFILE_SIZE_CHARS], rank[LIMEFILE_SIZE_CHARS];
    int ranks = run->world->ranks;
    print_pattern(&o->task.pattern, to);
    print_options(o, to);
    limefile_format_bytes((uint64_t)run->bytes, all);
    limefile_format_bytes((uint64_t)(run->bytes / ranks), rank);
    fprintf(to, "\n%d rank%s on %d host%s, %s: %s a rank\n", ranks, ranks == 1 ? "" : "s",
            run->world->hosts, run->world->hosts == 1 ? "" : "s", all, rank);
    fprintf(to, "%" PRId64 " repetition%s, ", o->repetitions, o->repetitions == 1 ? "" : "s");
    if (o->writes)
        fprintf(to, "%s, ", o->task.fsync ? "written data synced" : "written data not synced");
    fprintf(to, "%s\n", cache_text(run));
    fprintf(to, "%s (%s), %s, %ld processor%s\n\n", system->mpi, system->mpi_io,
            system->file_system, system->cpus, system->cpus == 1 ? "" : "s");
    fflush(to);
}

/* ---- text: results ---- */

enum column {
    COMPUTE,
    OPEN,
    TRANSFER,
    CLOSE,
};

static void print_heading(bool computes, FILE *to)
{
    fprintf(to, "%-18sMB/s (10^6 bytes)%*smedian time, ms\n", "", 19, "");
    fprintf(to, "%-16s median   mean    min    max    dev  %s    open transfer   close\n", "",
            computes ? " compute" : "");
}

/* Returns the median of one phase, in seconds. */
static double phase_median(const struct bench_result *result, enum column column)
{
    double values[BENCH_REPETITIONS_MAX] = {0};
    for (int i = 0; i < result->n; i++) {
        const struct bench_seconds *s = &result->seconds[i];
        const double all[] = {s->compute, s->open, s->transfer, s->close};
        values[i] = all[column];
    }
    return compute_statistics(values, result->n).median;
}

/* Prints the value right-aligned in `width` columns, with one decimal if it is below 100. */
static void print_number(double value, int width, FILE *to)
{
    fprintf(to, "%*.*f", width, fabs(value) < 99.95 ? 1 : 0, value);
}

static void print_result(const struct bench_run *run, const struct bench_entry *entry,
                         enum bench_operation operation, bool with_name, FILE *to)
{
    const struct bench_result *result = &entry->results[operation];
    bool computes = run->options->compute > 0 && operation == BENCH_WRITE;
    struct statistics s = compute_speed_statistics(run, result);
    const double columns[] = {s.median, s.mean, s.min, s.max, s.deviation};
    fprintf(to, "%-10s %-5s", with_name ? entry->backend->name : "",
            operation == BENCH_WRITE ? "write" : "read");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        print_number(columns[i] / 1e6, 7, to);
    fputs("  ", to);
    for (int column = computes ? COMPUTE : OPEN; column <= CLOSE; column++)
        print_number(1e3 * phase_median(result, (enum column)column), 8, to);
    if (operation == BENCH_READ && !result->verified)
        fputs("  WRONG BYTES", to);
    fputc('\n', to);
}

/* Returns the last sentence of a report on reads: wrong bytes have priority over failures. */
static const char *get_verdict_text(const struct bench_run *run)
{
    bool failed = false;
    for (int i = 0; i < run->entry_count; i++) {
        if (!run->entry[i].results[BENCH_READ].verified)
            return "WRONG BYTES were read: see the messages.";
        failed = failed || run->entry[i].failure[0];
    }
    return failed ? "Something failed: see the messages."
                  : "Every byte that was read is right.";
}

void bench_print_results(const struct bench_run *run, FILE *to)
{
    print_heading(run->options->compute > 0, to);
    for (int i = 0; i < run->entry_count; i++) {
        const struct bench_entry *entry = &run->entry[i];
        bool with_name = true;
        for (int op = 0; op < BENCH_OPERATIONS; op++)
            if (entry->results[op].n) {
                print_result(run, entry, (enum bench_operation)op, with_name, to);
                with_name = false;
            }
        if (entry->failure[0])
            fprintf(to, "%-11s %s\n", entry->backend->name, entry->failure);
    }
    if (run->skipped_count)
        fputs("\nnot measured:\n", to);
    for (int i = 0; i < run->skipped_count; i++)
        fprintf(to, "  %-11s %s\n", run->skipped[i].backend->name, run->skipped[i].reason);
    if (run->options->reads)
        fprintf(to, "\n%s\n", get_verdict_text(run));
}

/* ---- JSON ---- */

static const char *get_shape_name(const struct bench_task *task)
{
    if (task->shape == BENCH_SHAPE_2D)
        return "2d";
    bool lattice = task->pattern.kind == BENCH_LATTICE && task->shape == BENCH_SHAPE_DEFAULT;
    return lattice ? "lattice" : "1d";
}

static json_t *extents_json(const int extents[BENCH_DIMS])
{
    return json_pack("[i, i, i, i]", extents[0], extents[1], extents[2], extents[3]);
}

static void add_pattern(json_t *to, const struct bench_pattern *p)
{
    bool lattice = p->kind == BENCH_LATTICE;
    json_object_set_new(to, "pattern", json_string(bench_pattern_names[p->kind]));
    json_object_set_new(to, "block_bytes", lattice ? json_null() : json_integer(p->block));
    json_object_set_new(to, "transfer_bytes", json_integer(p->transfer));
    json_object_set_new(to, "segments", lattice ? json_null() : json_integer(p->segments));
    json_object_set_new(to, "lattice", lattice ? extents_json(p->lattice) : json_null());
    json_object_set_new(to, "grid", lattice ? extents_json(p->grid) : json_null());
    json_object_set_new(to, "site_bytes", lattice ? json_integer(p->site_bytes) : json_null());
}

static json_t *parameters_json(const struct bench_run *run)
{
    const struct bench_options *o = run->options;
    const struct bench_task *task = &o->task;
    json_t *hints = json_object();
    for (int i = 0; i < task->hints; i++)
        json_object_set_new(hints, task->hint[i].key, json_string(task->hint[i].value));
    json_t *to = json_pack(
        "{s:i, s:i, s:b, s:I, s:b, s:s, s:b, s:I, s:f, s:I, s:I, s:b, s:b, s:b, s:s, s:o, s:I, "
        "s:I}",
        "ranks", run->world->ranks, "hosts", task->hosts, "collective",
        (int)bench_is_collective(task), "chunk", (json_int_t)task->chunk, "unlimited",
        (int)task->unlimited, "shape", get_shape_name(task), "checksum", (int)task->checksum,
        "job_ranks", (json_int_t)task->job_ranks, "compute_seconds", o->compute, "outputs",
        (json_int_t)o->outputs, "alignment", (json_int_t)task->alignment, "fsync",
        (int)task->fsync, "reorder", (int)o->reorder, "cold", (int)o->cold, "cache", run->cache,
        "hints", hints, "repetitions", (json_int_t)o->repetitions, "seed", (json_int_t)o->seed);
    add_pattern(to, &task->pattern);
    return to;
}

static json_t *seconds_json(const struct bench_seconds *s, bool computes)
{
    json_t *all = json_pack("{s:f, s:f, s:f, s:f}", "open", s->open, "transfer", s->transfer,
                            "close", s->close, "total", s->total);
    if (computes)
        json_object_set_new(all, "compute", json_real(s->compute));
    return all;
}

static json_t *result_json(const struct bench_run *run, const struct bench_entry *entry,
                           enum bench_operation operation)
{
    const struct bench_result *result = &entry->results[operation];
    bool writes = operation == BENCH_WRITE;
    bool verified = entry->results[BENCH_READ].n > 0 && entry->results[BENCH_READ].verified;
    struct statistics s = compute_speed_statistics(run, result);
    json_t *seconds = json_array();
    for (int i = 0; i < result->n; i++)
        json_array_append_new(
            seconds, seconds_json(&result->seconds[i], writes && run->options->compute > 0));
    json_t *speeds = json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", s.mean, "min", s.min, "max",
                               s.max, "deviation", s.deviation, "median", s.median);
    return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:b}", "backend",
                     entry->backend->name, "operation", writes ? "write" : "read", "bytes",
                     (json_int_t)run->bytes, "file_bytes", (json_int_t)entry->file_bytes,
                     "hints", result->hints ? json_incref(result->hints) : json_object(),
                     "seconds", seconds, "bytes_per_second", speeds, "verified", (int)verified);
}

static void append_reason(json_t *list, const struct bench_backend *backend, const char *reason)
{
    json_array_append_new(list,
                          json_pack("{s:s, s:s}", "backend", backend->name, "reason", reason));
}

json_t *bench_run_json(const struct bench_run *run, const struct bench_system *system)
{
    json_t *results = json_array(), *skipped = json_array(), *failed = json_array();
    char text[32];
    time_t now = time(NULL);
    struct tm tm;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    for (int i = 0; i < run->entry_count; i++) {
        const struct bench_entry *entry = &run->entry[i];
        for (int op = 0; op < BENCH_OPERATIONS; op++)
            if (entry->results[op].n)
                json_array_append_new(results,
                                      result_json(run, entry, (enum bench_operation)op));
        if (entry->failure[0])
            append_reason(failed, entry->backend, entry->failure);
    }
    for (int i = 0; i < run->skipped_count; i++)
        append_reason(skipped, run->skipped[i].backend, run->skipped[i].reason);
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "program", BENCH_PROGRAM,
                     "version", LIMEFS_VERSION, "time", text, "system",
                     bench_system_json(system), "parameters", parameters_json(run), "results",
                     results, "skipped", skipped, "failed", failed);
}
