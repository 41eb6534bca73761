/* root.c - particles through rank 0 */
#include "root.h"
#include "posix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ---- */

int bench_root_prepare(struct bench_io *io, size_t text_bytes)
{
    struct bench_root *root = calloc(1, sizeof *root);
    size_t bytes = (size_t)BENCH_ROOT_CHUNK * BENCH_PARTICLE_BYTES;
    if (!root)
        return bench_io_errno(io, "prepare");
    root->fd = -1;
    io->state = root;
    root->chunk = malloc(bytes);
    if (io->rank == 0) {
        root->sorted = malloc(bytes);
        root->text = malloc(text_bytes + 1);
    }
    if (!root->chunk || (io->rank == 0 && (!root->sorted || !root->text)))
        return bench_io_errno(io, "prepare");
    return 0;
}

void bench_root_release(struct bench_io *io)
{
    struct bench_root *root = io->state;
    if (!root)
        return;
    free(root->chunk);
    free(root->sorted);
    free(root->text);
    free(root);
    io->state = NULL;
}

int bench_root_open(struct bench_io *io)
{
    struct bench_root *root = io->state;
    if (io->rank != 0)
        return 0;
    root->fd = bench_posix_open(io, io->path);
    return root->fd < 0 ? -1 : 0;
}

int bench_root_sync(struct bench_io *io)
{
    return bench_posix_sync(io, ((struct bench_root *)io->state)->fd);
}

int bench_root_close(struct bench_io *io)
{
    struct bench_root *root = io->state;
    int fd = root->fd;
    root->fd = -1;
    return bench_posix_close(io, fd);
}

/* ---- to rank 0 ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void send_own(const struct bench_io *io)
{
    const struct bench_cells *c = io->cells;
    for (int64_t i = 0; i < c->count; i += BENCH_ROOT_CHUNK) {
        int n = (int)smaller(c->count - i, BENCH_ROOT_CHUNK);
        MPI_Send(c->data + i * BENCH_PARTICLE_BYTES, n * BENCH_PARTICLE_BYTES, MPI_BYTE, 0, 0,
                 io->comm);
    }
}

int bench_root_collect(struct bench_io *io, bench_root_take *take)
{
    struct bench_root *root = io->state;
    const struct bench_cells *c = io->cells;
    int64_t count = c->count;
    int code = 0;
    if (io->rank != 0) {
        MPI_Send(&count, 1, MPI_INT64_T, 0, 0, io->comm);
        send_own(io);
        return 0;
    }
    for (int rank = 0; rank < c->ranks; rank++) {
        if (rank)
            MPI_Recv(&count, 1, MPI_INT64_T, rank, 0, io->comm, MPI_STATUS_IGNORE);
        for (int64_t i = 0; i < count; i += BENCH_ROOT_CHUNK) {
            int n = (int)smaller(count - i, BENCH_ROOT_CHUNK);
            char *particles = rank ? root->chunk : c->data + i * BENCH_PARTICLE_BYTES;
            if (rank)
                MPI_Recv(particles, n * BENCH_PARTICLE_BYTES, MPI_BYTE, rank, 0, io->comm,
                         MPI_STATUS_IGNORE);
            if (code == 0)
                code = take(io, root, particles, n);
        }
    }
    return code;
}

/* ---- from rank 0 ---- */

/* Copies n particles to the end of this rank's. */
static int keep(struct bench_io *io, const char *particles, int64_t n)
{
    char *room = bench_cells_append(io->cells, n);
    if (!room)
        return bench_io_errno(io, "read");
    memcpy(room, particles, (size_t)n * BENCH_PARTICLE_BYTES);
    io->cells->count += n;
    return 0;
}

static int receive_own(struct bench_io *io, struct bench_root *root)
{
    int bytes = 1, code = 0;
    while (bytes > 0) {
        MPI_Status status;
        char *room = code == 0 ? bench_cells_append(io->cells, BENCH_ROOT_CHUNK) : NULL;
        if (!room && code == 0)
            code = bench_io_errno(io, "read");
        MPI_Recv(room ? room : root->chunk, BENCH_ROOT_CHUNK * BENCH_PARTICLE_BYTES, MPI_BYTE,
                 0, 0, io->comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        io->cells->count += room ? bytes / BENCH_PARTICLE_BYTES : 0;
    }
    return code;
}

/* The rank that a particle belongs to; most follow one of the same. -1: none. */
static int owner(const struct bench_cells *c, const char *particle, int last)
{
    double at[BENCH_SPACE];
    bench_particle_where(particle, at);
    for (int i = 0; i < c->ranks; i++) {
        int rank = (last + i) % c->ranks;
        if (bench_cells_holds(&c->reader[rank], at))
            return rank;
    }
    return -1;
}

struct deal {
    int *owner;     /* of each particle of a chunk */
    int64_t *count; /* of each rank, then where the rank's next one goes */
};

/* Those of one rank after those of the other. */
static int sort_chunk(struct bench_io *io, struct bench_root *root, struct deal *deal,
                      int64_t n)
{
    const struct bench_cells *c = io->cells;
    memset(deal->count, 0, (size_t)c->ranks * sizeof *deal->count);
    for (int64_t i = 0; i < n; i++) {
        const char *particle = root->chunk + i * BENCH_PARTICLE_BYTES;
        deal->owner[i] = owner(c, particle, i ? deal->owner[i - 1] : 0);
        if (deal->owner[i] < 0)
            return bench_io_fail(io, "read", "particle %" PRIu64 ": outside of the domain",
                                 bench_particle_id(particle));
        deal->count[deal->owner[i]]++;
    }
    for (int64_t rank = 0, first = 0; rank < c->ranks; rank++) {
        int64_t count = deal->count[rank];
        deal->count[rank] = first;
        first += count;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(root->sorted + deal->count[deal->owner[i]]++ * BENCH_PARTICLE_BYTES,
               root->chunk + i * BENCH_PARTICLE_BYTES, BENCH_PARTICLE_BYTES);
    return 0;
}

static int send_chunk(struct bench_io *io, struct bench_root *root, const struct deal *deal)
{
    int code = 0;
    for (int rank = 0; rank < io->cells->ranks; rank++) {
        int64_t first = rank ? deal->count[rank - 1] : 0, n = deal->count[rank] - first;
        char *particles = root->sorted + first * BENCH_PARTICLE_BYTES;
        if (n > 0 && rank == 0)
            code = keep(io, particles, n);
        else if (n > 0)
            MPI_Send(particles, (int)n * BENCH_PARTICLE_BYTES, MPI_BYTE, rank, 0, io->comm);
    }
    return code;
}

int bench_root_deal(struct bench_io *io, bench_root_give *give)
{
    struct bench_root *root = io->state;
    struct deal deal = {0};
    int64_t n = 0;
    if (io->rank != 0)
        return receive_own(io, root);
    deal.owner = malloc(BENCH_ROOT_CHUNK * sizeof *deal.owner);
    deal.count = malloc((size_t)io->cells->ranks * sizeof *deal.count);
    int code = deal.owner && deal.count ? 0 : bench_io_errno(io, "read");
    while (code == 0 && (n = give(io, root, root->chunk)) > 0) {
        code = sort_chunk(io, root, &deal, n);
        if (code == 0)
            code = send_chunk(io, root, &deal);
    }
    for (int rank = 1; rank < io->cells->ranks; rank++)
        MPI_Send(NULL, 0, MPI_BYTE, rank, 0, io->comm);
    free(deal.owner);
    free(deal.count);
    return n < 0 ? -1 : code;
}
