/* backend_mpiio.c - MPI-IO: one call with an explicit offset per piece */
#include "backend_common.h"

static int mpiio_open(struct bench_io *io)
{
    return bench_mpifile_open(io, io->comm);
}

static int mpiio_move_piece(struct bench_io *io, const struct bench_piece *piece)
{
    MPI_File file = io->file;
    char *data = io->data + piece->mem_offset;
    int n = (int)piece->bytes, error;
    int64_t offset = piece->offset;
    MPI_Status status;
    if (bench_is_collective(io->task))
        error = io->is_writing ? MPI_File_write_at_all(file, offset, data, n, MPI_BYTE, &status)
                               : MPI_File_read_at_all(file, offset, data, n, MPI_BYTE, &status);
    else
        error = io->is_writing ? MPI_File_write_at(file, offset, data, n, MPI_BYTE, &status)
                               : MPI_File_read_at(file, offset, data, n, MPI_BYTE, &status);
    return bench_mpifile_check(io, error, &status, MPI_BYTE, n);
}

/* In a collective task, each rank makes the same number of calls: a rank that has no more
 * pieces moves 0 bytes, and a rank with an error goes on. */
static int mpiio_transfer(struct bench_io *io)
{
    const struct bench_pattern *p = &io->task->pattern;
    bool collective = bench_is_collective(io->task);
    int64_t pieces = bench_pattern_pieces(p, io->rank);
    int64_t rounds = collective ? bench_pattern_max_pieces(p) : pieces;
    int code = 0;
    for (int64_t i = 0; i < rounds && (collective || code == 0); i++) {
        struct bench_piece piece = {0};
        if (i < pieces)
            bench_pattern_piece(p, io->rank, i, &piece);
        code |= mpiio_move_piece(io, &piece);
    }
    return code;
}

const struct bench_backend bench_mpiio = {
    .name = "mpiio",
    .about = "MPI-IO, a call for each piece",
    .abilities =
        BENCH_CAN_INDEPENDENT | BENCH_CAN_COLLECTIVE | BENCH_CAN_HINT | BENCH_CAN_NOSYNC,
    .patterns = BENCH_ALL_PATTERNS,
    .open = mpiio_open,
    .transfer = mpiio_transfer,
    .sync = bench_mpifile_sync,
    .close = bench_mpifile_close,
};
