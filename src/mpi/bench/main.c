/*
 * main.c - lemon_compare: Lemon beside what programs do without it
 *
 * usage: lemon_compare L ROUNDS FILE [interleaved]
 *
 * An L^3 x 2L lattice of 576 bytes a site over the ranks that it is started with, which split
 * the slowest dimensions or, `interleaved`, the fastest. The ways take turns, each round from
 * another one on, so that the machine's moods meet all of them alike; the median of ROUNDS
 * counts. Each way begins with no file. As root the page cache is dropped before the first of
 * the two reads: the second is the warm one.
 */
#include "bench.h"
#include "lemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAYS = 4,
    ROUNDS_MAX = 99,
};

static const struct bench_way *const ways[WAYS] = {&bench_lemon, &bench_subarray, &bench_gather,
                                                   &bench_posix};

static double timed(struct bench *b, int (*move)(struct bench *))
{
    MPI_Barrier(b->cart);
    double begin = MPI_Wtime();
    if (move(b) != 0)
        MPI_Abort(b->cart, 1);
    MPI_Barrier(b->cart);
    return MPI_Wtime() - begin;
}

static void show(const struct bench *b, const char *what, double times[][ROUNDS_MAX],
                 int rounds)
{
    double lemon = bench_median(times[0], rounds);
    printf("L=%-3d %d ranks %s %-6s", b->lattice[1], b->ranks, b->order, what);
    for (int i = 0; i < WAYS; i++) {
        double t = bench_median(times[i], rounds);
        printf("  %s %6.0f MB/s", ways[i]->name, (double)b->bytes / t / 1e6);
        if (i)
            printf(" (%.2fx)", t / lemon);
    }
    printf("\n");
}

int main(int argc, char *argv[])
{
    static double writes[WAYS][ROUNDS_MAX], reads[WAYS][ROUNDS_MAX], warm[WAYS][ROUNDS_MAX];
    struct bench b;
    MPI_Init(&argc, &argv);
    int interleaved = argc == 5 && strcmp(argv[4], "interleaved") == 0;
    int extent = argc == 4 + interleaved ? atoi(argv[1]) : 0;
    int rounds = argc == 4 + interleaved ? atoi(argv[2]) : 0;
    if (extent < 1 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: lemon_compare L ROUNDS FILE [interleaved]\n");
        MPI_Finalize();
        return 2;
    }
    bench_set_up(&b, extent, interleaved, argv[3]);
    for (int round = 0; round < rounds; round++)
        for (int turn = 0; turn < WAYS; turn++) {
            int i = (round + turn) % WAYS;
            if (b.rank == 0)
                unlink(b.path);
            bench_settle(&b);
            writes[i][round] = timed(&b, ways[i]->write);
            bench_settle(&b);
            reads[i][round] = timed(&b, ways[i]->read);
            warm[i][round] = timed(&b, ways[i]->read);
        }
    if (b.rank == 0) {
        show(&b, "write", writes, rounds);
        show(&b, "cold", reads, rounds);
        show(&b, "warm", warm, rounds);
        unlink(b.path);
    }
    free(b.data);
    MPI_Comm_free(&b.cart);
    MPI_Finalize();
    return 0;
}
