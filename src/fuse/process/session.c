/*
 * session.c - control which thread gets a request, and negotiate what libfuse cannot
 *
 * Threads wait in epoll_wait(2), which wakes the thread that began to wait last. If they waited
 * in read(2), the kernel would wake the thread that has waited longest, each time another one.
 *
 * write_reply() sets three flags in libfuse's reply to the first request, FUSE_INIT.
 *
 * FUSE_HANDLE_KILLPRIV_V2 states that the file system itself drops a file's privileges when it
 * is written to. Without the flag, a kernel that caches writes requests the attribute
 * "security.capability" before each write(2), in order to remove it. libfuse supports the flag
 * from 3.17 on. Records have no privileges; files of a tree lose theirs because their bytes are
 * written with the rights of the user that opened them (credentials.h).
 *
 * FUSE_PARALLEL_DIROPS: without it the kernel looks up names of one directory one after
 * another. libfuse 3.14 knows this flag but does not pass it on.
 *
 * FUSE_DIRECT_IO_ALLOW_MMAP (Linux 6.6): without it programs cannot map files that the kernel
 * reads around its page cache.
 *
 * libfuse before 3.13 reads requests and writes replies itself: none of the above applies.
 */
#define _GNU_SOURCE
#include "session.h"
#include "limefs.h"
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 13)

/* REPLY_EXPECTED: the kernel supports some of the flags above; the reply is not sent yet. */
enum negotiation_state { INIT_EXPECTED, REPLY_EXPECTED, INIT_DONE };

static _Atomic enum negotiation_state state = INIT_EXPECTED;

/* FUSE_DIRECT_IO_ALLOW_MMAP, which <linux/fuse.h> may be too old to define: a bit of flags2 */
enum { ALLOW_MMAP2 = 1 << 4 };

static uint64_t init_id; /* id of FUSE_INIT; set before the state is REPLY_EXPECTED */
static uint32_t extra_flags, extra_flags2; /* bits to add to flags and flags2 of the reply */

static void choose_init_flags(const struct limefs *fs, const char *buf, size_t n)
{
    struct fuse_in_header header;
    struct fuse_init_in init = {0};
    if (n < sizeof header + offsetof(struct fuse_init_in, flags2))
        return;
    memcpy(&header, buf, sizeof header);
    n -= sizeof header;
    memcpy(&init, buf + sizeof header, n < sizeof init ? n : sizeof init);
    if (header.opcode != FUSE_INIT)
        return;
    init_id = header.unique;
    uint32_t requested = FUSE_PARALLEL_DIROPS, requested2 = fs->options.rw ? 0 : ALLOW_MMAP2;
#ifndef FUSE_CAP_HANDLE_KILLPRIV_V2
    requested |= fs->options.rw ? FUSE_HANDLE_KILLPRIV_V2 : 0;
#endif
    extra_flags = init.flags & requested;
    extra_flags2 = init.flags & FUSE_INIT_EXT ? init.flags2 & requested2 : 0;
    state = extra_flags || extra_flags2 ? REPLY_EXPECTED : INIT_DONE;
}

static void add_init_flags(const struct iovec *iov, int count)
{
    const struct fuse_out_header *header = iov[0].iov_base;
    if (count < 2 || iov[0].iov_len != sizeof *header || header->unique != init_id)
        return;
    struct fuse_init_out *init = iov[1].iov_base;
    state = INIT_DONE;
    if (header->error != 0 ||
        iov[1].iov_len < offsetof(struct fuse_init_out, flags2) + sizeof init->flags2 ||
        init->major != FUSE_KERNEL_VERSION)
        return;
    init->flags |= extra_flags | (extra_flags2 ? FUSE_INIT_EXT : 0);
    init->flags2 |= extra_flags2;
}

/* Watches the session's descriptor; all descriptors of /dev/fuse share its request queue. */
static int epoll_fd;

#define SPIN_SECONDS 30e-6

/* Lets the next request wake one thread. Then no request does until this is called again. */
static int arm_wakeup(struct fuse_session *session, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    return epoll_ctl(epoll_fd, operation, fuse_session_fd(session), &event) == 0 ? 0 : -errno;
}

/* Polls for a request for SPIN_SECONDS, then sleeps until there is one. Returns > 0, or -1 and
 * sets errno. Many programs send the next request within SPIN_SECONDS of a reply, and polling
 * saves two processors the time to sleep and to wake up. On a busy machine polling takes time
 * from other programs: after FAILED_SPINS polls without a request, a thread does not poll for
 * its next SPINS_SKIPPED requests. */
static int wait_for_request(void)
{
    enum { FAILED_SPINS = 4, SPINS_SKIPPED = 16 };
    static _Thread_local int failed;
    struct epoll_event event;
    int ready = 0;
    if (failed < FAILED_SPINS) {
        double end = limefs_clock_seconds() + SPIN_SECONDS;
        while (ready == 0 && limefs_clock_seconds() < end)
            ready = epoll_wait(epoll_fd, &event, 1, 0);
    }
    failed = ready || failed == FAILED_SPINS + SPINS_SKIPPED - 1 ? 0 : failed + 1;
    return ready ? ready : epoll_wait(epoll_fd, &event, 1, -1);
}

static ssize_t read_request(int fd, void *buf, size_t n, void *userdata)
{
    struct limefs *fs = userdata;
    if (wait_for_request() < 0)
        return -1;
    ssize_t got = read(fd, buf, n);
    int err = errno;
    arm_wakeup(fs->session, EPOLL_CTL_MOD);
    errno = err;
    if (got > 0 && state == INIT_EXPECTED)
        choose_init_flags(fs, buf, (size_t)got);
    return got;
}

static ssize_t write_reply(int fd, struct iovec *iov, int count, void *userdata)
{
    (void)userdata;
    if (state == REPLY_EXPECTED)
        add_init_flags(iov, count);
    return writev(fd, iov, count);
}

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)

/* Called once for each thread: opens /dev/fuse again, as libfuse does by default. */
static int clone_device(int master)
{
    uint32_t fd = (uint32_t)master;
    int clone = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (clone >= 0 && ioctl(clone, FUSE_DEV_IOC_CLONE, &fd) != 0) {
        close(clone);
        clone = -1;
    }
    return clone;
}

static int set_custom_io(struct fuse_session *session, struct fuse_custom_io *io)
{
    io->clone_fd = clone_device;
    return fuse_session_custom_io_317(session, io, sizeof *io, fuse_session_fd(session));
}

#else

static int set_custom_io(struct fuse_session *session, struct fuse_custom_io *io)
{
    return fuse_session_custom_io(session, io, fuse_session_fd(session));
}

#endif

int limefs_session_setup(struct fuse_session *session)
{
    struct fuse_custom_io io = {.writev = write_reply, .read = read_request};
    state = INIT_EXPECTED;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        return -errno;
    int err = arm_wakeup(session, EPOLL_CTL_ADD);
    return err ? err : set_custom_io(session, &io);
}

#else

int limefs_session_setup(struct fuse_session *session)
{
    (void)session;
    return 0;
}

#endif
