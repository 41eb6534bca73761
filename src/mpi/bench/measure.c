/* measure.c - repetitions of writing and reading, by one back end after another */
#include "measure.h"
#include "cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is measured ---- */

/* The reason of rank 0, which is the one that mounts. */
static bool refuses(const struct bench_backend *backend, const struct bench_task *task,
                    char reason[BENCH_REASON_BYTES])
{
    int refused = bench_backend_refuses(backend, task, reason, BENCH_REASON_BYTES) != NULL;
    refused = bench_world_agree(refused);
    if (refused)
        MPI_Bcast(reason, BENCH_REASON_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    return refused;
}

static bool choose(struct bench_run *run)
{
    const struct bench_options *o = run->options;
    for (int i = 0; i < o->backend_count; i++) {
        struct bench_entry *entry = &run->entry[run->entries];
        char reason[BENCH_REASON_BYTES];
        if (refuses(o->backends[i], &o->task, reason)) {
            run->skipped[run->skips].backend = o->backends[i];
            strcpy(run->skipped[run->skips++].reason, reason);
            continue;
        }
        entry->backend = o->backends[i];
        entry->results[BENCH_READ].verified = true;
        int n = snprintf(entry->path, sizeof entry->path, "%s%s%s", o->path,
                         o->backend_count > 1 ? "." : "",
                         o->backend_count > 1 ? entry->backend->name : "");
        if (n >= (int)sizeof entry->path - 16)
            return false;
        run->entries++;
    }
    return true;
}

static void say_refusals(const struct bench_run *run)
{
    for (int i = 0; i < run->skips && run->world->rank == 0; i++)
        bench_say("%s: %s", run->skipped[i].backend->name, run->skipped[i].reason);
}

/* Refuses to overwrite a file that lime-bench has not made. An empty file counts, too, as the
 * measurement would remove it. Only rank 0 checks. */
static bool is_free(const struct bench_run *run)
{
    for (int i = 0; i < run->entries * run->options->outputs; i++) {
        char path[BENCH_PATH_BYTES];
        bench_output_path(run, &run->entry[i / run->options->outputs],
                          (int)(i % run->options->outputs), path);
        struct stat st;
        if (lstat(path, &st) == 0 || errno != ENOENT) {
            bench_say("%s: write: it exists and would be overwritten; remove it, or name "
                      "another file",
                      path);
            return false;
        }
    }
    return true;
}

static bool make_results(struct bench_run *run)
{
    for (int i = 0; i < run->entries; i++)
        for (int op = 0; op < BENCH_OPERATIONS; op++) {
            struct bench_result *result = &run->entry[i].results[op];
            result->seconds =
                calloc((size_t)run->options->repetitions, sizeof *result->seconds);
            if (!result->seconds)
                return false;
        }
    return true;
}

static bool make_data(struct bench_run *run)
{
    const struct bench_pattern *p = &run->options->task.pattern;
    int writer, reader;
    MPI_Comm_rank(run->writers, &writer);
    MPI_Comm_rank(run->readers, &reader);
    int64_t bytes = bench_pattern_rank_bytes(p, writer);
    int64_t others = bench_pattern_rank_bytes(p, reader);
    bytes = bytes > others ? bytes : others;
    if (posix_memalign((void **)&run->data, 4096, bytes ? (size_t)bytes : 1) != 0)
        run->data = NULL;
    if (run->data)
        memset(run->data, 0, (size_t)bytes); /* the pages are there before the clock runs */
    return run->data != NULL;
}

/* Readers are moved by as many ranks as a host has, so that each reads what another host has
 * written; on one host, by one. */
static void make_comms(struct bench_run *run)
{
    int ranks = run->world->ranks, shift = 0;
    if (run->options->reorder) {
        shift = bench_world_agree(run->world->host_ranks);
        shift = shift == ranks ? 1 : shift;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &run->writers);
    MPI_Comm_split(MPI_COMM_WORLD, 0, (run->world->rank + shift) % ranks, &run->readers);
}

int bench_run_set(struct bench_run *run, const struct bench_options *options,
                  const struct bench_world *world)
{
    memset(run, 0, sizeof *run);
    run->options = options;
    run->world = world;
    run->writers = run->readers = MPI_COMM_NULL;
    run->bytes = bench_pattern_bytes(&options->task.pattern) * options->outputs;
    if (!choose(run)) {
        if (world->rank == 0)
            bench_say("%.200s...: the name is too long", options->path);
        return BENCH_USAGE;
    }
    if (run->entries == 0 || options->backend_count == 1)
        say_refusals(run);
    if (run->entries == 0)
        return BENCH_USAGE;
    if (options->writes && !bench_world_agree(world->rank != 0 || is_free(run)))
        return BENCH_USAGE;
    run->cache = options->cold ? bench_cache_method(world, options->cold_file) : "none";
    make_comms(run);
    bool good = make_data(run) && make_results(run);
    if (!bench_world_report(world, options->path, "prepare", good ? "" : "out of memory"))
        return BENCH_FAILED;
    if (options->compute > 0)
        run->unit = bench_compute_unit(MPI_COMM_WORLD);
    return BENCH_GOOD;
}

void bench_run_free(struct bench_run *run)
{
    for (int i = 0; i < run->entries; i++)
        for (int op = 0; op < BENCH_OPERATIONS; op++) {
            free(run->entry[i].results[op].seconds);
            json_decref(run->entry[i].results[op].hints);
        }
    if (run->writers != MPI_COMM_NULL)
        MPI_Comm_free(&run->writers);
    if (run->readers != MPI_COMM_NULL)
        MPI_Comm_free(&run->readers);
    free(run->data);
}

/* ---- measuring ---- */

static void weigh(const struct bench_run *run, struct bench_entry *entry)
{
    entry->file_bytes = 0;
    for (int i = 0; run->world->rank == 0 && i < run->options->outputs; i++) {
        char path[BENCH_PATH_BYTES];
        struct stat st;
        bench_output_path(run, entry, i, path);
        entry->file_bytes += stat(path, &st) == 0 ? st.st_size : 0;
    }
}

/* One operation, unless it was not asked for. False: the back end is not measured any more. */
static bool measure_one(struct bench_run *run, struct bench_entry *entry,
                        enum bench_operation operation, int repetition)
{
    const struct bench_options *o = run->options;
    struct bench_result *result = &entry->results[operation];
    bool wrong = false;
    if (!(operation == BENCH_WRITE ? o->writes : o->reads))
        return true;
    bench_progress("repetition %d of %d: %s: %s", repetition + 1, (int)o->repetitions,
                   entry->backend->name, operation == BENCH_WRITE ? "write" : "read");
    if (!bench_operate(run, entry, operation, repetition, &result->seconds[result->n],
                       &wrong)) {
        snprintf(entry->failure, sizeof entry->failure, "%s failed in repetition %d",
                 operation == BENCH_WRITE ? "write" : "read", repetition + 1);
        return false;
    }
    result->n++;
    weigh(run, entry);
    if (wrong)
        result->verified = false;
    return true;
}

/* So that the disk need not hold the files of all back ends at once. */
static void remove_outputs(const struct bench_run *run, const struct bench_entry *entry)
{
    const struct bench_options *o = run->options;
    for (int i = 0; run->world->rank == 0 && o->writes && !o->keep && i < o->outputs; i++) {
        char path[BENCH_PATH_BYTES];
        bench_output_path(run, entry, i, path);
        unlink(path);
    }
}

int bench_run_measure(struct bench_run *run)
{
    int status = BENCH_GOOD;
    for (int repetition = 0; repetition < run->options->repetitions; repetition++)
        for (int turn = 0; turn < run->entries; turn++) {
            struct bench_entry *entry = &run->entry[(repetition + turn) % run->entries];
            for (int op = 0; op < BENCH_OPERATIONS && !entry->failure[0]; op++)
                measure_one(run, entry, (enum bench_operation)op, repetition);
            remove_outputs(run, entry);
            if (entry->failure[0] || !entry->results[BENCH_READ].verified)
                status = BENCH_FAILED;
        }
    bench_progress_clear();
    return status;
}
