/*
 * main.c - lemon_compare: Lemon beside what programs do without it
 *
 * usage: lemon_compare L ROUNDS FILE [interleaved]
 *
 * An L^3 x 2L lattice of 576 bytes a site over the ranks that it is started with, which split
 * the slowest dimensions or, `interleaved`, the fastest. The ways take turns, each round from
 * another one on, so that the machine's moods meet all of them alike; the median of ROUNDS
 * counts. A write begins with no file, a cold read (as root) with an empty page cache. Of both
 * the better of two that follow each other counts: the host of a virtual machine takes memory
 * back that has been free for a while, and who fills it next pays for that, whichever way it
 * is.
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

static double better_of_two(struct bench *b, int (*move)(struct bench *), int anew)
{
    double best = 0;
    for (int i = 0; i < 2; i++) {
        if (anew && b->rank == 0)
            unlink(b->path);
        bench_settle(b);
        double seconds = timed(b, move);
        if (i == 0 || seconds < best)
            best = seconds;
    }
    return best;
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
    int rounds = bench_set_up_as(&b, "lemon_compare", argc, argv, ROUNDS_MAX);
    if (rounds == 0) {
        MPI_Finalize();
        return 2;
    }
    for (int round = 0; round < rounds; round++)
        for (int turn = 0; turn < WAYS; turn++) {
            int i = (round + turn) % WAYS;
            writes[i][round] = better_of_two(&b, ways[i]->write, 1);
            reads[i][round] = better_of_two(&b, ways[i]->read, 0);
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
