/*
 * session.c - what libfuse before 3.17 cannot ask the kernel for
 *
 * A kernel that caches what is written asks before each write(2) for "security.capability", to
 * drop it: one request for each 4 KiB. It does not if the file system says that it drops such
 * things itself (FUSE_HANDLE_KILLPRIV_V2), which libfuse knows of from 3.17 on only. So the
 * answer to the first request, FUSE_INIT, is changed on its way. Records have no such
 * privileges; files of a tree lose them as their bytes are written with the rights of the user
 * who opened them (caller.h).
 */
#include "session.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef FUSE_CAP_HANDLE_KILLPRIV_V2

enum init_state {
    UNSEEN,
    OFFERED, /* the kernel knows it */
    OVER,
};

static atomic_int state = UNSEEN;
static uint64_t unique; /* of FUSE_INIT; set before it is OFFERED */

static void look_at_request(const char *buf, size_t n)
{
    struct fuse_in_header header;
    struct fuse_init_in init;
    if (n < sizeof header + offsetof(struct fuse_init_in, flags2))
        return;
    memcpy(&header, buf, sizeof header);
    memcpy(&init, buf + sizeof header, offsetof(struct fuse_init_in, flags2));
    if (header.opcode != FUSE_INIT)
        return;
    unique = header.unique;
    state = init.flags & FUSE_HANDLE_KILLPRIV_V2 ? OFFERED : OVER;
}

static void change_reply(const struct iovec *iov, int count)
{
    const struct fuse_out_header *header = iov[0].iov_base;
    if (count < 2 || iov[0].iov_len != sizeof *header || header->unique != unique)
        return;
    struct fuse_init_out *init = iov[1].iov_base;
    if (header->error == 0 &&
        iov[1].iov_len >= offsetof(struct fuse_init_out, max_background) &&
        init->major == FUSE_KERNEL_VERSION)
        init->flags |= FUSE_HANDLE_KILLPRIV_V2;
    state = OVER;
}

static ssize_t read_request(int fd, void *buf, size_t n, void *userdata)
{
    (void)userdata;
    ssize_t got = read(fd, buf, n);
    if (got > 0 && state == UNSEEN)
        look_at_request(buf, (size_t)got);
    return got;
}

static ssize_t write_reply(int fd, struct iovec *iov, int count, void *userdata)
{
    (void)userdata;
    if (state == OFFERED)
        change_reply(iov, count);
    return writev(fd, iov, count);
}

int limefs_session_adjust(struct fuse_session *session)
{
    const struct fuse_custom_io io = {.writev = write_reply, .read = read_request};
    return fuse_session_custom_io(session, &io, fuse_session_fd(session));
}

#else

/* It asks itself (op_init() in ops.c). Its threads then have descriptors of their own, too,
 * which custom input and output would cost them. */
int limefs_session_adjust(struct fuse_session *session)
{
    (void)session;
    return 0;
}

#endif
