/* posix.c - pieces of a file by POSIX calls */
#include "posix.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

int bench_posix_open(struct bench_io *io, const char *path)
{
    int fd = open(path, (io->writing ? O_WRONLY | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666);
    return fd < 0 ? bench_io_errno(io, "open") : fd;
}

int64_t bench_posix_some(struct bench_io *io, int fd, void *data, int64_t n, int64_t offset)
{
    ssize_t moved;
    do
        moved = io->writing ? pwrite(fd, data, (size_t)n, offset)
                            : pread(fd, data, (size_t)n, offset);
    while (moved < 0 && errno == EINTR);
    return moved < 0 ? bench_io_errno(io, io->writing ? "write" : "read") : moved;
}

int bench_posix_move(struct bench_io *io, int fd, void *data, int64_t n, int64_t offset)
{
    char *at = data;
    for (int64_t done = 0; done < n;) {
        int64_t moved = bench_posix_some(io, fd, at + done, n - done, offset + done);
        if (moved == 0)
            return bench_io_fail(io, io->writing ? "write" : "read",
                                 "the file ends at byte %" PRId64, offset + done);
        if (moved < 0)
            return -1;
        done += moved;
    }
    return 0;
}

int bench_posix_pieces(struct bench_io *io, int fd)
{
    const struct bench_pattern *p = &io->task->pattern;
    int64_t pieces = bench_pattern_pieces(p, io->rank);
    int code = 0;
    for (int64_t i = 0; i < pieces && code == 0; i++) {
        struct bench_piece piece;
        bench_pattern_piece(p, io->rank, i, &piece);
        code = bench_posix_move(io, fd, io->data + piece.memory, piece.bytes, piece.at);
    }
    return code;
}

int bench_posix_sync(struct bench_io *io, int fd)
{
    return fd >= 0 && fsync(fd) != 0 ? bench_io_errno(io, "fsync") : 0;
}

int bench_posix_close(struct bench_io *io, int fd)
{
    return fd >= 0 && close(fd) != 0 ? bench_io_errno(io, "close") : 0;
}

int bench_posix_settle(struct bench_io *io)
{
    if (!io->writing || !io->task->fsync || io->rank != 0)
        return 0;
    int fd = open(io->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return bench_io_errno(io, "open to sync");
    int code = bench_posix_sync(io, fd);
    return bench_posix_close(io, fd) | code;
}

/* ---- a descriptor as state ---- */

/* It is the state, plus one: 0 is none. */
int bench_posix_state_fd(const struct bench_io *io)
{
    return (int)(intptr_t)io->state - 1;
}

int bench_posix_state_open(struct bench_io *io)
{
    int fd = bench_posix_open(io, io->path);
    io->state = (void *)(intptr_t)(fd + 1);
    return fd < 0 ? -1 : 0;
}

int bench_posix_state_sync(struct bench_io *io)
{
    return bench_posix_sync(io, bench_posix_state_fd(io));
}

int bench_posix_state_close(struct bench_io *io)
{
    int fd = bench_posix_state_fd(io);
    io->state = NULL;
    return bench_posix_close(io, fd);
}
