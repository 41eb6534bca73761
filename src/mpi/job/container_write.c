/*
 * container_write.c - write data from memory to a container's file, and sync it
 *
 * If the disk is full, Open MPI 4.1 returns MPI_SUCCESS for a short write, and for collective
 * writes the full count, too. So before a collective write, the ranks allocate the space; and
 * after a short or failed one, system calls write the rest, which also gives the reason.
 */
#define _GNU_SOURCE
#include "descriptor.h"
#include "limefile.h"
#include "credentials.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CHUNK = 8 << 20, /* longer writes into the page cache can stall */
};

void job_container_open_direct(struct job_container *container)
{
    int fd = limefile_reopen(container->fd, O_WRONLY | O_DIRECT);
    container->direct_fd = fd < 0 ? -1 : fd;
}

void job_container_close_direct(struct job_container *container)
{
    if (container->direct_fd >= 0)
        close(container->direct_fd);
    container->direct_fd = -1;
}

/* Checks the permission to write: while a rank is stopped, its client may give up and write the
 * data itself, and then newer data. Returns 0 or an errno. */
static int check_permit(const struct job_write_permit *permit)
{
    if (permit->fence && limejob_fence_is_set(permit->fence))
        return ECANCELED;
    if (!permit->deadline)
        return 0;
    return job_realtime_ns() > permit->deadline ? ETIMEDOUT : 0;
}

/* *done: bytes that were written, even after an error. */
static int write_all(int fd, const struct job_write_permit *permit, const char *data, int64_t n,
                     int64_t offset, int64_t chunk, int64_t *done)
{
    for (*done = 0; *done < n;) {
        int64_t bytes = n - *done < chunk ? n - *done : chunk;
        int code = check_permit(permit);
        if (code)
            return code;
        ssize_t written = pwrite(fd, data + *done, (size_t)bytes, offset + *done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written ? errno : EIO;
        *done += written;
    }
    return 0;
}

/* Writes by direct I/O. Also returns 0 after EINVAL (wrong alignment for this file system, or
 * for the rest after a short write): the caller writes the rest through the page cache. */
static int write_direct(struct job_container *container, const struct job_write_permit *permit,
                        const char *data, int64_t n, int64_t offset, int64_t *done)
{
    int code = write_all(container->direct_fd, permit, data, n, offset, n, done);
    if (code != EINVAL)
        return code;
    if (*done == 0) {
        close(container->direct_fd);
        container->direct_fd = -1;
    }
    return 0;
}

/* Writes the aligned blocks by direct I/O if possible, the rest through the page cache. */
static int write_split(struct job_container *container, const struct job_write_permit *permit,
                       const char *data, int64_t n, int64_t *offset)
{
    int64_t done = 0, end = *offset + n;
    size_t head = 0, blocks = 0; /* bytes before the aligned blocks; bytes of the blocks */
    if (container->direct_fd >= 0)
        blocks = limefile_direct_blocks(data, (size_t)n, (uint64_t)*offset, &head);
    int code = 0;
    if (blocks > 0) {
        code = write_all(container->fd, permit, data, (int64_t)head, *offset, CHUNK, &done);
        *offset += done;
        data += done;
    }
    if (blocks > 0 && !code) {
        code = write_direct(container, permit, data, (int64_t)blocks, *offset, &done);
        *offset += done;
        data += done;
    }
    if (code)
        return code;
    code = write_all(container->fd, permit, data, end - *offset, *offset, CHUNK, &done);
    *offset += done;
    return code;
}

/* Writes until MPI fails or writes less than requested; then the caller writes the rest. */
static int write_independently(struct job_container *container,
                               const struct job_write_permit *permit, const char *data,
                               int64_t n, int64_t *offset)
{
    int count = 0, moved = 0, code = 0;
    while (n > 0 && moved == count && !(code = check_permit(permit))) {
        MPI_Status status;
        count = n < CHUNK ? (int)n : CHUNK;
        if (MPI_File_write_at(container->mpi_file, *offset, data, count, MPI_BYTE, &status) !=
                MPI_SUCCESS ||
            MPI_Get_count(&status, MPI_BYTE, &moved) != MPI_SUCCESS || moved < 0)
            moved = 0;
        *offset += moved;
        data += moved;
        n -= moved;
    }
    return code;
}

/* Returns 0 if the space is allocated, and the size unchanged; or an errno. */
static int allocate(const struct job_container *container, int64_t n, int64_t offset)
{
    while (n > 0 && fallocate(container->fd, FALLOC_FL_KEEP_SIZE, offset, n) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* Collective. If the call fails on a rank, this rank writes its part again. */
static int write_collectively(struct job_container *container,
                              const struct job_write_permit *permit, int code, const char *data,
                              int64_t n, int64_t *offset)
{
    MPI_Status status;
    int moved = 0;
    if (!code)
        code = check_permit(permit);
    if (!code)
        code = allocate(container, n, *offset);
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, container->comm);
    if (code)
        return code;
    int err =
        MPI_File_write_at_all(container->mpi_file, *offset, data, (int)n, MPI_BYTE, &status);
    if (err == MPI_SUCCESS)
        MPI_Get_count(&status, MPI_BYTE, &moved);
    if (err != MPI_SUCCESS || moved != n)
        return write_split(container, permit, data, n, offset);
    *offset += n;
    return 0;
}

int job_container_write(struct job_container *container, const struct job_write_permit *permit,
                        const char *data, int64_t n, int64_t *offset)
{
    int64_t begin = *offset;
    int code = job_creds_enter(permit->uid);
    bool entered = code == 0;
    if (container->io == LIMEJOB_IO_COLLECTIVE) {
        code = write_collectively(container, permit, code, data, n, offset);
    } else {
        if (!code && container->io == LIMEJOB_IO_INDEPENDENT)
            code = write_independently(container, permit, data, n, offset);
        if (!code)
            code = write_split(container, permit, data + (*offset - begin),
                               n - (*offset - begin), offset);
    }
    if (entered)
        job_creds_leave(permit->uid);
    return code;
}

static int sync_mpi_file(struct job_container *container, char *text, size_t cap)
{
    char message[MPI_MAX_ERROR_STRING] = "";
    int n, err = MPI_File_sync(container->mpi_file);
    if (err == MPI_SUCCESS)
        return 0;
    MPI_Error_string(err, message, &n);
    snprintf(text, cap, "MPI_File_sync: %s", message);
    return EIO;
}

/* The kernel reports an error once for each descriptor, so this function syncs both. */
int job_container_sync(struct job_container *container, char *text, size_t cap)
{
    int code = fsync(container->fd) == 0 ? 0 : errno;
    if (container->direct_fd >= 0 && fsync(container->direct_fd) != 0 && !code)
        code = errno;
    int mpi_code = sync_mpi_file(container, text, cap);
    if (code)
        snprintf(text, cap, "%s", strerror(code));
    return code ? code : mpi_code;
}
