/* text.c - results for people */
#include "report.h"
#include "size.h"
#include "statistics.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void bench_text_lattice(const struct bench_pattern *p, FILE *to)
{
    const int *l = p->lattice, *g = p->grid;
    fprintf(to, "lattice %d x %d x %d x %d of %" PRId64 "-byte sites, grid %d x %d x %d x %d",
            l[0], l[1], l[2], l[3], p->site_bytes, g[0], g[1], g[2], g[3]);
}

void bench_text_hints(const struct bench_task *task, FILE *to)
{
    for (int i = 0; i < task->hints; i++) {
        char text[MPI_MAX_INFO_KEY + MPI_MAX_INFO_VAL + 2];
        snprintf(text, sizeof text, "%s=%s", task->hint[i].key, task->hint[i].value);
        limefile_text_defuse(text, "");
        fprintf(to, ", %s", text);
    }
}

static const char *cache_words(const struct bench_run *run)
{
    if (strcmp(run->cache, "drop_caches") == 0)
        return "page cache dropped before each operation";
    if (strcmp(run->cache, "posix_fadvise") == 0)
        return "file dropped from the page cache before each operation";
    return "page cache warm";
}

void bench_text_head(const struct bench_run *run, const struct bench_system *system, FILE *to)
{
    const struct bench_options *o = run->options;
    char all[BENCH_SIZE_TEXT], rank[BENCH_SIZE_TEXT];
    int ranks = run->world->ranks;
    run->content->show(run, to);
    bench_size_text((double)run->bytes, all);
    bench_size_text((double)run->bytes / ranks, rank);
    fprintf(to, "\n%d rank%s on %d host%s, %s: %s a rank\n", ranks, ranks == 1 ? "" : "s",
            run->world->hosts, run->world->hosts == 1 ? "" : "s", all, rank);
    fprintf(to, "%" PRId64 " repetition%s, ", o->repetitions, o->repetitions == 1 ? "" : "s");
    if (o->writes)
        fprintf(to, "%s, ", o->task.fsync ? "written data synced" : "written data not synced");
    fprintf(to, "%s\n", cache_words(run));
    fprintf(to, "%s (%s), %s, %ld processor%s\n\n", system->mpi, system->mpi_io,
            system->file_system, system->cpus, system->cpus == 1 ? "" : "s");
    fflush(to);
}

/* ---- results ---- */

enum column {
    COMPUTE,
    OPEN,
    TRANSFER,
    CLOSE,
};

static void show_heading(bool computes, FILE *to)
{
    fprintf(to, "%-18sMB/s (10^6 bytes)%*smedian time, ms\n", "", 19, "");
    fprintf(to, "%-16s median   mean    min    max    dev  %s    open transfer   close\n", "",
            computes ? " compute" : "");
}

/* The median of one phase, in seconds. */
static double phase(const struct bench_result *result, enum column column)
{
    double values[BENCH_REPETITIONS_MAX];
    for (int i = 0; i < result->n; i++) {
        const struct bench_seconds *s = &result->seconds[i];
        const double all[] = {s->compute, s->open, s->transfer, s->close};
        values[i] = all[column];
    }
    return bench_median(values, result->n);
}

/* Right-aligned in `width` columns, with a digit behind the point where it is small. */
static void show_number(double value, int width, FILE *to)
{
    fprintf(to, "%*.*f", width, fabs(value) < 99.95 ? 1 : 0, value);
}

static void show_speeds(const struct bench_run *run, const struct bench_entry *entry,
                        enum bench_operation operation, bool named, FILE *to)
{
    const struct bench_result *result = &entry->results[operation];
    bool computes = run->options->compute > 0 && operation == BENCH_WRITE;
    double speeds[BENCH_REPETITIONS_MAX];
    struct bench_statistics s;
    for (int i = 0; i < result->n; i++)
        speeds[i] = (double)run->bytes / result->seconds[i].total / 1e6;
    bench_statistics_of(speeds, result->n, &s);
    const double columns[] = {s.median, s.mean, s.min, s.max, s.deviation};
    fprintf(to, "%-10s %-5s", named ? entry->backend->name : "",
            operation == BENCH_WRITE ? "write" : "read");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        show_number(columns[i], 7, to);
    fputs("  ", to);
    for (int column = computes ? COMPUTE : OPEN; column <= CLOSE; column++)
        show_number(1e3 * phase(result, (enum column)column), 8, to);
}

static void show_result(const struct bench_run *run, const struct bench_entry *entry,
                        enum bench_operation operation, bool named, FILE *to)
{
    if (run->content->shows_times)
        bench_text_times(run, entry, operation, named, to);
    else
        show_speeds(run, entry, operation, named, to);
    if (operation == BENCH_READ && !entry->results[operation].verified)
        fputs("  WRONG BYTES", to);
    fputc('\n', to);
}

static const char *verdict(const struct bench_run *run)
{
    bool failed = false;
    for (int i = 0; i < run->entries; i++) {
        if (!run->entry[i].results[BENCH_READ].verified)
            return "WRONG BYTES were read: see the messages.";
        failed = failed || run->entry[i].failure[0];
    }
    return failed ? "Something failed: see the messages."
                  : "Every byte that was read is right.";
}

void bench_text_results(const struct bench_run *run, FILE *to)
{
    if (run->content->shows_times)
        bench_text_times_heading(to);
    else
        show_heading(run->options->compute > 0, to);
    for (int i = 0; i < run->entries; i++) {
        const struct bench_entry *entry = &run->entry[i];
        bool named = true;
        for (int op = 0; op < BENCH_OPERATIONS; op++)
            if (entry->results[op].n) {
                show_result(run, entry, (enum bench_operation)op, named, to);
                named = false;
            }
        if (entry->failure[0])
            fprintf(to, "%-11s %s\n", entry->backend->name, entry->failure);
    }
    if (run->skips)
        fputs("\nnot measured:\n", to);
    for (int i = 0; i < run->skips; i++)
        fprintf(to, "  %-11s %s\n", run->skipped[i].backend->name, run->skipped[i].reason);
    if (run->options->reads)
        fprintf(to, "\n%s\n", verdict(run));
}
