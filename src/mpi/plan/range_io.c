/* range_io.c - read a range with O_DIRECT or MPI-IO, or write it with MPI-IO */
#define _GNU_SOURCE
#include "range_io.h"
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    /* Bytes of one MPI-IO call. Longer writes may stall, shorter reads reduce read-ahead. */
    READ_CHUNK = 256 << 20,
    WRITE_CHUNK = 8 << 20,
    WRITEBACK_CHUNK = 512 << 10, /* for writes with writeback_fd */
    PAGE = 4096,                 /* a divisor of the page size */
};

/* Reads the aligned part of the range, which begins at byte *head of the range, with O_DIRECT.
 * Returns the bytes read; 0 if O_DIRECT is not possible or the range seems to be cached. */
static int64_t read_direct(const struct lemon_file *file, char *data, int64_t n, int64_t offset,
                           int64_t *head)
{
    size_t before = 0;
    int64_t blocks =
        file->direct_fd < 0
            ? 0
            : (int64_t)limefile_direct_blocks(data, (size_t)n, (uint64_t)offset, &before);
    int64_t done = 0;
    *head = (int64_t)before;
    if (blocks == 0 || limefile_is_cached(file->direct_fd, (uint64_t)offset, (size_t)n))
        return 0;
    while (done < blocks) {
        ssize_t n_read = pread(file->direct_fd, data + *head + done, (size_t)(blocks - done),
                               offset + *head + done);
        if (n_read < 0 && errno == EINTR)
            continue;
        if (n_read <= 0 || n_read % LIMEFILE_DIRECT_ALIGN)
            break; /* rejected, or end of file: MPI-IO reads the rest and reports errors */
        done += n_read;
    }
    return done;
}

/* Starts write-back of the complete pages without waiting. Omits a partial page at the end,
 * because the next write completes it. Ignores errors: the kernel reports each error once per
 * descriptor, so the later sync, by another descriptor, also reports it. */
static void start_writeback(const struct lemon_file *file, int64_t n, int64_t offset)
{
    int64_t from = offset - offset % PAGE, to = (offset + n) - (offset + n) % PAGE;
    if (file->writeback_fd >= 0 && from < to)
        sync_file_range(file->writeback_fd, from, to - from, SYNC_FILE_RANGE_WRITE);
}

/* Fills `text` with a message on a call that moved `moved` of `count` bytes. Returns false. */
static bool format_failure(enum lemon_direction direction, int64_t at, int moved, int count,
                           int err, char text[LEMON_RANGE_TEXT_MAX])
{
    bool reads = direction == LEMON_READ;
    int n = snprintf(text, LEMON_RANGE_TEXT_MAX, "%s at %lld: %d of %d bytes",
                     reads ? "read" : "write", (long long)at, moved, count);
    if (err != MPI_SUCCESS)
        snprintf(text + n, LEMON_RANGE_TEXT_MAX - (size_t)n, " (MPI error %d)", err);
    else /* Open MPI reports a short write as success */
        snprintf(text + n, LEMON_RANGE_TEXT_MAX - (size_t)n, "%s",
                 reads ? ": the file ends there" : "; is the disk full?");
    return false;
}

static bool move_by_mpi(const struct lemon_file *file, enum lemon_direction direction,
                        void *data, int64_t n, int64_t offset, char text[LEMON_RANGE_TEXT_MAX])
{
    const int chunk = direction == LEMON_READ  ? READ_CHUNK
                      : file->writeback_fd < 0 ? WRITE_CHUNK
                                               : WRITEBACK_CHUNK;
    for (int64_t done = 0; done < n;) {
        int count = n - done < chunk ? (int)(n - done) : chunk, moved = 0;
        MPI_Status status;
        int err = direction == LEMON_READ
                      ? MPI_File_read_at(*file->mpi, offset + done, (char *)data + done, count,
                                         MPI_BYTE, &status)
                      : MPI_File_write_at(*file->mpi, offset + done, (char *)data + done, count,
                                          MPI_BYTE, &status);
        if (err == MPI_SUCCESS)
            MPI_Get_count(&status, MPI_BYTE, &moved);
        if (err != MPI_SUCCESS || moved != count)
            return format_failure(direction, offset + done, moved, count, err, text);
        if (direction == LEMON_WRITE)
            start_writeback(file, count, offset + done);
        done += count;
    }
    return true;
}

bool lemon_range_move(const struct lemon_file *file, enum lemon_direction direction, void *data,
                      int64_t n, int64_t offset, char text[LEMON_RANGE_TEXT_MAX])
{
    int64_t head = 0, direct = 0;
    if (direction == LEMON_READ)
        direct = read_direct(file, data, n, offset, &head);
    if (direct == 0)
        return move_by_mpi(file, direction, data, n, offset, text);
    int64_t end = head + direct;
    return move_by_mpi(file, direction, data, head, offset, text) &&
           move_by_mpi(file, direction, (char *)data + end, n - end, offset + end, text);
}
