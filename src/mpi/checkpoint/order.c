/* order.c - a sample sort */
#define _GNU_SOURCE
#include "order.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 32,              /* of each rank */
    PIECE_PARTICLES = 1 << 16, /* that a rank sends to another one at once */
};

static uint64_t id_of(const struct checkpoint_particles *p, int64_t i)
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

static int compare(const void *a, const void *b, void *bytes)
{
    int order = compare_ids(a, b);
    return order ? order : memcmp(a, b, *(const size_t *)bytes);
}

static void sort(struct checkpoint_particles *p)
{
    size_t bytes = (size_t)p->bytes;
    if (p->count > 1)
        qsort_r(p->data, (size_t)p->count, bytes, compare, &bytes);
}

/* The first particle whose id is not less. */
static int64_t find(const struct checkpoint_particles *p, uint64_t id)
{
    int64_t low = 0, high = p->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (id_of(p, middle) < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool on_all(bool good)
{
    int bad = !good;
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !bad;
}

/* ---- who gets which ids ---- */

/* from[r] .. from[r + 1]: what rank r gets of ours. A rank without particles has no samples. */
static bool divide(const struct checkpoint_world *world, const struct checkpoint_particles *p,
                   int64_t *from)
{
    uint64_t mine[SAMPLES];
    int n = p->count < SAMPLES ? (int)p->count : SAMPLES, all = 0;
    int *counts = malloc((size_t)world->ranks * 2 * sizeof *counts);
    uint64_t *samples = malloc((size_t)world->ranks * SAMPLES * sizeof *samples);
    bool good = on_all(counts && samples);
    for (int i = 0; i < n; i++)
        mine[i] = id_of(p, (int64_t)((__int128)p->count * i / n));
    if (good) {
        int *places = counts + world->ranks;
        MPI_Allgather(&n, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < world->ranks; r++) {
            places[r] = all;
            all += counts[r];
        }
        MPI_Allgatherv(mine, n, MPI_UINT64_T, samples, counts, places, MPI_UINT64_T,
                       MPI_COMM_WORLD);
        qsort(samples, (size_t)all, sizeof *samples, compare_ids);
        from[0] = 0;
        from[world->ranks] = p->count;
        for (int r = 1; r < world->ranks; r++)
            from[r] = all > 0 ? find(p, samples[(int64_t)all * r / world->ranks]) : p->count;
    }
    free(counts);
    free(samples);
    return good;
}

/* ---- the exchange ---- */

struct exchange {
    int64_t *from;         /* [ranks + 1] in ours */
    int64_t *to;           /* [ranks + 1] in what we get */
    int64_t *counts;       /* [2 * ranks] */
    MPI_Request *requests; /* [2 * ranks] */
    MPI_Datatype type;     /* a particle */
    struct checkpoint_particles *had, got;
};

static bool allocate(const struct checkpoint_world *world, struct exchange *e)
{
    size_t n = (size_t)world->ranks;
    e->from = malloc((n + 1) * sizeof *e->from);
    e->to = malloc((n + 1) * sizeof *e->to);
    e->counts = malloc(2 * n * sizeof *e->counts);
    e->requests = malloc(2 * n * sizeof *e->requests);
    return on_all(e->from && e->to && e->counts && e->requests);
}

/* What comes from each, and room for it. */
static bool prepare(const struct checkpoint_world *world, struct exchange *e)
{
    int64_t *send = e->counts, *receive = e->counts + world->ranks;
    for (int r = 0; r < world->ranks; r++)
        send[r] = e->from[r + 1] - e->from[r];
    MPI_Alltoall(send, 1, MPI_INT64_T, receive, 1, MPI_INT64_T, MPI_COMM_WORLD);
    e->to[0] = 0;
    for (int r = 0; r < world->ranks; r++)
        e->to[r + 1] = e->to[r] + receive[r];
    e->got.count = e->got.room = e->to[world->ranks];
    e->got.data = malloc((size_t)(e->got.count * e->got.bytes) + 1);
    return on_all(e->got.data != NULL);
}

/* A piece of at most PIECE_PARTICLES to and from each. */
static void move_pieces(const struct checkpoint_world *world, struct exchange *e, int64_t round)
{
    int n = 0;
    for (int sends = 0; sends < 2; sends++) {
        const int64_t *ends = sends ? e->from : e->to;
        for (int r = 0; r < world->ranks; r++) {
            int64_t at = ends[r] + round * PIECE_PARTICLES, left = ends[r + 1] - at;
            int count = left < PIECE_PARTICLES ? (int)left : PIECE_PARTICLES;
            if (left <= 0)
                continue;
            if (sends)
                MPI_Isend(e->had->data + at * e->had->bytes, count, e->type, r, 0,
                          MPI_COMM_WORLD, &e->requests[n++]);
            else
                MPI_Irecv(e->got.data + at * e->got.bytes, count, e->type, r, 0, MPI_COMM_WORLD,
                          &e->requests[n++]);
        }
    }
    MPI_Waitall(n, e->requests, MPI_STATUSES_IGNORE);
}

static void move_all(const struct checkpoint_world *world, struct exchange *e)
{
    int64_t most = 0;
    for (int r = 0; r < 2 * world->ranks; r++)
        most = e->counts[r] > most ? e->counts[r] : most;
    MPI_Type_contiguous((int)e->got.bytes, MPI_BYTE, &e->type);
    MPI_Type_commit(&e->type);
    for (int64_t round = 0; round * PIECE_PARTICLES < most; round++)
        move_pieces(world, e, round);
    MPI_Type_free(&e->type);
}

bool checkpoint_order(const struct checkpoint_world *world, struct checkpoint_particles *p)
{
    struct exchange e = {.had = p, .got = {.bytes = p->bytes}};
    sort(p);
    if (world->ranks == 1)
        return true;
    bool good = allocate(world, &e) && divide(world, p, e.from) && prepare(world, &e);
    if (good) {
        move_all(world, &e);
        checkpoint_particles_free(p);
        *p = e.got;
        sort(p);
    } else {
        free(e.got.data);
    }
    free(e.from);
    free(e.to);
    free(e.counts);
    free(e.requests);
    return good;
}
