/*
 * overlap.c - lemon_overlap: what non-blocking calls save
 *
 * usage: lemon_overlap L ROUNDS FILE
 *
 * Each rank computes for as long as the transfer alone takes. Then both are done one after the
 * other, and at once: started, computed, finished. Without any overlap the two take the same
 * time; if all of it overlaps, the second takes half.
 */
#include "bench.h"
#include "lemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ROUNDS_MAX = 99,
};

struct run {
    struct bench b;
    MPI_File fp;
    LemonReader *reader; /* one of the two */
    LemonWriter *writer;
};

static volatile double sink;

/* Arithmetic without memory: what is measured is the transfer's own need for processors. */
static void compute(double units)
{
    double x = sink;
    for (long i = 0; i < (long)(units * 1e6); i++)
        x = x * 0.999999 + 1e-6;
    sink = x;
}

static void begin(struct run *run, int writing)
{
    struct bench *b = &run->b;
    if (writing && b->rank == 0)
        unlink(b->path);
    bench_settle(b);
    MPI_File_open(b->cart, b->path,
                  writing ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY, MPI_INFO_NULL,
                  &run->fp);
    int code;
    if (writing) {
        LemonRecordHeader *header = lemonCreateHeader(1, 1, "ildg-binary-data", b->bytes);
        run->writer = lemonCreateWriter(&run->fp, b->cart);
        code = lemonWriteRecordHeader(header, run->writer);
        lemonDestroyHeader(header);
    } else {
        run->reader = lemonCreateReader(&run->fp, b->cart);
        code = lemonReaderNextRecord(run->reader);
    }
    if (code != LEMON_SUCCESS)
        MPI_Abort(b->cart, 1);
    MPI_Barrier(b->cart);
}

static void end(struct run *run, int writing)
{
    int code = LEMON_SUCCESS;
    if (writing)
        code = lemonDestroyWriter(run->writer);
    else
        lemonDestroyReader(run->reader);
    MPI_File_close(&run->fp);
    if (code != LEMON_SUCCESS)
        MPI_Abort(run->b.cart, 1);
}

static int start(struct run *run, int writing)
{
    struct bench *b = &run->b;
    return writing ? lemonWriteLatticeParallelNonBlocking(run->writer, b->data, b->site_bytes,
                                                          b->lattice)
                   : lemonReadLatticeParallelNonBlocking(run->reader, b->data, b->site_bytes,
                                                         b->lattice);
}

/* Seconds of the transfer with `units` of computing, in turn or at once. */
static double timed(struct run *run, int writing, double units, int at_once)
{
    begin(run, writing);
    double t = MPI_Wtime();
    int code = start(run, writing);
    if (at_once)
        compute(units);
    code |= writing ? lemonFinishWriting(run->writer) : lemonFinishReading(run->reader);
    if (!at_once)
        compute(units);
    MPI_Barrier(run->b.cart);
    t = MPI_Wtime() - t;
    if (code != LEMON_SUCCESS)
        MPI_Abort(run->b.cart, 1);
    end(run, writing);
    return t;
}

static double seconds_of(struct run *run, double units)
{
    MPI_Barrier(run->b.cart);
    double t = MPI_Wtime();
    compute(units);
    MPI_Barrier(run->b.cart);
    return MPI_Wtime() - t;
}

static void measure(struct run *run, int writing, int rounds)
{
    static double alone[ROUNDS_MAX], in_turn[ROUNDS_MAX], at_once[ROUNDS_MAX];
    double seconds_a_unit = seconds_of(run, 100) / 100;
    for (int i = 0; i < rounds; i++)
        alone[i] = timed(run, writing, 0, 0);
    double io = bench_median(alone, rounds), units = io / seconds_a_unit;
    MPI_Bcast(&units, 1, MPI_DOUBLE, 0, run->b.cart);
    for (int i = 0; i < rounds; i++) {
        in_turn[i] = timed(run, writing, units, 0);
        at_once[i] = timed(run, writing, units, 1);
    }
    double sum = bench_median(in_turn, rounds), both = bench_median(at_once, rounds);
    if (run->b.rank == 0)
        printf("L=%-3d %d ranks %s: transfer alone %.0f ms, then computing %.0f ms, at once "
               "%.0f ms: %.2f of the sum\n",
               run->b.lattice[1], run->b.ranks, writing ? "write" : "read ", io * 1e3,
               sum * 1e3, both * 1e3, both / sum);
}

int main(int argc, char *argv[])
{
    struct run run = {0};
    MPI_Init(&argc, &argv);
    int extent = argc == 4 ? atoi(argv[1]) : 0, rounds = argc == 4 ? atoi(argv[2]) : 0;
    if (extent < 1 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: lemon_overlap L ROUNDS FILE\n");
        MPI_Finalize();
        return 2;
    }
    bench_set_up(&run.b, extent, 0, argv[3]);
    measure(&run, 1, rounds);
    measure(&run, 0, rounds);
    if (run.b.rank == 0)
        unlink(run.b.path);
    free(run.b.data);
    MPI_Comm_free(&run.b.cart);
    MPI_Finalize();
    return 0;
}
