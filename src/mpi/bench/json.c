/* json.c - results for programs */
#include "report.h"
#include "statistics.h"

#include <errno.h>
#include <string.h>
#include <time.h>

FILE *bench_json_open(const char *name)
{
    if (strcmp(name, "-") == 0)
        return stdout;
    FILE *file = fopen(name, "we");
    if (!file)
        bench_say("%s: open: %s", name, strerror(errno));
    return file;
}

bool bench_json_write(FILE *to, const char *name, json_t *object)
{
    bool good = json_dumpf(object, to,
                           JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9)) == 0 &&
                fputc('\n', to) != EOF;
    good = (to == stdout ? fflush(to) : fclose(to)) == 0 && good;
    json_decref(object);
    if (!good)
        bench_say("%s: write: %s", name, strerror(errno));
    return good;
}

json_t *bench_json_head(const struct bench_system *system)
{
    char text[32];
    time_t now = time(NULL);
    struct tm tm;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    return json_pack("{s:s, s:s, s:s, s:o}", "program", BENCH_PROGRAM, "version",
                     LIMEFS_VERSION, "time", text, "system", bench_system_json(system));
}

json_t *bench_json_numbers(const double *values, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_real(values[i]));
    return list;
}

json_t *bench_json_extents(const int extents[BENCH_DIMS])
{
    return json_pack("[i, i, i, i]", extents[0], extents[1], extents[2], extents[3]);
}

json_t *bench_json_hints(const struct bench_task *task)
{
    json_t *hints = json_object();
    for (int i = 0; i < task->hints; i++)
        json_object_set_new(hints, task->hint[i].key, json_string(task->hint[i].value));
    return hints;
}

/* ---- parameters ---- */

static json_t *parameters(const struct bench_run *run)
{
    const struct bench_options *o = run->options;
    const struct bench_task *task = &o->task;
    json_t *to = json_object();
    json_object_set_new(to, "ranks", json_integer(run->world->ranks));
    json_object_set_new(to, "hosts", json_integer(task->hosts));
    run->content->describe(run, to);
    json_object_set_new(to, "alignment", json_integer(task->alignment));
    json_object_set_new(to, "fsync", json_boolean(task->fsync));
    json_object_set_new(to, "reorder", json_boolean(o->reorder));
    json_object_set_new(to, "cold", json_boolean(o->cold));
    json_object_set_new(to, "cache", json_string(run->cache));
    json_object_set_new(to, "hints", bench_json_hints(task));
    json_object_set_new(to, "repetitions", json_integer(o->repetitions));
    json_object_set_new(to, "seed", json_integer(o->seed));
    return to;
}

/* ---- results ---- */

static json_t *seconds_of(const struct bench_seconds *s, bool computes)
{
    json_t *all = json_pack("{s:f, s:f, s:f, s:f}", "open", s->open, "transfer", s->transfer,
                            "close", s->close, "total", s->total);
    if (computes)
        json_object_set_new(all, "compute", json_real(s->compute));
    return all;
}

static json_t *speeds_of(const struct bench_run *run, const struct bench_result *result)
{
    double speeds[BENCH_REPETITIONS_MAX];
    struct bench_statistics s;
    for (int i = 0; i < result->n; i++)
        speeds[i] = (double)run->bytes / result->seconds[i].total;
    bench_statistics_of(speeds, result->n, &s);
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", s.mean, "min", s.min, "max", s.max,
                     "deviation", s.deviation, "median", s.median);
}

static json_t *result_of(const struct bench_run *run, const struct bench_entry *entry,
                         enum bench_operation operation)
{
    const struct bench_result *result = &entry->results[operation];
    bool writes = operation == BENCH_WRITE;
    json_t *ratios = NULL;
    bool verified = entry->results[BENCH_READ].n > 0 && entry->results[BENCH_READ].verified;
    json_t *seconds = json_array();
    for (int i = 0; i < result->n; i++)
        json_array_append_new(
            seconds, seconds_of(&result->seconds[i], writes && run->options->compute > 0));
    json_t *all =
        json_pack("{s:s, s:s, s:I, s:I, s:O, s:o, s:o, s:b}", "backend", entry->backend->name,
                  "operation", writes ? "write" : "read", "bytes", (json_int_t)run->bytes,
                  "file_bytes", (json_int_t)entry->file_bytes, "hints",
                  result->hints ? result->hints : json_object(), "seconds", seconds,
                  "bytes_per_second", speeds_of(run, result), "verified", (int)verified);
    for (int i = 0; run->content->shows_times && i < run->entries; i++) {
        const char *name = run->entry[i].backend->name;
        double ratio = bench_time_ratio(run, entry, operation, name);
        if (!ratios)
            json_object_set_new(all, "times", ratios = json_object());
        if (ratio > 0)
            json_object_set_new(ratios, name, json_real(ratio));
    }
    return all;
}

static json_t *failures(const struct bench_run *run)
{
    json_t *list = json_array();
    for (int i = 0; i < run->entries; i++)
        if (run->entry[i].failure[0])
            json_array_append_new(list, json_pack("{s:s, s:s}", "backend",
                                                  run->entry[i].backend->name, "reason",
                                                  run->entry[i].failure));
    return list;
}

json_t *bench_json_run(const struct bench_run *run, const struct bench_system *system)
{
    json_t *all = bench_json_head(system), *results = json_array(), *skipped = json_array();
    for (int i = 0; i < run->entries; i++)
        for (int op = 0; op < BENCH_OPERATIONS; op++)
            if (run->entry[i].results[op].n)
                json_array_append_new(results,
                                      result_of(run, &run->entry[i], (enum bench_operation)op));
    for (int i = 0; i < run->skips; i++)
        json_array_append_new(skipped,
                              json_pack("{s:s, s:s}", "backend", run->skipped[i].backend->name,
                                        "reason", run->skipped[i].reason));
    json_object_set_new(all, "parameters", parameters(run));
    json_object_set_new(all, "results", results);
    json_object_set_new(all, "skipped", skipped);
    json_object_set_new(all, "failed", failures(run));
    return all;
}
