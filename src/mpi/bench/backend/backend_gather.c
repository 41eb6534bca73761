/*
 * backend_gather.c - move all data through one rank with POSIX calls, as C-LIME programs do
 *
 * A lattice is moved in slices of the slowest dimension. To write a slice, rank 0 receives the
 * parts of all ranks, puts them in order and writes them; to read, it does the opposite. Other
 * patterns are moved piece by piece.
 */
#include "backend_common.h"

#include <limits.h>
#include <stdlib.h>

struct gather {
    char *slice, *part; /* buffers on rank 0; slice is for lattices only */
    MPI_Datatype site;
};

static const char *gather_unsupported(const struct bench_task *task)
{
    const struct bench_pattern *p = &task->pattern;
    if (p->kind == BENCH_LATTICE &&
        (int64_t)p->lattice[1] * p->lattice[2] * p->lattice[3] > INT_MAX)
        return "slices of more than 2^31 - 1 sites";
    return p->site_bytes > INT_MAX ? "sites of more than 2^31 - 1 bytes" : NULL;
}

static int gather_prepare(struct bench_io *io)
{
    ((struct gather *)io->state)->site = MPI_DATATYPE_NULL;
    return 0;
}

static void gather_release(struct bench_io *io)
{
    struct gather *g = io->state;
    if (g->site != MPI_DATATYPE_NULL)
        MPI_Type_free(&g->site);
    free(g->slice);
    free(g->part);
}

/* Opens the file on rank 0 and allocates rank 0's buffers. gather_release() frees them. */
static int gather_open(struct bench_io *io)
{
    const struct bench_pattern *p = &io->task->pattern;
    struct gather *g = io->state;
    bool lattice = p->kind == BENCH_LATTICE;
    MPI_Type_contiguous(lattice ? (int)p->site_bytes : 1, MPI_BYTE, &g->site);
    MPI_Type_commit(&g->site);
    if (io->rank != 0)
        return 0;
    size_t bytes = (size_t)(lattice ? bench_pattern_bytes(p) / p->lattice[0] : p->transfer);
    g->slice = malloc(bytes);
    g->part = malloc(bytes);
    if (!g->slice || !g->part)
        return bench_io_fail_errno(io, "open");
    return bench_posix_open(io);
}

/* ---- lattices ---- */

/* Sets *box to a rank's part of slice t, relative to the slice, and *before to the offset of
 * this part in the rank's data. Returns false if the rank has no part of the slice. */
static bool get_slice_part(const struct bench_pattern *p, int rank, int64_t t,
                           struct lemon_box *box, int64_t *before)
{
    bench_pattern_box(p, rank, box);
    if (t < box->start[0] || t >= box->start[0] + box->sites[0])
        return false;
    int64_t slice = t - box->start[0];
    box->extent[0] = box->sites[0] = 1;
    box->start[0] = 0;
    *before = slice * lemon_box_bytes(box);
    return true;
}

/* Rank 0's part of moving slice t. Continues after an error: other ranks wait for rank 0. */
static int move_slice_root(struct bench_io *io, struct gather *g, int64_t t, int64_t bytes)
{
    const struct bench_pattern *p = &io->task->pattern;
    struct lemon_box box;
    int64_t before;
    int code = io->is_writing ? 0 : bench_posix_move(io, g->slice, bytes, t * bytes);
    for (int rank = 0; rank < p->ranks; rank++) {
        if (!get_slice_part(p, rank, t, &box, &before))
            continue;
        int sites = (int)(lemon_box_bytes(&box) / p->site_bytes);
        char *part = rank ? g->part : io->data + before;
        if (rank && io->is_writing)
            MPI_Recv(part, sites, g->site, rank, 0, io->comm, MPI_STATUS_IGNORE);
        if (io->is_writing)
            lemon_box_scatter(&box, 0, bytes, part, g->slice);
        else
            lemon_box_gather(&box, 0, bytes, g->slice, part);
        if (rank && !io->is_writing)
            MPI_Send(part, sites, g->site, rank, 0, io->comm);
    }
    if (io->is_writing && !io->error[0])
        code = bench_posix_move(io, g->slice, bytes, t * bytes);
    return code;
}

static void move_slice_other(struct bench_io *io, struct gather *g, int64_t t)
{
    const struct bench_pattern *p = &io->task->pattern;
    struct lemon_box box;
    int64_t before;
    if (!get_slice_part(p, io->rank, t, &box, &before))
        return;
    int sites = (int)(lemon_box_bytes(&box) / p->site_bytes);
    if (io->is_writing)
        MPI_Send(io->data + before, sites, g->site, 0, 0, io->comm);
    else
        MPI_Recv(io->data + before, sites, g->site, 0, 0, io->comm, MPI_STATUS_IGNORE);
}

static int move_lattice(struct bench_io *io, struct gather *g)
{
    const struct bench_pattern *p = &io->task->pattern;
    int64_t bytes = bench_pattern_bytes(p) / p->lattice[0];
    int code = 0;
    for (int64_t t = 0; t < p->lattice[0]; t++)
        if (io->rank == 0)
            code |= move_slice_root(io, g, t, bytes);
        else
            move_slice_other(io, g, t);
    return code;
}

/* ---- pieces ---- */

static int move_piece_root(struct bench_io *io, struct gather *g, int rank, int64_t i)
{
    struct bench_piece piece;
    bench_pattern_piece(&io->task->pattern, rank, i, &piece);
    char *data = rank ? g->part : io->data + piece.mem_offset;
    int n = (int)piece.bytes, code = 0;
    if (rank && io->is_writing)
        MPI_Recv(data, n, g->site, rank, 0, io->comm, MPI_STATUS_IGNORE);
    if (!io->error[0])
        code = bench_posix_move(io, data, n, piece.offset);
    if (rank && !io->is_writing)
        MPI_Send(data, n, g->site, rank, 0, io->comm);
    return code;
}

static void move_piece_other(struct bench_io *io, struct gather *g, int64_t i)
{
    struct bench_piece piece;
    bench_pattern_piece(&io->task->pattern, io->rank, i, &piece);
    char *data = io->data + piece.mem_offset;
    if (io->is_writing)
        MPI_Send(data, (int)piece.bytes, g->site, 0, 0, io->comm);
    else
        MPI_Recv(data, (int)piece.bytes, g->site, 0, 0, io->comm, MPI_STATUS_IGNORE);
}

/* Moves all pieces: disjoint blocks rank by rank, otherwise one piece of each rank in turn. */
static int move_pieces(struct bench_io *io, struct gather *g)
{
    const struct bench_pattern *p = &io->task->pattern;
    int64_t pieces = bench_pattern_pieces(p, 0), all = pieces * p->ranks;
    bool in_turn = p->kind != BENCH_DISJOINT;
    int code = 0;
    for (int64_t n = 0; n < all; n++) {
        int rank = (int)(in_turn ? n % p->ranks : n / pieces);
        int64_t i = in_turn ? n / p->ranks : n % pieces;
        if (io->rank == 0)
            code |= move_piece_root(io, g, rank, i);
        else if (rank == io->rank)
            move_piece_other(io, g, i);
    }
    return code;
}

static int gather_transfer(struct bench_io *io)
{
    struct gather *g = io->state;
    return io->task->pattern.kind == BENCH_LATTICE ? move_lattice(io, g) : move_pieces(io, g);
}

const struct bench_backend bench_gather = {
    .name = "gather",
    .about = "everything through rank 0 and POSIX calls, as C-LIME programs do",
    .abilities = BENCH_CAN_COLLECTIVE | BENCH_CAN_NOSYNC,
    .patterns = BENCH_ALL_PATTERNS,
    .state_bytes = sizeof(struct gather),
    .unsupported = gather_unsupported,
    .prepare = gather_prepare,
    .open = gather_open,
    .transfer = gather_transfer,
    .sync = bench_posix_sync,
    .close = bench_posix_close,
    .release = gather_release,
};
