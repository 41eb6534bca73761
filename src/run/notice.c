/*
 * notice.c - the kernel tells when a container or a descriptor is no longer what it was, so
 * that nobody has to ask it at each read.
 *
 * The container and the record are watched (inotify), and a request of io_uring waits for what
 * is told. Whoever opens the container for writing has told it before he has the descriptor:
 * the kernel then marks in the ring's memory that there is work to do (IORING_SQ_TASKRUN), and
 * does no more until it is asked (IORING_SETUP_DEFER_TASKRUN), so that no call of the program
 * is interrupted. After a read, one look at that memory tells what two system calls would. The
 * same holds of the record's last descriptor, when it is closed in a way that nobody here sees.
 *
 * The ring and the watches live by the memory that is mapped; no descriptor is left open for
 * them. What was told once needs new ones.
 *
 * Not for threads: one may open what another has closed before that is told. Not after fork():
 * the child has the descriptors too, and none of ours is the last. Not if somebody has the
 * container open for writing already, which the kernel tells its owner alone.
 */
#define _GNU_SOURCE
#include "run.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

enum {
    SLOTS = 8,            /* records at once */
    LOOKS_MOST = 1 << 20, /* before it is tried again */

    /* Of Linux: all ways to open a file are told. */
    MAJOR = 6,
    MINOR = 12,
};

struct slot {
    _Atomic(struct limefs_run_record *) of; /* whose it is; NULL: free */
    atomic_bool guards;                     /* and what it found is relied on */
    char *ring;                             /* NULL: none */
    const unsigned *flags;                  /* in it: not 0 if something was told */
};

/* The kernel clears it in a child that fork() makes. */
struct page {
    atomic_bool usable, busy;
    atomic_uint stops;
    struct slot slot[SLOTS];
};

static struct page *page;
static size_t page_bytes;
static int seccomp; /* when the program began */

/* ---- rings ---- */

static void end_ring(struct slot *slot)
{
    slot->flags = NULL;
    if (slot->ring)
        munmap(slot->ring, page_bytes);
    slot->ring = NULL;
}

static void *map(int ring, off_t what)
{
    void *memory = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, what);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Of one request, it is smaller than a page. What is watched becomes the ring's own file, as
 * that is closed by the kernel's threads, and not by this one: to end an inotify takes 15 ms.
 */
static bool submit(int ring, const struct io_uring_params *params, int told, struct slot *slot)
{
    slot->ring = map(ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *request = map(ring, IORING_OFF_SQES);
    bool ready = slot->ring && request &&
                 syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &told, 1) == 0;
    if (ready) {
        *request = (struct io_uring_sqe){
            .opcode = IORING_OP_POLL_ADD, .flags = IOSQE_FIXED_FILE, .poll32_events = POLLIN};
        *(unsigned *)(slot->ring + params->sq_off.array) = 0;
        __atomic_store_n((unsigned *)(slot->ring + params->sq_off.tail), 1, __ATOMIC_RELEASE);
        slot->flags = (const unsigned *)(slot->ring + params->sq_off.flags);
    }
    if (request)
        munmap(request, page_bytes);
    return ready && syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1 &&
           __atomic_load_n((unsigned *)(slot->ring + params->cq_off.tail), __ATOMIC_ACQUIRE) ==
               0;
}

static bool wait_for(int told, struct slot *slot)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                              IORING_SETUP_DEFER_TASKRUN |
                                              IORING_SETUP_TASKRUN_FLAG};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
    if (ring < 0)
        return false;
    bool waits = submit(ring, &params, told, slot);
    limefs_run_real()->close(ring);
    return waits;
}

/* ---- what is watched ---- */

static bool watch(int told, int fd, uint32_t events)
{
    char path[sizeof "/proc/self/fd/" + 3 * sizeof fd] = "/proc/self/fd/",
                                                   digits[3 * sizeof fd];
    size_t n = 0, len = strlen(path);
    do
        digits[n++] = (char)('0' + fd % 10);
    while ((fd /= 10) > 0);
    while (n > 0)
        path[len++] = digits[--n];
    return inotify_add_watch(told, path, events) >= 0;
}

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
 * waits for its end; the signal to us is one that is ignored where nobody wants it. */
static bool nobody_writes(int container)
{
    const struct limefs_run_real *real = limefs_run_real();
    if (real->fcntl(container, F_SETSIG, SIGURG) != 0 ||
        real->fcntl(container, F_SETLEASE, F_RDLCK) != 0)
        return false;
    return real->fcntl(container, F_SETLEASE, F_UNLCK) == 0;
}

/* First the watches, then a look at what they are to guard. */
static bool guard(int fd, struct limefs_run_record *record, struct slot *slot)
{
    int container = atomic_load(&record->container);
    int told = tells(container) ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
    if (told < 0)
        return false;
    bool good =
        watch(told, container, IN_OPEN | IN_CLOSE | IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF) &&
        watch(told, fd, IN_CLOSE) && wait_for(told, slot) && nobody_writes(container);
    limefs_run_real()->close(told);
    return good && limefs_run_is(fd, record) && limefs_run_is_unchanged(record);
}

/* ---- for reads ---- */

bool limefs_run_notice_holds(const struct limefs_run_record *record)
{
    int number = atomic_load_explicit(&record->notice, memory_order_relaxed);
    if (number == 0 || !__libc_single_threaded)
        return false;
    const struct slot *slot = &page->slot[number - 1];
    return slot->flags && __atomic_load_n(slot->flags, __ATOMIC_ACQUIRE) == 0 &&
           atomic_load(&slot->guards) && atomic_load(&slot->of) == record;
}

static struct slot *slot_of(struct limefs_run_record *record)
{
    int number = atomic_load(&record->notice);
    for (int i = 0; i < SLOTS && number == 0; i++) {
        struct limefs_run_record *nobody = NULL;
        if (atomic_compare_exchange_strong(&page->slot[i].of, &nobody, record))
            number = i + 1;
    }
    atomic_store(&record->notice, number);
    return number ? &page->slot[number - 1] : NULL;
}

/* A program that has put itself into a filter since may be ended for calls that it does not
 * make itself. */
static bool may_try(const struct limefs_run_record *record)
{
    return limefs_run_is_alone(record) && limefs_run_is_ours() &&
           prctl(PR_GET_SECCOMP) == seccomp;
}

static bool try_now(int fd, struct limefs_run_record *record)
{
    struct slot *slot = may_try(record) ? slot_of(record) : NULL;
    if (!slot)
        return false;
    unsigned stops = atomic_load(&page->stops);
    atomic_store(&slot->guards, false);
    end_ring(slot);
    atomic_store(&slot->guards, guard(fd, record, slot));
    if (atomic_load(&page->stops) != stops) /* by a handler of a signal */
        atomic_store(&slot->guards, false);
    return limefs_run_notice_holds(record);
}

bool limefs_run_notice_try(int fd, struct limefs_run_record *record)
{
    if (!page || !atomic_load(&page->usable) || !__libc_single_threaded)
        return false;
    unsigned looks = atomic_load_explicit(&record->looks, memory_order_relaxed) + 1;
    unsigned due = atomic_load_explicit(&record->looks_due, memory_order_relaxed);
    atomic_store_explicit(&record->looks, looks < due ? looks : 0, memory_order_relaxed);
    if (looks < due)
        return false;
    if (due < LOOKS_MOST) /* it does not help for long */
        atomic_store_explicit(&record->looks_due, 2 * due, memory_order_relaxed);
    if (atomic_exchange(&page->busy, true))
        return false;
    bool holds = try_now(fd, record);
    atomic_store(&page->busy, false);
    return holds;
}

void limefs_run_notice_stop(void)
{
    if (page)
        atomic_fetch_add(&page->stops, 1);
    for (int i = 0; page && i < SLOTS; i++)
        atomic_store(&page->slot[i].guards, false);
}

void limefs_run_notice_end(struct limefs_run_record *record)
{
    int number = atomic_exchange(&record->notice, 0);
    if (number == 0)
        return;
    struct slot *slot = &page->slot[number - 1];
    atomic_store(&slot->guards, false);
    end_ring(slot);
    atomic_store(&slot->of, NULL);
}

static void forked(void)
{
    atomic_store(&page->usable, false);
    limefs_run_notice_stop();
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
    seccomp = prctl(PR_GET_SECCOMP);
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (!kernel_tells())
        return;
    void *memory =
        mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, page_bytes, MADV_WIPEONFORK) != 0 ||
        pthread_atfork(NULL, forked, NULL) != 0)
        return;
    page = memory;
    atomic_store(&page->usable, true);
}
