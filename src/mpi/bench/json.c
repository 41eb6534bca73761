/* json.c - results for programs */
#define _GNU_SOURCE
#include "guard.h"
#include "report.h"
#include "statistics.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the file ---- */

enum {
    ERRNO_MAX = 4095,
};

/* A code of the library, and EISDIR, are a whole message; another errno needs the action. */
static bool complain(const char *name, const char *action, int err)
{
    if (err < -ERRNO_MAX || err == -EISDIR)
        bench_say("%s: %s", name, limefile_strerror(err));
    else
        bench_say("%s: %s: %s", name, action, limefile_strerror(err));
    return false;
}

/* The guard process removes the temporary file however this process ends (guard.h). */
bool bench_json_open(struct bench_json *json, const char *name, bool force)
{
    *json = (struct bench_json){.name = name, .to = stdout};
    if (strcmp(name, "-") == 0)
        return true;
    int err = limefile_output_open(&json->file, name, force, NULL, 0);
    if (err) {
        json->name = NULL;
        return complain(name, "open", err);
    }
    bench_guard_file(json->file.temporary);
    int fd = dup(json->file.fd);
    json->to = fd < 0 ? NULL : fdopen(fd, "w");
    if (json->to)
        return true;
    complain(name, "open", -errno);
    if (fd >= 0)
        close(fd);
    bench_json_drop(json);
    return false;
}

bool bench_json_meets(const struct bench_json *json, const char *path)
{
    if (!json->name || json->to == stdout)
        return false;
    const char *slash = strrchr(json->name, '/'), *end = strrchr(json->file.temporary, '/');
    size_t folder = (size_t)(end - json->file.temporary) + 1;
    int fd = open(path, O_PATH | O_CLOEXEC);
    bool same = fd < 0 ? strncmp(json->file.temporary, path, folder) == 0 &&
                             strcmp(slash ? slash + 1 : json->name, path + folder) == 0
                       : limefile_output_is(&json->file, fd);
    if (fd >= 0)
        close(fd);
    if (same)
        bench_say("%s: is also the file of data; choose another name", json->name);
    return same;
}

bool bench_json_write(struct bench_json *json, json_t *object)
{
    FILE *to = json->to;
    bool good = json_dumpf(object, to,
                           JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9)) == 0 &&
                fputc('\n', to) != EOF;
    good = (to == stdout ? fflush(to) : fclose(to)) == 0 && good;
    int err = good ? 0 : errno ? -errno : -EIO;
    json->to = NULL;
    json_decref(object);
    if (good && to != stdout)
        err = limefile_output_commit(&json->file);
    if (err)
        complain(json->name, "write", err);
    bench_json_drop(json);
    return !err;
}

void bench_json_drop(struct bench_json *json)
{
    if (json->name && strcmp(json->name, "-") != 0) {
        if (json->to && json->to != stdout)
            fclose(json->to);
        limefile_output_abort(&json->file);
    }
    json->name = NULL;
    json->to = NULL;
}

/* ---- what results have in common ---- */

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
