/* table_times.c - results for people: how long each way took, beside two of them */
#include "report.h"
#include "size.h"
#include "statistics.h"

#include <string.h>

static const char *const beside[] = {"posix", "lime"};

static void times_of(const struct bench_result *result, struct bench_statistics *s)
{
    double seconds[BENCH_REPETITIONS_MAX];
    for (int i = 0; i < result->n; i++)
        seconds[i] = result->seconds[i].total;
    bench_statistics_of(seconds, result->n, s);
}

double bench_time_ratio(const struct bench_run *run, const struct bench_entry *entry,
                        enum bench_operation operation, const char *name)
{
    struct bench_statistics own, other;
    for (int i = 0; i < run->entries; i++) {
        const struct bench_result *result = &run->entry[i].results[operation];
        if (strcmp(run->entry[i].backend->name, name) != 0 || result->n == 0)
            continue;
        times_of(result, &other);
        times_of(&entry->results[operation], &own);
        return own.median / other.median;
    }
    return 0;
}

void bench_text_times_heading(FILE *to)
{
    fprintf(to, "%-14s      file             seconds             MB/s   times that of\n", "");
    fprintf(to, "%-14s            median     min     max   (10^6)   posix    lime\n", "");
}

void bench_text_times(const struct bench_run *run, const struct bench_entry *entry,
                      enum bench_operation operation, bool named, FILE *to)
{
    char size[BENCH_SIZE_TEXT];
    struct bench_statistics s;
    times_of(&entry->results[operation], &s);
    bench_size_text((double)entry->file_bytes, size);
    fprintf(to, "%-8s %-5s %9s %7.3f %7.3f %7.3f %8.0f", named ? entry->backend->name : "",
            operation == BENCH_WRITE ? "write" : "read", named ? size : "", s.median, s.min,
            s.max, (double)run->bytes / s.median / 1e6);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        double ratio = bench_time_ratio(run, entry, operation, beside[i]);
        if (ratio > 0)
            fprintf(to, " %7.2f", ratio);
        else
            fprintf(to, " %7s", "-");
    }
}
