/*
 * backend_alltoallv.c - one MPI_Alltoallv within rows of ranks, then POSIX calls
 *
 * The k fastest dimensions of the process grid are taken together: the ranks that differ only
 * in their coordinates there are a row. An extent is whole in these k dimensions and has a
 * row's part of the next slower one, so it is contiguous in the file. k is as small as gives
 * extents of the size that is wished. The extents of a row are dealt to its ranks in contiguous
 * blocks; as they are in the same order in each rank's memory, what goes to one rank is
 * contiguous there and the send buffer is the array as it is.
 *
 *     lattice 4 x 4 x 4, grid 2 x 2 x 2, k = 1: 4 rows of 2 ranks, 2 extents each, one a rank
 *     extent: 2 x 4 sites, of which each rank of the row has 2 x 2
 */
#include "posix.h"
#include "table.h"

#include <limits.h>
#include <stdlib.h>

/* Of one rank: its row's extents. */
struct extents {
    int dim;               /* of which an extent has a part; faster ones are whole in it */
    struct lemon_box mine; /* the rank's part of the lattice */
    int64_t bytes;         /* of an extent */
    int64_t count;         /* in the row */
};

struct member {           /* of a row */
    struct lemon_box box; /* what it has of an extent */
    int64_t bytes;        /* of that box */
    int64_t first, count; /* the extents that it writes */
};

struct exchange {
    int fd;
    MPI_Comm row;
    int ranks, me; /* of the row */
    MPI_Datatype site;
    struct extents extents;
    struct member *members;
    int *counts; /* 4 for each member: send counts, send displacements, and for receiving */
    char *parts, *window;
};

static int dimension_of(const struct bench_task *task)
{
    const struct bench_pattern *p = &task->pattern;
    int64_t faster = p->site_bytes;
    for (int d = BENCH_DIMS - 1; d > 0; d--) {
        if (p->lattice[d] / p->grid[d] * faster >= task->extent)
            return d;
        faster *= p->lattice[d];
    }
    return 0;
}

static void set_extents(const struct bench_task *task, int rank, struct extents *e)
{
    bench_pattern_box(&task->pattern, rank, &e->mine);
    e->dim = dimension_of(task);
    e->bytes = e->mine.site_bytes * e->mine.sites[e->dim];
    e->count = 1;
    for (int d = 0; d < BENCH_DIMS; d++) {
        if (d < e->dim)
            e->count *= e->mine.sites[d];
        else if (d > e->dim)
            e->bytes *= e->mine.extent[d];
    }
}

static int row_ranks(const struct bench_task *task, int dim)
{
    int ranks = 1;
    for (int d = dim + 1; d < BENCH_DIMS; d++)
        ranks *= task->pattern.grid[d];
    return ranks;
}

/* What member i of the row has of each extent, and which extents it writes. */
static void set_member(const struct bench_task *task, const struct extents *e, int i,
                       struct member *m)
{
    const struct bench_pattern *p = &task->pattern;
    lemon_box_split(e->count, row_ranks(task, e->dim), i, &m->first, &m->count);
    m->box.dims = BENCH_DIMS - e->dim;
    m->box.site_bytes = p->site_bytes;
    m->box.extent[0] = m->box.sites[0] = e->mine.sites[e->dim];
    m->box.start[0] = 0;
    for (int d = BENCH_DIMS - 1; d > e->dim; d--) {
        int at = d - e->dim;
        m->box.extent[at] = p->lattice[d];
        lemon_box_split(p->lattice[d], p->grid[d], i % p->grid[d], &m->box.start[at],
                        &m->box.sites[at]);
        i /= p->grid[d];
    }
    m->bytes = lemon_box_bytes(&m->box);
}

/* Where extent i of the row begins in the file. */
static int64_t extent_offset(const struct extents *e, int64_t i)
{
    int64_t site = 0, coordinate[BENCH_DIMS] = {0};
    coordinate[e->dim] = e->mine.start[e->dim];
    for (int d = e->dim - 1; d >= 0; d--) {
        coordinate[d] = e->mine.start[d] + i % e->mine.sites[d];
        i /= e->mine.sites[d];
    }
    for (int d = 0; d < BENCH_DIMS; d++)
        site = site * e->mine.extent[d] + coordinate[d];
    return site * e->mine.site_bytes;
}

static const char *refuses(const struct bench_task *task)
{
    struct extents e; /* rank 0 has the most */
    struct member m;
    set_extents(task, 0, &e);
    set_member(task, &e, 0, &m);
    if (task->pattern.site_bytes > INT_MAX)
        return "sites of more than 2^31 - 1 bytes";
    if (m.count * e.bytes / task->pattern.site_bytes > INT_MAX ||
        e.count * m.bytes / task->pattern.site_bytes > INT_MAX)
        return "a rank would exchange more than 2^31 - 1 sites";
    return NULL;
}

static int prepare(struct bench_io *io)
{
    struct exchange *x = calloc(1, sizeof *x);
    if (!x)
        return bench_io_errno(io, "prepare");
    x->fd = -1;
    x->row = MPI_COMM_NULL;
    x->site = MPI_DATATYPE_NULL;
    io->state = x;
    return 0;
}

static void release(struct bench_io *io)
{
    struct exchange *x = io->state;
    if (x && x->row != MPI_COMM_NULL)
        MPI_Comm_free(&x->row);
    if (x && x->site != MPI_DATATYPE_NULL)
        MPI_Type_free(&x->site);
    if (x) {
        free(x->members);
        free(x->counts);
        free(x->parts);
        free(x->window);
    }
    free(x);
}

static void make_row(struct bench_io *io, struct exchange *x)
{
    int color = 0;
    for (int d = 0, rest = io->task->pattern.ranks, rank = io->rank; d <= x->extents.dim; d++) {
        rest /= io->task->pattern.grid[d];
        color = color * io->task->pattern.grid[d] + rank / rest;
        rank %= rest;
    }
    MPI_Comm_split(io->comm, color, io->rank, &x->row);
    MPI_Comm_size(x->row, &x->ranks);
    MPI_Comm_rank(x->row, &x->me);
    MPI_Type_contiguous((int)io->task->pattern.site_bytes, MPI_BYTE, &x->site);
    MPI_Type_commit(&x->site);
}

/* Counts and displacements in sites. */
static void set_counts(struct exchange *x, int64_t site_bytes)
{
    const struct member *me = &x->members[x->me];
    int64_t before = 0;
    for (int i = 0; i < x->ranks; i++) {
        const struct member *m = &x->members[i];
        x->counts[i] = (int)(m->count * me->bytes / site_bytes);
        x->counts[x->ranks + i] = (int)(m->first * me->bytes / site_bytes);
        x->counts[2 * x->ranks + i] = (int)(me->count * m->bytes / site_bytes);
        x->counts[3 * x->ranks + i] = (int)(before / site_bytes);
        before += me->count * m->bytes;
    }
}

static int make_buffers(struct bench_io *io, struct exchange *x)
{
    x->members = calloc((size_t)x->ranks, sizeof *x->members);
    x->counts = calloc((size_t)x->ranks, 4 * sizeof *x->counts);
    if (!x->members || !x->counts)
        return bench_io_errno(io, "open");
    for (int i = 0; i < x->ranks; i++)
        set_member(io->task, &x->extents, i, &x->members[i]);
    set_counts(x, io->task->pattern.site_bytes);
    if (x->ranks == 1 || x->members[x->me].count == 0)
        return 0;
    x->parts = malloc((size_t)(x->members[x->me].count * x->extents.bytes));
    x->window = malloc((size_t)x->extents.bytes);
    return x->parts && x->window ? 0 : bench_io_errno(io, "open");
}

static int open_file(struct bench_io *io)
{
    struct exchange *x = io->state;
    set_extents(io->task, io->rank, &x->extents);
    make_row(io, x);
    x->fd = bench_posix_open(io, io->path);
    return make_buffers(io, x) != 0 || x->fd < 0 ? -1 : 0;
}

/* Between the extent in the window and what the members have of it. */
static void permute(struct bench_io *io, struct exchange *x, int64_t i)
{
    for (int rank = 0; rank < x->ranks; rank++) {
        struct member *m = &x->members[rank];
        char *part = x->parts + x->counts[3 * x->ranks + rank] * io->task->pattern.site_bytes +
                     i * m->bytes;
        if (io->writing)
            lemon_box_scatter(&m->box, 0, x->extents.bytes, part, x->window);
        else
            lemon_box_gather(&m->box, 0, x->extents.bytes, x->window, part);
    }
}

static int move_extents(struct bench_io *io, struct exchange *x)
{
    const struct member *me = &x->members[x->me];
    int code = 0;
    for (int64_t i = 0; i < me->count && code == 0; i++) {
        bool alone = x->ranks == 1; /* the rank's memory is the row's extents */
        char *data = alone ? io->data + i * x->extents.bytes : x->window;
        if (io->writing && !alone)
            permute(io, x, i);
        code = bench_posix_move(io, x->fd, data, x->extents.bytes,
                                extent_offset(&x->extents, me->first + i));
        if (!io->writing && !alone)
            permute(io, x, i);
    }
    return code;
}

static int exchange(struct bench_io *io, struct exchange *x)
{
    int *own = x->counts, *parts = x->counts + 2 * x->ranks, n = x->ranks, error;
    if (n == 1)
        return 0;
    if (io->writing)
        error = MPI_Alltoallv(io->data, own, own + n, x->site, x->parts, parts, parts + n,
                              x->site, x->row);
    else
        error = MPI_Alltoallv(x->parts, parts, parts + n, x->site, io->data, own, own + n,
                              x->site, x->row);
    return bench_io_mpi(io, "exchange", error);
}

static int transfer(struct bench_io *io)
{
    struct exchange *x = io->state;
    int code = io->writing ? exchange(io, x) : 0;
    code |= move_extents(io, x);
    return (io->writing ? 0 : exchange(io, x)) | code;
}

static int sync_file(struct bench_io *io)
{
    return bench_posix_sync(io, ((struct exchange *)io->state)->fd);
}

static int close_file(struct bench_io *io)
{
    struct exchange *x = io->state;
    int fd = x->fd;
    x->fd = -1;
    return bench_posix_close(io, fd);
}

const struct bench_backend bench_alltoallv = {
    .name = "alltoallv",
    .about = "ranks exchange parts by MPI_Alltoallv, then pwrite whole extents",
    .abilities = BENCH_CAN_COLLECTIVE | BENCH_CAN_LEAVE,
    .patterns = BENCH_PATTERN_BIT(BENCH_LATTICE),
    .refuses = refuses,
    .prepare = prepare,
    .open = open_file,
    .transfer = transfer,
    .sync = sync_file,
    .close = close_file,
    .release = release,
};
