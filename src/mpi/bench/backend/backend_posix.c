/* backend_posix.c - each rank opens the file and moves its own pieces */
#include "posix.h"
#include "table.h"

#include <stdint.h>

/* The descriptor is the state, plus one: 0 is none. */
static int descriptor(const struct bench_io *io)
{
    return (int)(intptr_t)io->state - 1;
}

static int open_file(struct bench_io *io)
{
    int fd = bench_posix_open(io, io->path);
    io->state = (void *)(intptr_t)(fd + 1);
    return fd < 0 ? -1 : 0;
}

static int transfer(struct bench_io *io)
{
    return bench_posix_pieces(io, descriptor(io));
}

static int sync_file(struct bench_io *io)
{
    return bench_posix_sync(io, descriptor(io));
}

static int close_file(struct bench_io *io)
{
    int fd = descriptor(io);
    io->state = NULL;
    return bench_posix_close(io, fd);
}

const struct bench_backend bench_posix = {
    .name = "posix",
    .about = "each rank its own pieces, pwrite and pread",
    .abilities = BENCH_CAN_INDEPENDENT | BENCH_CAN_LEAVE,
    .patterns = BENCH_ALL_PATTERNS,
    .open = open_file,
    .transfer = transfer,
    .sync = sync_file,
    .close = close_file,
};
