/* backend_common.c - what back ends share: errors, files with POSIX or MPI-IO, datasets */
#include "backend_common.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int bench_io_fail(struct bench_io *io, const char *action, const char *format, ...)
{
    if (io->error[0])
        return -1;
    int n = snprintf(io->error, sizeof io->error, "%s: ", action);
    if (n < (int)sizeof io->error) {
        va_list args;
        va_start(args, format);
        vsnprintf(io->error + n, sizeof io->error - (size_t)n, format, args);
        va_end(args);
    }
    return -1;
}

int bench_io_fail_errno(struct bench_io *io, const char *action)
{
    return bench_io_fail(io, action, "%s", strerror(errno));
}

int bench_io_fail_mpi(struct bench_io *io, const char *action, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error == MPI_SUCCESS)
        return 0;
    MPI_Error_string(error, text, &length);
    return bench_io_fail(io, action, "%s", text);
}

int bench_posix_open(struct bench_io *io)
{
    io->fd = open(io->path, (io->is_writing ? O_WRONLY | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666);
    return io->fd < 0 ? bench_io_fail_errno(io, "open") : 0;
}

int bench_posix_move(struct bench_io *io, void *data, int64_t n, int64_t offset)
{
    const char *action = io->is_writing ? "write" : "read";
    char *at = data;
    for (int64_t done = 0; done < n;) {
        size_t rest = (size_t)(n - done);
        ssize_t moved = io->is_writing ? pwrite(io->fd, at + done, rest, offset + done)
                                       : pread(io->fd, at + done, rest, offset + done);
        if (moved == 0)
            return bench_io_fail(io, action, "the file ends at byte %" PRId64, offset + done);
        if (moved < 0 && errno != EINTR)
            return bench_io_fail_errno(io, action);
        done += moved > 0 ? moved : 0;
    }
    return 0;
}

int bench_posix_pieces(struct bench_io *io)
{
    const struct bench_pattern *p = &io->task->pattern;
    int64_t pieces = bench_pattern_pieces(p, io->rank);
    int code = 0;
    for (int64_t i = 0; i < pieces && code == 0; i++) {
        struct bench_piece piece;
        bench_pattern_piece(p, io->rank, i, &piece);
        code = bench_posix_move(io, io->data + piece.mem_offset, piece.bytes, piece.offset);
    }
    return code;
}

int bench_posix_sync(struct bench_io *io)
{
    return io->fd >= 0 && fsync(io->fd) != 0 ? bench_io_fail_errno(io, "fsync") : 0;
}

int bench_posix_close(struct bench_io *io)
{
    int fd = io->fd;
    io->fd = -1;
    return fd >= 0 && close(fd) != 0 ? bench_io_fail_errno(io, "close") : 0;
}

int bench_posix_sync_path(struct bench_io *io)
{
    if (!io->is_writing || !io->task->fsync || io->rank != 0)
        return 0;
    io->fd = open(io->path, O_WRONLY | O_CLOEXEC);
    if (io->fd < 0)
        return bench_io_fail_errno(io, "open to sync");
    int code = bench_posix_sync(io);
    return bench_posix_close(io) | code;
}

MPI_Info bench_info_create(const struct bench_task *task)
{
    MPI_Info info;
    if (task->hints == 0)
        return MPI_INFO_NULL;
    MPI_Info_create(&info);
    for (int i = 0; i < task->hints; i++)
        MPI_Info_set(info, task->hint[i].key, task->hint[i].value);
    return info;
}

void bench_info_free(MPI_Info *info)
{
    if (*info != MPI_INFO_NULL)
        MPI_Info_free(info);
}

void bench_info_store(struct bench_io *io, MPI_Info info)
{
    int keys = 0, found;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    if (!io->hints && io->rank == 0) {
        io->hints = json_object();
        MPI_Info_get_nkeys(info, &keys);
    }
    for (int i = 0; i < keys; i++) {
        MPI_Info_get_nthkey(info, i, key);
        MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
        if (found)
            json_object_set_new(io->hints, key, json_string(value));
    }
    MPI_Info_free(&info);
}

int bench_mpifile_open(struct bench_io *io, MPI_Comm comm)
{
    MPI_Info info = bench_info_create(io->task), used;
    int mode = io->is_writing ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    int error = MPI_File_open(comm, io->path, mode, info, &io->file);
    bench_info_free(&info);
    if (error != MPI_SUCCESS) {
        io->file = MPI_FILE_NULL;
        return bench_io_fail_mpi(io, "open", error);
    }
    if (MPI_File_get_info(io->file, &used) == MPI_SUCCESS)
        bench_info_store(io, used);
    return 0;
}

int bench_mpifile_sync(struct bench_io *io)
{
    return bench_io_fail_mpi(io, "sync", MPI_File_sync(io->file));
}

int bench_mpifile_close(struct bench_io *io)
{
    return io->file == MPI_FILE_NULL
               ? 0
               : bench_io_fail_mpi(io, "close", MPI_File_close(&io->file));
}

int bench_mpifile_check(struct bench_io *io, int error, MPI_Status *status,
                        MPI_Datatype datatype, int expected)
{
    const char *action = io->is_writing ? "write" : "read";
    int moved;
    if (error != MPI_SUCCESS)
        return bench_io_fail_mpi(io, action, error);
    if (expected == 0) /* in this case ROMIO does not set the status */
        return 0;
    MPI_Get_count(status, datatype, &moved);
    if (moved == MPI_UNDEFINED) /* the last unit is incomplete */
        return bench_io_fail(io, action, "transferred fewer than %d units", expected);
    if (moved != expected)
        return bench_io_fail(io, action, "transferred %d of %d units", moved, expected);
    return 0;
}

int bench_move_slabs(struct bench_io *io, const struct bench_dataset *set,
                     bench_move_slab *move, int (*grow)(struct bench_io *, int64_t round))
{
    bool collective = bench_is_collective(io->task);
    int64_t rounds = bench_dataset_rounds(set);
    int code = 0;
    for (int64_t i = 0; i < rounds && (collective || code == 0); i++) {
        struct bench_slab slab;
        bench_dataset_slab(set, io->rank, i, &slab);
        if (io->is_writing && grow)
            code |= grow(io, i);
        if (slab.bytes || collective)
            code |= move(io, &slab);
    }
    return code;
}
