/* source.c - access containers in files and in memory through one table of functions */
#define _GNU_SOURCE
#include "limefile.h"
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    STREAM_MIN = 256 << 10, /* early writeback of smaller writes gains nothing */
    PREFETCH = 8,           /* prefetch_edges() looks this many writes ahead */
};

/* ---- a file descriptor ---- */

static int get_fd(struct limefile_source *source)
{
    return ((struct limefile_fd *)source)->fd;
}

static ssize_t fd_read(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    if (offset > INT64_MAX)
        return -EOVERFLOW;
    ssize_t got = pread(get_fd(source), buf, n, (off_t)offset);
    return got < 0 ? -errno : got;
}

static ssize_t fd_write(struct limefile_source *source, const void *buf, size_t n,
                        uint64_t offset)
{
    if (offset > INT64_MAX)
        return -EFBIG;
    ssize_t written = pwrite(get_fd(source), buf, n, (off_t)offset);
    return written < 0 ? -errno : written;
}

static int fd_size(struct limefile_source *source, uint64_t *size)
{
    struct stat st;
    if (fstat(get_fd(source), &st) != 0)
        return -errno;
    *size = (uint64_t)st.st_size;
    return 0;
}

static int fd_truncate(struct limefile_source *source, uint64_t size)
{
    if (size > INT64_MAX)
        return -EFBIG;
    return ftruncate(get_fd(source), (off_t)size) == 0 ? 0 : -errno;
}

static int fd_sync(struct limefile_source *source)
{
    int err;
    do
        err = fsync(get_fd(source)) == 0 ? 0 : -errno;
    while (err == -EINTR);
    return err;
}

static const struct limefile_source_ops fd_ops = {
    .read = fd_read,
    .size = fd_size,
    .write = fd_write,
    .truncate = fd_truncate,
    .sync = fd_sync,
};

void limefile_fd_init(struct limefile_fd *file, int fd)
{
    file->source.ops = &fd_ops;
    file->fd = fd;
}

int limefile_source_fd(struct limefile_source *source)
{
    return source->ops == &fd_ops ? get_fd(source) : -1;
}

/* ---- memory ---- */

static ssize_t memory_read(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    struct limefile_memory *memory = (struct limefile_memory *)source;
    if (offset >= memory->size)
        return 0;
    if (n > memory->size - offset)
        n = memory->size - (size_t)offset;
    memcpy(buf, memory->data + offset, n);
    return (ssize_t)n;
}

static int memory_size(struct limefile_source *source, uint64_t *size)
{
    *size = ((struct limefile_memory *)source)->size;
    return 0;
}

static int memory_reserve(struct limefile_memory *memory, size_t want)
{
    if (memory->borrowed)
        return -EROFS;
    if (want <= memory->capacity)
        return 0;
    size_t capacity = want + want / 2;
    unsigned char *data = realloc(memory->data, capacity);
    if (!data)
        return -ENOMEM;
    memory->data = data;
    memory->capacity = capacity;
    return 0;
}

static int memory_truncate(struct limefile_source *source, uint64_t size)
{
    struct limefile_memory *memory = (struct limefile_memory *)source;
    if (size > SIZE_MAX / 2)
        return -EFBIG;
    int err = memory_reserve(memory, (size_t)size);
    if (err)
        return err;
    if (size > memory->size)
        memset(memory->data + memory->size, 0, (size_t)size - memory->size);
    memory->size = (size_t)size;
    return 0;
}

static ssize_t memory_write(struct limefile_source *source, const void *buf, size_t n,
                            uint64_t offset)
{
    struct limefile_memory *memory = (struct limefile_memory *)source;
    uint64_t end;
    if (__builtin_add_overflow(offset, n, &end))
        return -EFBIG;
    if (end > memory->size) {
        int err = memory_truncate(source, end);
        if (err)
            return err;
    } else if (memory->borrowed) {
        return -EROFS;
    }
    if (n)
        memcpy(memory->data + offset, buf, n);
    return (ssize_t)n;
}

static int memory_sync(struct limefile_source *source)
{
    (void)source;
    return 0;
}

static const struct limefile_source_ops memory_ops = {
    .read = memory_read,
    .size = memory_size,
    .write = memory_write,
    .truncate = memory_truncate,
    .sync = memory_sync,
};

void limefile_memory_init(struct limefile_memory *memory)
{
    *memory = (struct limefile_memory){.source.ops = &memory_ops};
}

void limefile_memory_borrow(struct limefile_memory *memory, const void *data, size_t size)
{
    *memory = (struct limefile_memory){
        .source.ops = &memory_ops,
        .data = (unsigned char *)data, /* `borrowed` prevents writes */
        .size = size,
        .borrowed = true,
    };
}

void limefile_memory_release(struct limefile_memory *memory)
{
    if (!memory->borrowed)
        free(memory->data);
    limefile_memory_init(memory);
}

/* ---- any source ---- */

ssize_t limefile_read_full(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = source->ops->read(source, (char *)buf + done, n - done, offset + done);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return got;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int limefile_read_exact(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    ssize_t got = limefile_read_full(source, buf, n, offset);
    return got < 0 ? (int)got : (size_t)got < n ? LIMEFILE_E_SHRUNK : 0;
}

int limefile_record_read_text(struct limefile_source *source,
                              const struct limefile_record *record, size_t n, char **text)
{
    *text = malloc(n + 1);
    int err = *text ? limefile_read_exact(source, *text, n, record->data_offset) : -ENOMEM;
    if (!err) {
        (*text)[n] = '\0';
        return 0;
    }
    free(*text);
    *text = NULL;
    return err;
}

int limefile_write_full(struct limefile_source *source, const void *buf, size_t n,
                        uint64_t offset)
{
    if (!source->ops->write)
        return -EROFS;
    size_t done = 0;
    while (done < n) {
        ssize_t written =
            source->ops->write(source, (const char *)buf + done, n - done, offset + done);
        if (written == -EINTR)
            continue;
        if (written < 0)
            return (int)written;
        if (written == 0)
            return -EIO;
        done += (size_t)written;
    }
    return 0;
}

int limefile_fd_write(int fd, const void *buf, size_t n, uint64_t offset)
{
    struct limefile_fd file;
    limefile_fd_init(&file, fd);
    return limefile_write_full(&file.source, buf, n, offset);
}

/* A write that ends inside a page makes the kernel read that page, and the read waits behind
 * pending writes. So this starts the read early: for this write, and for the PREFETCH-th after
 * it. */
static void prefetch_edges(int fd, size_t n, uint64_t offset)
{
    posix_fadvise(fd, (off_t)(offset + n), 1, POSIX_FADV_WILLNEED);
    posix_fadvise(fd, (off_t)(offset + (PREFETCH + 1) * n), 1, POSIX_FADV_WILLNEED);
}

int limefile_fd_stream(int fd, const void *buf, size_t n, uint64_t offset)
{
    if (n < STREAM_MIN)
        return limefile_fd_write(fd, buf, n, offset);
    prefetch_edges(fd, n, offset);
    int err = limefile_fd_write(fd, buf, n, offset);
    off_t from = (off_t)(offset - offset % PAGE),
          to = (off_t)(offset + n - (offset + n) % PAGE);
    if (!err)
        sync_file_range(fd, from, to - from, SYNC_FILE_RANGE_WRITE);
    return err;
}

ssize_t limefile_fd_read(int fd, void *buf, size_t n, uint64_t offset)
{
    struct limefile_fd file;
    limefile_fd_init(&file, fd);
    return limefile_read_full(&file.source, buf, n, offset);
}

int limefile_fd_read_exact(int fd, void *buf, size_t n, uint64_t offset)
{
    struct limefile_fd file;
    limefile_fd_init(&file, fd);
    return limefile_read_exact(&file.source, buf, n, offset);
}

int limefile_check_fd(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return S_ISREG(st.st_mode) ? 0 : LIMEFILE_E_NOT_FILE;
}

int limefile_open(const char *path, int flags)
{
    int fd = limefile_open_at(AT_FDCWD, path, flags | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fd == -ENXIO ? LIMEFILE_E_NOT_FILE : fd; /* ENXIO: a FIFO or a socket */
    int err = limefile_check_fd(fd);
    if (err) {
        close(fd);
        return err;
    }
    return fd;
}
