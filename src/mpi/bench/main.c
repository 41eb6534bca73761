/*
 * main.c - lemon_compare: Lemon beside what programs do without it
 *
 * usage: lemon_compare L ROUNDS FILE
 *
 * An L^3 x 2L lattice of 576 bytes a site over the ranks that it is started with. The ways take
 * turns, so that the machine's moods meet all of them; the median of ROUNDS counts. As root the
 * page cache is dropped before each read and each way begins with no file.
 */
#include "bench.h"
#include "lemon.h"

#include <fcntl.h>
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

static void set_up(struct bench *b, int extent, const char *path)
{
    int grid[4] = {0}, periods[4] = {0};
    MPI_Comm_size(MPI_COMM_WORLD, &b->ranks);
    MPI_Dims_create(b->ranks, 4, grid);
    MPI_Cart_create(MPI_COMM_WORLD, 4, grid, periods, 0, &b->cart);
    MPI_Comm_rank(b->cart, &b->rank);
    for (int i = 0; i < 4; i++)
        b->lattice[i] = i == 0 ? 2 * extent : extent;
    lemonLocalLattice(b->cart, b->lattice, b->start, b->sites);
    b->site_bytes = 576;
    b->path = path;
    b->bytes = b->local_bytes = b->site_bytes;
    for (int i = 0; i < 4; i++) {
        b->bytes *= b->lattice[i];
        b->local_bytes *= b->sites[i];
    }
    b->data = malloc((size_t)b->local_bytes);
    for (long i = 0; i < b->local_bytes; i++)
        b->data[i] = (char)((unsigned long)(i + b->rank) * 2654435761u >> 13);
}

/* Nothing of the file is in memory. */
static void settle(const struct bench *b)
{
    MPI_Barrier(b->cart);
    if (b->rank == 0) {
        sync();
        int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
        if (fd >= 0) {
            if (write(fd, "3\n", 2) != 2)
                perror("lemon_compare: drop_caches");
            close(fd);
        }
    }
    MPI_Barrier(b->cart);
}

static double timed(struct bench *b, int (*move)(struct bench *))
{
    MPI_Barrier(b->cart);
    double begin = MPI_Wtime();
    if (move(b) != 0)
        MPI_Abort(b->cart, 1);
    MPI_Barrier(b->cart);
    return MPI_Wtime() - begin;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void show(const struct bench *b, const char *what, double times[][ROUNDS_MAX],
                 int rounds)
{
    double lemon = median(times[0], rounds);
    printf("L=%-3d %d ranks %-6s", b->lattice[1], b->ranks, what);
    for (int i = 0; i < WAYS; i++) {
        double t = median(times[i], rounds);
        printf("  %s %6.0f MB/s", ways[i]->name, (double)b->bytes / t / 1e6);
        if (i)
            printf(" (%.2fx)", t / lemon);
    }
    printf("\n");
}

int main(int argc, char *argv[])
{
    static double writes[WAYS][ROUNDS_MAX], reads[WAYS][ROUNDS_MAX], again[WAYS][ROUNDS_MAX];
    struct bench b;
    MPI_Init(&argc, &argv);
    int extent = argc == 4 ? atoi(argv[1]) : 0, rounds = argc == 4 ? atoi(argv[2]) : 0;
    if (extent < 1 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: lemon_compare L ROUNDS FILE\n");
        MPI_Finalize();
        return 2;
    }
    set_up(&b, extent, argv[3]);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < WAYS; i++) {
            if (b.rank == 0)
                unlink(b.path);
            settle(&b);
            writes[i][round] = timed(&b, ways[i]->write);
            settle(&b);
            reads[i][round] = timed(&b, ways[i]->read);
            again[i][round] = timed(&b, ways[i]->read);
        }
    if (b.rank == 0) {
        show(&b, "write", writes, rounds);
        show(&b, "read", reads, rounds);
        show(&b, "again", again, rounds);
        unlink(b.path);
    }
    free(b.data);
    MPI_Comm_free(&b.cart);
    MPI_Finalize();
    return 0;
}
