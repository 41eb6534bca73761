/*
 * way_posix.c - the limit: each rank moves one contiguous part of the file, in no particular
 * order of the lattice, with POSIX calls of 8 MiB
 */
#include "bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int move(struct bench *b, int writing)
{
    int fd = open(b->path, writing ? O_WRONLY | O_CREAT : O_RDONLY, 0666), bad = fd < 0;
    long before = 0;
    MPI_Exscan(&b->local_bytes, &before, 1, MPI_LONG, MPI_SUM, b->cart);
    if (b->rank == 0)
        before = 0;
    for (long done = 0; done < b->local_bytes && !bad;) {
        long n = b->local_bytes - done < 8 << 20 ? b->local_bytes - done : 8 << 20;
        ssize_t moved = writing ? pwrite(fd, b->data + done, (size_t)n, 144 + before + done)
                                : pread(fd, b->data + done, (size_t)n, 144 + before + done);
        bad = moved <= 0;
        done += moved;
    }
    if (writing)
        bad |= fsync(fd) != 0;
    close(fd);
    if (bad)
        perror("lemon_compare: posix");
    MPI_Barrier(b->cart);
    return bad ? -1 : 0;
}

static int write_posix(struct bench *b)
{
    return move(b, 1);
}

static int read_posix(struct bench *b)
{
    return move(b, 0);
}

const struct bench_way bench_posix = {"contiguous POSIX", write_posix, read_posix};
