/* exchange.c - send particles between ranks, and sort them by id with a sample sort */
#define _GNU_SOURCE
#include "exchange.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 32, /* per rank */
};

static void check_count(int64_t count)
{
    if (count > INT_MAX)
        checkpoint_abort("more than 2^31 particles on a rank; use more ranks");
}

/* Sets offsets[r] to the index of rank r's first item. Returns the number of all items. */
static int64_t compute_offsets(const int *counts, int *offsets, int ranks)
{
    int64_t all = 0;
    for (int r = 0; r < ranks; r++) {
        offsets[r] = (int)all;
        all += counts[r];
    }
    check_count(all);
    return all;
}

void checkpoint_exchange(const struct checkpoint_world *world, struct checkpoint_particles *p,
                         const int *to)
{
    int n = world->ranks, *counts = checkpoint_allocate(NULL, 4 * (int64_t)n, sizeof *counts);
    int *recv = counts + n, *recv_at = recv + n, *send_at = recv_at + n;
    unsigned char *out = checkpoint_allocate(NULL, p->count, p->bytes);
    struct checkpoint_particles in = {.bytes = p->bytes};
    MPI_Datatype type;
    check_count(p->count);
    memset(counts, 0, (size_t)n * sizeof *counts);
    for (int64_t i = 0; i < p->count; i++)
        counts[to[i]]++;
    compute_offsets(counts, send_at, n);
    for (int64_t i = 0; i < p->count; i++)
        memcpy(out + send_at[to[i]]++ * p->bytes, p->data + i * p->bytes, (size_t)p->bytes);
    compute_offsets(counts, send_at, n);
    MPI_Alltoall(counts, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_WORLD);
    in.count = in.capacity = compute_offsets(recv, recv_at, n);
    in.data = checkpoint_allocate(NULL, in.count, in.bytes);
    MPI_Type_contiguous((int)p->bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Alltoallv(out, counts, send_at, type, in.data, recv, recv_at, type, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    free(out);
    free(counts);
    checkpoint_particles_free(p);
    *p = in;
}

static uint64_t get_id(const struct checkpoint_particles *p, int64_t i)
{
    uint64_t id;
    memcpy(&id, p->data + i * p->bytes, sizeof id);
    return id;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static int compare_particles(const void *a, const void *b, void *bytes)
{
    int order = compare_ids(a, b);
    return order ? order : memcmp(a, b, *(const size_t *)bytes);
}

/* Returns the least id that each rank is to receive, chosen from samples of all ranks' ids. A
 * rank without particles gives UINT64_MAX. The caller frees the result. Collective. */
static uint64_t *choose_splitters(const struct checkpoint_world *world,
                                  const struct checkpoint_particles *p)
{
    int64_t ranks = world->ranks;
    uint64_t samples[SAMPLES], *all = checkpoint_allocate(NULL, ranks * SAMPLES, sizeof *all);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] =
            p->count > 0 ? get_id(p, (int64_t)((__int128)p->count * i / SAMPLES)) : UINT64_MAX;
    MPI_Allgather(samples, SAMPLES, MPI_UINT64_T, all, SAMPLES, MPI_UINT64_T, MPI_COMM_WORLD);
    qsort(all, (size_t)(ranks * SAMPLES), sizeof *all, compare_ids);
    all[0] = 0;
    for (int64_t r = 1; r < ranks; r++)
        all[r] = all[r * SAMPLES];
    return all;
}

void checkpoint_sort_by_id(const struct checkpoint_world *world, struct checkpoint_particles *p)
{
    size_t bytes = (size_t)p->bytes;
    uint64_t *splitters = choose_splitters(world, p);
    int *to = checkpoint_allocate(NULL, p->count, sizeof *to);
    for (int64_t i = 0; i < p->count; i++) {
        int low = 0, high = world->ranks; /* the rank is in [low, high) */
        while (high - low > 1) {
            int middle = low + (high - low) / 2;
            if (splitters[middle] <= get_id(p, i))
                low = middle;
            else
                high = middle;
        }
        to[i] = low;
    }
    checkpoint_exchange(world, p, to);
    free(to);
    free(splitters);
    if (p->count > 1)
        qsort_r(p->data, (size_t)p->count, bytes, compare_particles, &bytes);
}
