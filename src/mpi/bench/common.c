/* common.c - the lattice, the page cache and the median, for all programs of this folder */
#include "bench.h"
#include "lemon.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bench_set_up(struct bench *b, int extent, int interleaved, const char *path)
{
    int grid[4] = {0}, periods[4] = {0};
    MPI_Comm_size(MPI_COMM_WORLD, &b->ranks);
    MPI_Dims_create(b->ranks, 4, grid);
    if (interleaved)
        for (int i = 0; i < 2; i++) {
            int slow = grid[i];
            grid[i] = grid[3 - i];
            grid[3 - i] = slow;
        }
    MPI_Cart_create(MPI_COMM_WORLD, 4, grid, periods, 0, &b->cart);
    MPI_Comm_rank(b->cart, &b->rank);
    for (int i = 0; i < 4; i++)
        b->lattice[i] = i == 0 ? 2 * extent : extent;
    lemonLocalLattice(b->cart, b->lattice, b->start, b->sites);
    b->site_bytes = 576;
    b->path = path;
    b->order = interleaved ? "interleaved" : "in turn";
    b->bytes = b->local_bytes = b->site_bytes;
    for (int i = 0; i < 4; i++) {
        b->bytes *= b->lattice[i];
        b->local_bytes *= b->sites[i];
    }
    b->data = malloc((size_t)b->local_bytes);
    for (long i = 0; i < b->local_bytes; i++)
        b->data[i] = (char)((unsigned long)(i + b->rank) * 2654435761u >> 13);
}

int bench_set_up_as(struct bench *b, const char *program, int argc, char **argv, int most)
{
    int interleaved = argc == 5 && strcmp(argv[4], "interleaved") == 0;
    int extent = argc == 4 + interleaved ? atoi(argv[1]) : 0;
    int rounds = argc == 4 + interleaved ? atoi(argv[2]) : 0;
    if (extent < 1 || rounds < 1 || rounds > most) {
        fprintf(stderr, "usage: %s L ROUNDS FILE [interleaved]\n", program);
        return 0;
    }
    bench_set_up(b, extent, interleaved, argv[3]);
    return rounds;
}

void bench_settle(const struct bench *b)
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

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
