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
#include "descriptor.h"
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ---- descriptors ---- */

void stage_port_open_direct(struct stage_port *port, int flags)
{
    port->direct = limefile_reopen(port->fd, flags | O_DIRECT);
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

static int read_local(const struct stage_port *port, char *data, size_t n, uint64_t offset)
{
    const char *bytes; /* at the start: parts begin with blocks */
    ssize_t got = 0;
    if (port->direct >= 0 && !limefile_is_cached(port->fd, offset, n))
        got = limefile_read_around(port->direct, data, n, offset, &bytes);
    size_t done = got > 0 ? (size_t)got : 0;
    if (done == n)
        return 0;
    ssize_t more = limefile_fd_read(port->fd, data + done, n - done, offset + done);
    return more < 0 ? (int)more : (size_t)more < n - done ? LIMEFILE_E_SHRUNK : 0;
}

int stage_port_read(struct stage_port *port, char **data, struct stage_remote **lender,
                    size_t capacity, size_t n, uint64_t offset)
{
    if (*lender && port->remote && stage_remote_read(port->remote, *data, n, offset) == 0)
        return 0;
    if (*lender && stage_remote_is_gone(*lender, NULL)) {
        char *own = limefile_buffer_new(&capacity);
        if (!own)
            return -ENOMEM;
        *data = own;
        *lender = NULL;
    }
    return read_local(port, *data, n, offset);
}

/* ---- writing ---- */

int stage_port_write(struct stage_port *port, const char *data, struct stage_remote *lender,
                     size_t n, uint64_t offset)
{
    if (lender && port->remote && stage_remote_write(port->remote, data, n, offset) == 0)
        return 0;
    size_t whole = port->direct >= 0 ? n & ~(size_t)(LIMEFILE_DIRECT_ALIGN - 1) : 0;
    if (whole) {
        int err = limefile_fd_write(port->direct, data, whole, offset);
        if (err == -EINVAL)
            whole = 0; /* not here after all */
        else if (err)
            return err;
    }
    if (whole == n)
        return 0;
    int err = limefile_fd_write(port->fd, data + whole, n - whole, offset + whole);
    if (!err)
        sync_file_range(port->fd, (off_t)(offset + whole), (off_t)(n - whole),
                        SYNC_FILE_RANGE_WRITE);
    return err;
}
