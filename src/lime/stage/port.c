/*
 * port.c - around the page cache where the bytes are not in it, and through a job where there
 * is one
 *
 * Around the page cache no processor copies anything, so both are free for the sums, and
 * the disk is busy from the first block on. What a direct write cannot do (the end that is no
 * whole page, file systems without it) goes through the page cache, and is started on its way
 * at once.
 */
#define _GNU_SOURCE
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    HUGE_PAGE = 2 << 20,
};

char *stage_memory_get(size_t n)
{
    size_t room = n + HUGE_PAGE;
    char *place = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return NULL;
    size_t lead = -(uintptr_t)place % HUGE_PAGE;
    if (lead)
        munmap(place, lead);
    if (room - lead > n)
        munmap(place + lead + n, room - lead - n);
    madvise(place + lead, n, MADV_HUGEPAGE);
    return place + lead;
}

void stage_memory_release(char *data, size_t n)
{
    munmap(data, n);
}

/* ---- descriptors ---- */

void stage_port_open_direct(struct stage_port *port, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", port->fd);
    port->direct = open(path, flags | O_DIRECT | O_CLOEXEC);
}

void stage_port_close(struct stage_port *port)
{
    if (port->direct >= 0)
        close(port->direct);
    if (port->fd >= 0)
        close(port->fd);
    port->direct = port->fd = -1;
}

/* ---- reading ---- */

/* How many bytes came around the page cache: whole pages, or all there are. */
static size_t read_direct(const struct stage_port *port, char *data, size_t n, uint64_t offset)
{
    size_t got = 0,
           whole = (n + LIMEFILE_DIRECT_ALIGN - 1) & ~(size_t)(LIMEFILE_DIRECT_ALIGN - 1);
    while (got < n) {
        ssize_t more = pread(port->direct, data + got, whole - got, (off_t)(offset + got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0 || (size_t)more % LIMEFILE_DIRECT_ALIGN)
            return got + (more > 0 ? (size_t)more : 0);
        got += (size_t)more;
    }
    return got;
}

static int read_local(const struct stage_port *port, char *data, size_t n, uint64_t offset)
{
    size_t got = 0;
    if (port->direct >= 0 && !limefile_is_cached(port->fd, offset, n))
        got = read_direct(port, data, n, offset);
    if (got >= n)
        return 0;
    struct limefile_fd file;
    limefile_fd_init(&file, port->fd);
    ssize_t more = limefile_read_full(&file.source, data + got, n - got, offset + got);
    return more < 0 ? (int)more : (size_t)more < n - got ? LIMEFILE_E_SHRUNK : 0;
}

int stage_port_read(struct stage_port *port, char **data, struct stage_remote **lender,
                    size_t capacity, size_t n, uint64_t offset)
{
    if (*lender && port->remote && stage_remote_read(port->remote, *data, n, offset) == 0)
        return 0;
    if (*lender && stage_remote_is_gone(*lender, NULL)) {
        char *own = stage_memory_get(capacity);
        if (!own)
            return -ENOMEM;
        *data = own;
        *lender = NULL;
    }
    return read_local(port, *data, n, offset);
}

/* ---- writing ---- */

static int write_full(int fd, const char *data, size_t n, uint64_t offset)
{
    struct limefile_fd file;
    limefile_fd_init(&file, fd);
    return limefile_write_full(&file.source, data, n, offset);
}

int stage_port_write(struct stage_port *port, const char *data, struct stage_remote *lender,
                     size_t n, uint64_t offset)
{
    if (lender && port->remote && stage_remote_write(port->remote, data, n, offset) == 0)
        return 0;
    size_t whole = port->direct >= 0 ? n & ~(size_t)(LIMEFILE_DIRECT_ALIGN - 1) : 0;
    if (whole) {
        int err = write_full(port->direct, data, whole, offset);
        if (err == -EINVAL)
            whole = 0; /* not here after all */
        else if (err)
            return err;
    }
    if (whole == n)
        return 0;
    int err = write_full(port->fd, data + whole, n - whole, offset + whole);
    if (!err)
        sync_file_range(port->fd, (off_t)(offset + whole), (off_t)(n - whole),
                        SYNC_FILE_RANGE_WRITE);
    return err;
}
