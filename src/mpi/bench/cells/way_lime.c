/* way_lime.c - Lemon: three records of a LIME container, by its calls for cells */
#include "cells.h"
#include "lemonio.h"
#include "mpifile.h"
#include "ways.h"

#include <stdlib.h>

struct lime {
    MPI_File file;
    LemonWriter *writer; /* one of the two */
    LemonReader *reader;
};

static int prepare(struct bench_io *io)
{
    struct lime *lime = calloc(1, sizeof *lime);
    if (!lime)
        return bench_io_errno(io, "prepare");
    io->state = lime;
    lime->file = MPI_FILE_NULL;
    bench_lemon_listen(io);
    return 0;
}

static void release(struct bench_io *io)
{
    bench_lemon_listen(NULL);
    free(io->state);
}

static int open_file(struct bench_io *io)
{
    struct lime *lime = io->state;
    if (bench_mpifile_open(io, io->comm, &lime->file) != 0)
        return -1;
    MPI_Info info = bench_task_info(io->task);
    int code;
    if (io->writing) {
        lime->writer = lemonCreateWriter(&lime->file, io->comm);
        code = lemonWriterSetInfo(lime->writer, info);
        if (code == LEMON_SUCCESS)
            code = lemonWriterSetPath(lime->writer, io->path);
        if (code == LEMON_SUCCESS && io->task->alignment)
            code =
                lemonWriterSetAlignment(lime->writer, io->task->alignment, io->task->alignment);
    } else {
        lime->reader = lemonCreateReader(&lime->file, io->comm);
        code = lemonReaderSetInfo(lime->reader, info);
    }
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    return bench_lemon_check(io, "open", code);
}

static int read_cells(struct bench_io *io, LemonReader *reader)
{
    struct bench_cells *c = io->cells;
    const struct bench_cells_box *box = &c->reader[io->rank];
    LemonCells *found = NULL;
    void *particles = NULL;
    MPI_Offset count = 0;
    int code = lemonNextCells(reader, &found);
    if (code == LEMON_EOF)
        return bench_io_fail(io, "read", "no checkpoint");
    if (code == LEMON_SUCCESS && found->particle.bytes != BENCH_PARTICLE_BYTES) {
        bench_io_fail(io, "read", "particles of %lld bytes, not %d",
                      (long long)found->particle.bytes, BENCH_PARTICLE_BYTES);
        code = LEMON_ERR_PARAM;
    }
    if (code == LEMON_SUCCESS)
        code = lemonReadCells(reader, found, box->lower, box->upper, &particles, &count, 0);
    if (code == LEMON_SUCCESS) {
        c->data = particles;
        c->count = c->room = count;
    }
    lemonFreeCells(found);
    return bench_lemon_check(io, "read", code);
}

static int transfer(struct bench_io *io)
{
    struct lime *lime = io->state;
    const struct bench_cells *c = io->cells;
    if (!io->writing)
        return read_cells(io, lime->reader);
    return bench_lemon_check(io, "write",
                             lemonWriteCells(lime->writer, 1, 1, &c->domain,
                                             &bench_cells_particle, c->data, c->count, 0));
}

/* Each record was synced when it was closed. */
static int sync_file(struct bench_io *io)
{
    (void)io;
    return 0;
}

static int close_file(struct bench_io *io)
{
    struct lime *lime = io->state;
    int code = lime->writer ? lemonDestroyWriter(lime->writer) : LEMON_SUCCESS;
    lemonDestroyReader(lime->reader);
    lime->writer = NULL;
    lime->reader = NULL;
    int closed = bench_mpifile_close(io, &lime->file);
    return bench_lemon_check(io, "close", code) | closed;
}

const struct bench_backend bench_way_lime = {
    .name = "lime",
    .about = "Lemon: three records of a LIME container, lemonWriteCells()",
    .abilities = BENCH_CAN_HINT | BENCH_CAN_ALIGN,
    .patterns = BENCH_ALL_PATTERNS,
    .prepare = prepare,
    .open = open_file,
    .transfer = transfer,
    .sync = sync_file,
    .close = close_file,
    .release = release,
};
