/*
 * backend_limefs.c - a record of a container that limefs has mounted: each rank moves its own
 * pieces through the mount with POSIX calls
 *
 * Rank 0 makes the container and mounts it before the time counts, as a mount stays up.
 */
#include "mount.h"
#include "posix.h"
#include "table.h"

#include "limefile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct limefs {
    int fd;
    struct bench_mount mount; /* rank 0's */
    char record[BENCH_PATH_BYTES];
};

static const char *refuses(const struct bench_task *task)
{
    return task->hosts > 1 ? "the ranks are on several hosts: they cannot all see one mount"
                           : NULL;
}

/* One record of the right length, without its data. */
static int make_container(struct bench_io *io)
{
    struct limefile_header header;
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    uint64_t bytes = (uint64_t)bench_pattern_bytes(&io->task->pattern), end, next;
    int code = limefile_header_init(&header, BENCH_RECORD_TYPE, strlen(BENCH_RECORD_TYPE),
                                    bytes, true, true);
    if (code == 0)
        code = limefile_header_encode(&header, raw);
    if (code == 0)
        code = limefile_extent_of(0, bytes, &end, &next);
    if (code != 0)
        return bench_io_fail(io, "make container", "too large");
    int fd = open(io->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return bench_io_errno(io, "make container");
    if (write(fd, raw, sizeof raw) != sizeof raw || ftruncate(fd, (off_t)next) != 0)
        code = bench_io_errno(io, "make container");
    return bench_posix_close(io, fd) | code;
}

static int prepare_with(struct bench_io *io, int job_ranks)
{
    struct limefs *l = calloc(1, sizeof *l);
    int good = l != NULL;
    if (l)
        l->fd = -1;
    else
        bench_io_errno(io, "prepare");
    io->state = l;
    if (io->rank == 0 && good)
        good = (!io->writing || make_container(io) == 0) &&
               bench_mount_start(io, &l->mount, job_ranks) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, io->comm);
    if (!good)
        return -1;
    if (io->rank == 0)
        snprintf(l->record, sizeof l->record, "%.*s/%s",
                 (int)(sizeof l->record - sizeof "/" BENCH_RECORD_TYPE), l->mount.folder,
                 BENCH_RECORD_TYPE);
    MPI_Bcast(l->record, sizeof l->record, MPI_CHAR, 0, io->comm);
    return 0;
}

static int prepare(struct bench_io *io)
{
    return prepare_with(io, 0);
}

static int prepare_job(struct bench_io *io)
{
    return prepare_with(io, io->task->job_ranks);
}

/* No rank has the record open any more. */
static void release(struct bench_io *io)
{
    struct limefs *l = io->state;
    MPI_Barrier(io->comm);
    if (l && io->rank == 0)
        bench_mount_end(&l->mount);
    MPI_Barrier(io->comm);
    free(l);
}

static int open_file(struct bench_io *io)
{
    struct limefs *l = io->state;
    l->fd = open(l->record, (io->writing ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    return l->fd < 0 ? bench_io_errno(io, "open") : 0;
}

static int transfer(struct bench_io *io)
{
    return bench_posix_pieces(io, ((struct limefs *)io->state)->fd);
}

static int sync_file(struct bench_io *io)
{
    return bench_posix_sync(io, ((struct limefs *)io->state)->fd);
}

static int close_file(struct bench_io *io)
{
    struct limefs *l = io->state;
    int fd = l->fd;
    l->fd = -1;
    return bench_posix_close(io, fd);
}

const struct bench_backend bench_limefs = {
    .name = "limefs",
    .about = "a record of a mounted LIME container, pwrite and pread",
    .abilities = BENCH_CAN_INDEPENDENT | BENCH_CAN_LEAVE,
    .patterns = BENCH_ALL_PATTERNS,
    .absent = bench_mount_absent,
    .refuses = refuses,
    .prepare = prepare,
    .open = open_file,
    .transfer = transfer,
    .sync = sync_file,
    .close = close_file,
    .release = release,
};

const struct bench_backend bench_limefs_job = {
    .name = "limefs-job",
    .about = "the same, with an MPI job beside the mount",
    .abilities = BENCH_CAN_INDEPENDENT | BENCH_CAN_LEAVE,
    .patterns = BENCH_ALL_PATTERNS,
    .absent = bench_mount_absent,
    .refuses = refuses,
    .prepare = prepare_job,
    .open = open_file,
    .transfer = transfer,
    .sync = sync_file,
    .close = close_file,
    .release = release,
};
