/* way_binary.c - everything through rank 0, the particles as they are in memory */
#include "posix.h"
#include "root.h"
#include "ways.h"

static int prepare(struct bench_io *io)
{
    return bench_root_prepare(io, 0);
}

static int take(struct bench_io *io, struct bench_root *root, const char *particles, int64_t n)
{
    int64_t bytes = n * BENCH_PARTICLE_BYTES;
    int code = bench_posix_move(io, root->fd, (void *)(uintptr_t)particles, bytes, root->at);
    root->at += bytes;
    return code;
}

static int64_t give(struct bench_io *io, struct bench_root *root, char *particles)
{
    int64_t all = io->cells->gas.particles * BENCH_PARTICLE_BYTES, bytes = all - root->at;
    if (bytes > (int64_t)BENCH_ROOT_CHUNK * BENCH_PARTICLE_BYTES)
        bytes = (int64_t)BENCH_ROOT_CHUNK * BENCH_PARTICLE_BYTES;
    if (bench_posix_move(io, root->fd, particles, bytes, root->at) != 0)
        return -1;
    root->at += bytes;
    return bytes / BENCH_PARTICLE_BYTES;
}

static int transfer(struct bench_io *io)
{
    return io->writing ? bench_root_collect(io, take) : bench_root_deal(io, give);
}

const struct bench_backend bench_way_binary = {
    .name = "binary",
    .about = "everything through rank 0, bytes as they are in memory",
    .abilities = BENCH_CAN_LEAVE,
    .patterns = BENCH_ALL_PATTERNS,
    .prepare = prepare,
    .open = bench_root_open,
    .transfer = transfer,
    .sync = bench_root_sync,
    .close = bench_root_close,
    .release = bench_root_release,
};
