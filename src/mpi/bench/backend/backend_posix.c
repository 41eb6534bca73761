/* backend_posix.c - each rank opens the file and moves its own pieces */
#include "posix.h"
#include "table.h"

static int transfer(struct bench_io *io)
{
    return bench_posix_pieces(io, bench_posix_state_fd(io));
}

const struct bench_backend bench_posix = {
    .name = "posix",
    .about = "each rank its own pieces, pwrite and pread",
    .abilities = BENCH_CAN_INDEPENDENT | BENCH_CAN_LEAVE,
    .patterns = BENCH_ALL_PATTERNS,
    .open = bench_posix_state_open,
    .transfer = transfer,
    .sync = bench_posix_state_sync,
    .close = bench_posix_state_close,
};
