/*
 * way_posix.c - the ceiling: each rank writes its particles one after another to its range of
 * the file, and reads as many as it needs, whichever they are
 */
#include "posix.h"
#include "cells.h"
#include "ways.h"

static int transfer(struct bench_io *io)
{
    struct bench_cells *c = io->cells;
    int64_t n = io->writing ? c->count : c->read, before = 0;
    MPI_Exscan(&n, &before, 1, MPI_INT64_T, MPI_SUM, io->comm);
    if (io->rank == 0)
        before = 0;
    if (!io->writing && n > 0 && !bench_cells_append(c, n))
        return bench_io_errno(io, "read");
    if (!io->writing) {
        c->count = n;
        c->anywhere = true;
    }
    return bench_posix_move(io, bench_posix_state_fd(io), c->data, n * BENCH_PARTICLE_BYTES,
                            before * BENCH_PARTICLE_BYTES);
}

const struct bench_backend bench_way_posix = {
    .name = "posix",
    .about = "the same bytes, each rank one range; the ceiling",
    .abilities = BENCH_CAN_LEAVE,
    .patterns = BENCH_ALL_PATTERNS,
    .open = bench_posix_state_open,
    .transfer = transfer,
    .sync = bench_posix_state_sync,
    .close = bench_posix_state_close,
};
