/* backend_subarray.c - MPI-IO with a 4-dimensional file view, as in the original Lemon */
#include "backend_common.h"

#include <limits.h>

struct subarray {
    MPI_Datatype site, view;
    int sites;
};

static const char *subarray_unsupported(const struct bench_task *task)
{
    const struct bench_pattern *p = &task->pattern;
    for (int rank = 0; rank < p->ranks; rank++)
        if (bench_pattern_rank_bytes(p, rank) / p->site_bytes > INT_MAX)
            return "more than 2^31 - 1 sites on a rank";
    return p->site_bytes > INT_MAX ? "sites of more than 2^31 - 1 bytes" : NULL;
}

static int subarray_prepare(struct bench_io *io)
{
    struct subarray *s = io->state;
    s->site = s->view = MPI_DATATYPE_NULL;
    return 0;
}

static void subarray_release(struct bench_io *io)
{
    struct subarray *s = io->state;
    if (s->view != MPI_DATATYPE_NULL)
        MPI_Type_free(&s->view);
    if (s->site != MPI_DATATYPE_NULL)
        MPI_Type_free(&s->site);
}

static void make_types(struct bench_io *io, struct subarray *s)
{
    const struct bench_pattern *p = &io->task->pattern;
    struct lemon_box box;
    int sites[BENCH_DIMS], start[BENCH_DIMS];
    bench_pattern_box(p, io->rank, &box);
    for (int d = 0; d < BENCH_DIMS; d++) {
        sites[d] = (int)box.sites[d];
        start[d] = (int)box.start[d];
    }
    s->sites = (int)(lemon_box_bytes(&box) / p->site_bytes);
    MPI_Type_contiguous((int)p->site_bytes, MPI_BYTE, &s->site);
    MPI_Type_commit(&s->site);
    MPI_Type_create_subarray(BENCH_DIMS, p->lattice, sites, start, MPI_ORDER_C, s->site,
                             &s->view);
    MPI_Type_commit(&s->view);
}

static int subarray_open(struct bench_io *io)
{
    struct subarray *s = io->state;
    if (bench_mpifile_open(io, io->comm) != 0)
        return -1;
    make_types(io, s);
    return bench_io_fail_mpi(
        io, "set view",
        MPI_File_set_view(io->file, 0, s->site, s->view, "native", MPI_INFO_NULL));
}

static int subarray_transfer(struct bench_io *io)
{
    struct subarray *s = io->state;
    MPI_Status status;
    int error = io->is_writing
                    ? MPI_File_write_at_all(io->file, 0, io->data, s->sites, s->site, &status)
                    : MPI_File_read_at_all(io->file, 0, io->data, s->sites, s->site, &status);
    return bench_mpifile_check(io, error, &status, s->site, s->sites);
}

const struct bench_backend bench_subarray = {
    .name = "subarray",
    .about = "MPI-IO, one call with a 4-dimensional file view",
    .abilities = BENCH_CAN_COLLECTIVE | BENCH_CAN_HINT | BENCH_CAN_NOSYNC,
    .patterns = BENCH_PATTERN_BIT(BENCH_LATTICE),
    .state_bytes = sizeof(struct subarray),
    .unsupported = subarray_unsupported,
    .prepare = subarray_prepare,
    .open = subarray_open,
    .transfer = subarray_transfer,
    .sync = bench_mpifile_sync,
    .close = bench_mpifile_close,
    .release = subarray_release,
};
