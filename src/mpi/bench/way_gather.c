/*
 * way_gather.c - everything through one rank with POSIX calls, as C-LIME programs do it
 *
 * Slice by slice of the slowest dimension: the ranks send their parts, rank 0 puts them in
 * order and writes; the other way round for reading.
 */
#include "bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows of the fastest dimension between a slice and the part of it that a rank holds. */
static void copy_part(const struct bench *b, const int *start, const int *sites, char *slice,
                      char *part, int to_slice)
{
    size_t row = (size_t)sites[3] * (size_t)b->site_bytes;
    for (int y = 0; y < sites[1]; y++)
        for (int z = 0; z < sites[2]; z++, part += row) {
            size_t site =
                ((size_t)(start[1] + y) * (size_t)b->lattice[2] + (size_t)(start[2] + z)) *
                    (size_t)b->lattice[3] +
                (size_t)start[3];
            char *at = slice + site * (size_t)b->site_bytes;
            memcpy(to_slice ? at : part, to_slice ? part : at, row);
        }
}

struct gather {
    int (*boxes)[8]; /* start and sites of all ranks */
    char *slice, *part;
    size_t slice_bytes;
    int fd;
};

static size_t part_bytes(const struct bench *b, const int *box)
{
    return (size_t)box[5] * (size_t)box[6] * (size_t)box[7] * (size_t)b->site_bytes;
}

/* Rank 0's side of one slice. */
static int slice_at_root(struct bench *b, struct gather *g, int t, int writing)
{
    off_t at = 144 + (off_t)t * (off_t)g->slice_bytes;
    if (!writing && pread(g->fd, g->slice, g->slice_bytes, at) != (ssize_t)g->slice_bytes)
        return -1;
    for (int rank = 0; rank < b->ranks; rank++) {
        int *box = g->boxes[rank];
        if (t < box[0] || t >= box[0] + box[4])
            continue;
        char *own = b->data + (size_t)(t - box[0]) * part_bytes(b, box);
        if (rank != 0 && writing)
            MPI_Recv(g->part, (int)part_bytes(b, box), MPI_BYTE, rank, t, b->cart,
                     MPI_STATUS_IGNORE);
        copy_part(b, box, box + 4, g->slice, rank ? g->part : own, writing);
        if (rank != 0 && !writing)
            MPI_Send(g->part, (int)part_bytes(b, box), MPI_BYTE, rank, t, b->cart);
    }
    return writing && pwrite(g->fd, g->slice, g->slice_bytes, at) != (ssize_t)g->slice_bytes
               ? -1
               : 0;
}

static void slice_elsewhere(struct bench *b, int t, int writing)
{
    size_t n =
        (size_t)b->sites[1] * (size_t)b->sites[2] * (size_t)b->sites[3] * (size_t)b->site_bytes;
    if (t < b->start[0] || t >= b->start[0] + b->sites[0])
        return;
    char *own = b->data + (size_t)(t - b->start[0]) * n;
    if (writing)
        MPI_Send(own, (int)n, MPI_BYTE, 0, t, b->cart);
    else
        MPI_Recv(own, (int)n, MPI_BYTE, 0, t, b->cart, MPI_STATUS_IGNORE);
}

static int move(struct bench *b, int writing)
{
    struct gather g = {.fd = -1};
    int box[8], bad = 0;
    memcpy(box, b->start, sizeof b->start);
    memcpy(box + 4, b->sites, sizeof b->sites);
    g.boxes = malloc((size_t)b->ranks * sizeof *g.boxes);
    MPI_Gather(box, 8, MPI_INT, g.boxes, 8, MPI_INT, 0, b->cart);
    g.slice_bytes = (size_t)(b->bytes / b->lattice[0]);
    if (b->rank == 0) {
        g.slice = malloc(g.slice_bytes);
        g.part = malloc(g.slice_bytes);
        g.fd = open(b->path, writing ? O_WRONLY | O_CREAT : O_RDONLY, 0666);
    }
    for (int t = 0; t < b->lattice[0]; t++)
        if (b->rank == 0)
            bad |= slice_at_root(b, &g, t, writing);
        else
            slice_elsewhere(b, t, writing);
    if (b->rank == 0) {
        if (writing)
            bad |= fsync(g.fd);
        close(g.fd);
    }
    free(g.boxes);
    free(g.slice);
    free(g.part);
    if (bad)
        perror("lemon_compare: gather");
    MPI_Barrier(b->cart);
    return bad;
}

static int write_gather(struct bench *b)
{
    return move(b, 1);
}

static int read_gather(struct bench *b)
{
    return move(b, 0);
}

const struct bench_way bench_gather = {"one rank, POSIX", write_gather, read_gather};
