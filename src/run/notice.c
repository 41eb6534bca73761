/*
 * notice.c - the kernel tells when a container is no longer what it was, so that nobody has to
 * look at it after each read.
 *
 * The container is watched (fanotify), and a request of io_uring waits for what is told.
 * Whoever opens the container for writing has told it before he has the descriptor: the kernel
 * then marks our ring, in our memory, and a look at that tells what a system call would.
 * Nothing is done in this process for it (IORING_SETUP_DEFER_TASKRUN): it would end
 * epoll_wait(2) and others of the program's with EINTR.
 *
 * If the record is large, the mount opens the container when a descriptor of it is closed
 * (LIMEFILE_CLOSING), which is told likewise; so no other file comes to the descriptor's number
 * unseen. Else the record's open file gets a mark (marks.c), and to ask for that takes a
 * quarter of what statx does, which asks for all that is known.
 *
 * The ring and the watch live by the memory that is mapped; no descriptor is left open for
 * them. What was told once needs new ones.
 *
 * Not for threads: one may end a ring at which another looks. Not in who has made a child
 * (calls_child.c): it has our descriptor of the container too, and it is not told when ours is
 * closed. Not if somebody has the container open for writing already, which the kernel tells
 * its owner alone.
 *
 * Two are not told in time. truncate(2) by a path is told when it is done: see
 * limefs_run_told_nothing(). Who listens as root by fanotify(7) has descriptors whose writes
 * are told to nobody.
 */
#define _GNU_SOURCE
#include "told.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

enum {
    SLOTS = LIMEFS_RUN_SLOTS,
    LOOKS = 64,           /* of a record, before it pays to be told; twice as many each time, */
    LOOKS_MOST = 1 << 20, /* and no more */

    STACK = 1 << 14,

    /* Of Linux: all ways to open a file are told. */
    MAJOR = 6,
    MINOR = 12,
};

static size_t page_bytes;
static void *places[SLOTS]; /* of the rings; a child has these still */

/* ---- rings ---- */

static void end_ring(struct limefs_run_slot *slot)
{
    slot->told = NULL;
    if (slot->ring)
        munmap(slot->ring, page_bytes);
    slot->ring = places[slot - limefs_run_told.page->slot] = NULL;
}

static void *map(int ring, off_t what)
{
    void *memory = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, what);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Of one request, it is smaller than a page. What is watched becomes the ring's own file, as
 * that is closed by the kernel's threads, and not by this one: to end a watch takes 15 ms. A
 * child gets none of it, which would live on there. */
static bool submit(int ring, const struct io_uring_params *params, int told,
                   struct limefs_run_slot *slot)
{
    slot->ring = places[slot - limefs_run_told.page->slot] = map(ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *request = map(ring, IORING_OFF_SQES);
    bool ready = slot->ring && request && madvise(slot->ring, page_bytes, MADV_DONTFORK) == 0 &&
                 syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &told, 1) == 0;
    if (ready) {
        *request = (struct io_uring_sqe){
            .opcode = IORING_OP_POLL_ADD, .flags = IOSQE_FIXED_FILE, .poll32_events = POLLIN};
        *(unsigned *)(slot->ring + params->sq_off.array) = 0;
        __atomic_store_n((unsigned *)(slot->ring + params->sq_off.tail), 1, __ATOMIC_RELEASE);
    }
    if (request)
        munmap(request, page_bytes);
    if (!ready || syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) != 1 ||
        *(const unsigned *)(slot->ring + params->cq_off.tail) != 0) /* told already */
        return false;
    slot->told = (const unsigned *)(slot->ring + params->sq_off.flags);
    return true;
}

struct waiting {
    int told;
    struct limefs_run_slot *slot;
    bool done;
};

static int wait_for(void *of)
{
    struct waiting *waiting = of;
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                              IORING_SETUP_DEFER_TASKRUN |
                                              IORING_SETUP_TASKRUN_FLAG};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
    if (ring >= 0) {
        waiting->done = submit(ring, &params, waiting->told, waiting->slot);
        syscall(SYS_close, ring);
    }
    return 0;
}

/* By a child, which shares all that matters and ends before this goes on: the kernel interrupts
 * who has made a ring when that ends, too. It sends no signal, and only we find it. */
static bool have_it_wait(int told, struct limefs_run_slot *slot)
{
    static _Alignas(16) char stack[STACK];
    struct waiting waiting = {.told = told, .slot = slot};
    int pid = limefs_run_real()->clone(wait_for, stack + sizeof stack,
                                       CLONE_VM | CLONE_FS | CLONE_FILES, &waiting);
    return pid > 0 && syscall(SYS_wait4, pid, NULL, __WALL, NULL) == pid && waiting.done;
}

/* ---- what is watched ---- */

/* Of others the changes that other hosts make are not told, or none. */
static bool tells(int container)
{
    struct statfs fs;
    if (fstatfs(container, &fs) != 0)
        return false;
    return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
           fs.f_type == BTRFS_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC;
}

/* The kernel gives no lease on a file that is open for writing. Who opens it in this moment
 * waits for its end. */
static bool nobody_writes(int container)
{
    const struct limefs_run_real *real = limefs_run_real();
    if (real->fcntl(container, F_SETSIG, SIGURG) != 0 ||
        real->fcntl(container, F_SETLEASE, F_RDLCK) != 0)
        return false;
    return real->fcntl(container, F_SETLEASE, F_UNLCK) == 0;
}

/* Of the mount, which may have the container opened for it. */
static bool tells_closing(int fd, const struct limefs_run_record *record)
{
    const struct limefile_closing container = {record->state.dev, record->state.ino};
    return syscall(SYS_ioctl, fd, LIMEFILE_CLOSING, &container) == LIMEFILE_CLOSING_ASKED;
}

/* First the watch, then a look at what it is to guard. The mount is asked before it, too, as it
 * opens the container when it is asked first, which the watch would tell. */
static bool guard(int fd, const struct limefs_run_record *record, struct limefs_run_slot *slot)
{
    int container = atomic_load(&record->container);
    int told = tells(container)
                   ? fanotify_init(FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID, O_RDONLY)
                   : -1;
    if (told < 0)
        return false;
    tells_closing(fd, record);
    bool good = fanotify_mark(told, FAN_MARK_ADD,
                              FAN_OPEN | FAN_CLOSE | FAN_MODIFY | FAN_ATTRIB | FAN_MOVE_SELF,
                              container, NULL) == 0 &&
                have_it_wait(told, slot) && nobody_writes(container);
    limefs_run_real()->close(told);
    slot->closing = good && tells_closing(fd, record);
    good = good && (slot->closing || limefs_run_mark(fd, &slot->mark));
    return good && limefs_run_is(fd, record) && limefs_run_is_unchanged(record);
}

/* ---- for reads ---- */

static void free_slot(struct limefs_run_slot *slot)
{
    end_ring(slot);
    atomic_store(&slot->left, false);
    atomic_store(&slot->taken, false);
}

/* Its own, or a free one; nobody looks at those that were left. */
static struct limefs_run_slot *slot_of(struct limefs_run_record *record)
{
    for (int i = 0; i < SLOTS; i++)
        if (atomic_load(&limefs_run_told.page->slot[i].left))
            free_slot(&limefs_run_told.page->slot[i]);
    int number = atomic_load(&record->notice);
    for (int i = 0; i < SLOTS && number == 0; i++)
        if (!atomic_exchange(&limefs_run_told.page->slot[i].taken, true))
            number = i + 1;
    atomic_store(&record->notice, number);
    return number ? &limefs_run_told.page->slot[number - 1] : NULL;
}

/* Who opens the container while we have the lease sends us a signal. It is ignored where it is
 * neither handled nor waited for. */
static bool ignores_it(const sigset_t *blocked)
{
    struct sigaction action;
    return !sigismember(blocked, SIGURG) && sigaction(SIGURG, NULL, &action) == 0 &&
           !(action.sa_flags & SA_SIGINFO) &&
           (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

static volatile bool filtered; /* or may be */

/* Under a filter a program may be ended for calls that it does not make itself. A handler of a
 * signal that came in the middle of a read ends no ring at which that looks. */
static bool may_try(const struct limefs_run_record *record)
{
    return !filtered && !limefs_run_told.looking && limefs_run_is_alone(record) &&
           limefs_run_is_ours() && prctl(PR_GET_SECCOMP) == 0;
}

static void try_now(int fd, struct limefs_run_record *record)
{
    struct limefs_run_slot *slot = slot_of(record);
    if (!slot)
        return;
    atomic_store(&slot->guards, false);
    end_ring(slot);
    atomic_store(&slot->guards, guard(fd, record, slot));
}

/* With no signals: a handler that jumps away would leave descriptors open. */
static void try_quietly(int fd, struct limefs_run_record *record)
{
    struct limefs_run_quiet quiet;
    limefs_run_quiet_begin(&quiet);
    if (atomic_load(&limefs_run_told.page->usable) &&
        ignores_it(&quiet.signals)) /* no child since */
        try_now(fd, record);
    limefs_run_quiet_end(&quiet);
}

void limefs_run_notice_try(int fd, struct limefs_run_record *record)
{
    if (!limefs_run_told.page || !atomic_load(&limefs_run_told.page->usable) ||
        !__libc_single_threaded)
        return;
    unsigned looks = atomic_load_explicit(&record->looks, memory_order_relaxed) + 1;
    unsigned due = LOOKS << atomic_load_explicit(&record->tries, memory_order_relaxed);
    atomic_store_explicit(&record->looks, looks < due ? looks : 0, memory_order_relaxed);
    if (looks < due)
        return;
    if (due < LOOKS_MOST) /* it does not help for long */
        atomic_fetch_add_explicit(&record->tries, 1, memory_order_relaxed);
    if (may_try(record))
        try_quietly(fd, record);
}

void limefs_run_notice_stop(void)
{
    for (int i = 0; limefs_run_told.page && i < SLOTS; i++)
        atomic_store(&limefs_run_told.page->slot[i].guards, false);
}

void limefs_run_notice_end(struct limefs_run_record *record)
{
    int number = atomic_exchange(&record->notice, 0);
    if (number == 0)
        return;
    struct limefs_run_slot *slot = &limefs_run_told.page->slot[number - 1];
    atomic_store(&slot->guards, false);
    if (limefs_run_told.looking)
        atomic_store(&slot->left, true);
    else
        free_slot(slot);
}

void limefs_run_notice_try_no_more(void)
{
    filtered = true;
}

void limefs_run_notice_no_more(void)
{
    if (limefs_run_told.page)
        atomic_store(&limefs_run_told.page->usable, false);
    limefs_run_notice_stop();
}

/* A handler of a signal that forks comes in the middle of a look, which goes on in the child,
 * too: it finds that nothing is relied on there. */
void limefs_run_notice_in_child(void)
{
    int kept = errno;
    for (int i = 0; i < SLOTS; i++)
        if (places[i])
            mmap(places[i], page_bytes, PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    errno = kept;
}

static bool kernel_tells(void)
{
    struct utsname name;
    char *after;
    if (uname(&name) != 0)
        return false;
    unsigned long major = strtoul(name.release, &after, 10);
    unsigned long minor = *after == '.' ? strtoul(after + 1, NULL, 10) : 0;
    return major > MAJOR || (major == MAJOR && minor >= MINOR);
}

void limefs_run_notice_begin(void)
{
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (!LIMEFS_RUN_SEES_VFORK || !kernel_tells())
        return;
    void *memory =
        mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, page_bytes, MADV_WIPEONFORK) != 0 ||
        pthread_atfork(limefs_run_notice_no_more, NULL, limefs_run_notice_in_child) != 0)
        return;
    limefs_run_told.page = memory;
    atomic_store(&limefs_run_told.page->usable, true);
}
