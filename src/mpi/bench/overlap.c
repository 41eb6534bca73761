/*
 * overlap.c - lime-bench overlap: what non-blocking calls save
 *
 * Each rank computes for as long as the transfer alone takes. Then both are done one after the
 * other, and at once: started, computed, finished. Without any overlap the two take the same
 * time; if all of it overlaps, the second takes half.
 */
#include "compute.h"
#include "statistics.h"
#include "study.h"

#include <unistd.h>

struct times {
    double alone[BENCH_REPETITIONS_MAX], in_turn[BENCH_REPETITIONS_MAX],
        at_once[BENCH_REPETITIONS_MAX];
};

static int start(struct bench_study *s)
{
    const struct bench_pattern *p = s->pattern;
    if (s->writer)
        return lemonWriteLatticeParallelNonBlocking(s->writer, s->data, p->site_bytes,
                                                    p->lattice);
    return lemonReadLatticeParallelNonBlocking(s->reader, s->data, p->site_bytes, p->lattice);
}

static int finish(struct bench_study *s)
{
    return s->writer ? lemonFinishWriting(s->writer) : lemonFinishReading(s->reader);
}

static bool begin(struct bench_study *s, bool writing)
{
    if (writing && s->world->rank == 0)
        unlink(s->options->path);
    if (!writing)
        bench_study_spoil(s);
    bench_study_drop_cache(s);
    return bench_study_open(s, writing) &&
           bench_study_check(s, "header", bench_study_header(s));
}

/* The transfer with `units` of computing, in turn or at once. */
static bool timed(struct bench_study *s, bool writing, double units, bool at_once,
                  double *seconds)
{
    if (!begin(s, writing))
        return false;
    MPI_Barrier(s->cart);
    double from = MPI_Wtime();
    int code = start(s), finished;
    if (at_once)
        bench_compute(units);
    finished = finish(s);
    if (!at_once)
        bench_compute(units);
    MPI_Barrier(s->cart);
    *seconds = MPI_Wtime() - from;
    bool good = bench_study_check(s, writing ? "write" : "read", code ? code : finished);
    good = bench_study_close(s) && good;
    return good && (writing || bench_study_verify(s));
}

static bool measure(struct bench_study *s, bool writing, struct times *t)
{
    int n = (int)s->options->repetitions;
    bool good = true;
    double unit = bench_compute_unit(s->cart);
    for (int i = 0; i < n && good; i++)
        good = timed(s, writing, 0, false, &t->alone[i]);
    if (!good)
        return false;
    double units = bench_median(t->alone, n) / unit;
    MPI_Bcast(&units, 1, MPI_DOUBLE, 0, s->cart);
    for (int i = 0; i < n && good; i++)
        good = timed(s, writing, units, false, &t->in_turn[i]) &&
               timed(s, writing, units, true, &t->at_once[i]);
    return good;
}

static void show(const struct bench_study *s, bool writing, const struct times *t, json_t *json,
                 FILE *to)
{
    int n = (int)s->options->repetitions;
    double alone = bench_median(t->alone, n), sum = bench_median(t->in_turn, n);
    double both = bench_median(t->at_once, n);
    if (to)
        fprintf(to,
                "%-5s transfer alone %.1f ms, then computing %.1f ms, at once %.1f ms: %.2f of "
                "the sum\n",
                writing ? "write" : "read", alone * 1e3, sum * 1e3, both * 1e3, both / sum);
    if (json)
        json_array_append_new(
            json, json_pack("{s:s, s:I, s:{s:o, s:o, s:o}, s:f}", "operation",
                            writing ? "write" : "read", "bytes", (json_int_t)s->bytes,
                            "seconds", "transfer", bench_json_numbers(t->alone, n), "in_turn",
                            bench_json_numbers(t->in_turn, n), "at_once",
                            bench_json_numbers(t->at_once, n), "ratio", both / sum));
}

int bench_overlap(struct bench_study *s, json_t *json, FILE *to)
{
    static struct times times;
    json_t *list = json ? json_array() : NULL;
    int status = BENCH_GOOD;
    for (int writing = 1; writing >= 0 && status == BENCH_GOOD; writing--) {
        if (measure(s, writing, &times))
            show(s, writing, &times, list, to);
        else
            status = BENCH_FAILED;
    }
    if (json)
        json_object_set_new(json, "overlap", list);
    return status;
}
