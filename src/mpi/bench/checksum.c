/*
 * checksum.c - lime-bench checksum: what the SciDAC checksum adds to writing and reading
 *
 * Without and with the checksum in turn, each repetition beginning with the other one; of each
 * the best of three that take turns. Written means: on the disk, opening and closing of the
 * file included. What reading back takes (lemonWriterSetVerify()) is for comparison.
 */
#include "statistics.h"
#include "study.h"

#include <math.h>
#include <unistd.h>

enum {
    TRIES = 3,
};

enum way {
    WITHOUT,
    WITH,
    READ_BACK, /* writing only */
    WAYS,
};

enum kind {
    WRITE,
    COLD,
    WARM,
    KINDS,
};

static const char *const way_names[WAYS] = {"without", "with", "read_back"};
static const char *const kind_names[KINDS] = {"write", "read, cold", "read, warm"};

static LemonChecksum wrote, read_back;
static double times[KINDS][WAYS][BENCH_REPETITIONS_MAX];

static bool write_lattice(struct bench_study *s, enum way way)
{
    const struct bench_pattern *p = s->pattern;
    if (!bench_study_open(s, true))
        return false;
    int code = lemonWriterSetChecksum(s->writer, way == WITH);
    if (code == LEMON_SUCCESS && way == READ_BACK)
        code = lemonWriterSetVerify(s->writer, 1, s->options->path);
    if (code == LEMON_SUCCESS)
        code = bench_study_header(s);
    if (code == LEMON_SUCCESS)
        code = lemonWriteLatticeParallel(s->writer, s->data, p->site_bytes, p->lattice);
    if (code == LEMON_SUCCESS)
        code = lemonWriterCloseRecord(s->writer);
    if (code == LEMON_SUCCESS && way == WITH)
        code = lemonWriterChecksum(s->writer, &wrote);
    bool good = bench_study_check(s, "write", code);
    return bench_study_close(s) && good;
}

static bool read_lattice(struct bench_study *s, enum way way)
{
    const struct bench_pattern *p = s->pattern;
    if (!bench_study_open(s, false))
        return false;
    int code = lemonReaderSetChecksum(s->reader, way == WITH);
    if (code == LEMON_SUCCESS)
        code = bench_study_header(s);
    if (code == LEMON_SUCCESS)
        code = lemonReadLatticeParallel(s->reader, s->data, p->site_bytes, p->lattice);
    if (code == LEMON_SUCCESS && way == WITH)
        code = lemonReaderChecksum(s->reader, &read_back);
    bool good = bench_study_check(s, "read", code);
    return bench_study_close(s) && good;
}

static bool timed(struct bench_study *s, enum kind kind, enum way way, double *seconds)
{
    if (kind == WRITE && s->world->rank == 0)
        unlink(s->options->path);
    if (kind != WRITE)
        bench_study_spoil(s);
    if (kind != WARM)
        bench_study_drop_cache(s);
    MPI_Barrier(s->cart);
    double begin = MPI_Wtime();
    bool good = kind == WRITE ? write_lattice(s, way) : read_lattice(s, way);
    MPI_Barrier(s->cart);
    *seconds = MPI_Wtime() - begin;
    return good && (kind == WRITE || bench_study_verify(s));
}

/* The best of TRIES of each way, which take turns. */
static bool repeat(struct bench_study *s, enum kind kind, int repetition)
{
    int ways = kind == WRITE ? WAYS : READ_BACK;
    for (int i = 0; i < TRIES * ways; i++) {
        int way = (i + repetition) % ways;
        double seconds, *best = &times[kind][way][repetition];
        if (!timed(s, kind, (enum way)way, &seconds))
            return false;
        *best = i < ways ? seconds : fmin(*best, seconds);
    }
    return true;
}

static void show(const struct bench_study *s, enum kind kind, FILE *to)
{
    int n = (int)s->options->repetitions;
    double without = bench_median(times[kind][WITHOUT], n);
    double with = bench_median(times[kind][WITH], n);
    fprintf(to, "%-10s without %7.0f MB/s, with the checksum %7.0f MB/s  %+.1f %%\n",
            kind_names[kind], (double)s->bytes / without / 1e6, (double)s->bytes / with / 1e6,
            100 * (with / without - 1));
    if (kind == WRITE)
        fprintf(to, "%-10s reading back adds %.2f of the time\n", "",
                bench_median(times[WRITE][READ_BACK], n) / without - 1);
}

static json_t *result_of(const struct bench_study *s, enum kind kind)
{
    int n = (int)s->options->repetitions, ways = kind == WRITE ? WAYS : READ_BACK;
    json_t *seconds = json_object();
    for (int way = 0; way < ways; way++)
        json_object_set_new(seconds, way_names[way], bench_json_numbers(times[kind][way], n));
    return json_pack(
        "{s:s, s:b, s:I, s:o, s:f}", "operation", kind == WRITE ? "write" : "read", "cold",
        kind != WARM, "bytes", (json_int_t)s->bytes, "seconds", seconds, "ratio",
        bench_median(times[kind][WITH], n) / bench_median(times[kind][WITHOUT], n));
}

int bench_checksum(struct bench_study *s, json_t *json, FILE *to)
{
    json_t *list = json ? json_array() : NULL;
    for (int repetition = 0; repetition < s->options->repetitions; repetition++)
        for (int kind = 0; kind < KINDS; kind++)
            if (!repeat(s, (enum kind)kind, repetition))
                return BENCH_FAILED;
    if (!bench_world_report(s->world, s->options->path, s->name,
                            wrote.suma != read_back.suma || wrote.sumb != read_back.sumb
                                ? "checksum: that of what was read is not that of what was "
                                  "written"
                                : ""))
        return BENCH_FAILED;
    for (int kind = 0; kind < KINDS; kind++) {
        if (to)
            show(s, (enum kind)kind, to);
        if (list)
            json_array_append_new(list, result_of(s, (enum kind)kind));
    }
    if (json)
        json_object_set_new(json, "checksum", list);
    return BENCH_GOOD;
}
