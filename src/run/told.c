/*
 * told.c - a read of a record of which the kernel tells, by a program without threads
 *
 * Nothing need be held: only a handler of a signal can come in between, and what that has done
 * shows.
 */
#define _GNU_SOURCE
#include "told.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

struct limefs_run_told limefs_run_told;

/* Without libc's function, which is in no cache; errno stays. What is returned is n, or it was
 * not all read. */
static inline ssize_t pread_bare(int fd, void *buf, size_t n, uint64_t at)
{
#ifdef __x86_64__
    ssize_t got;
    register uint64_t place __asm__("r10") = at;
    __asm__ volatile("syscall"
                     : "=a"(got)
                     : "0"(SYS_pread64), "D"(fd), "S"(buf), "d"(n), "r"(place)
                     : "rcx", "r11", "memory");
    return got;
#else
    int kept = errno;
    ssize_t got = syscall(SYS_pread64, fd, buf, n, at);
    errno = kept;
    return got;
#endif
}

/* Inline here, a function for reads at the position. */
static inline bool take(int fd, uint64_t entry, const struct limefs_run_record *record,
                        void *buf, size_t n, off_t at)
{
    int container = atomic_load_explicit(&record->container, memory_order_relaxed);
    uint64_t place = record->offset + (uint64_t)at - record->head;
    return pread_bare(container, buf, n, place) == (ssize_t)n &&
           (limefs_run_told_nothing(record, buf, n, place) ||
            limefs_run_is_unchanged(record)) &&
           limefs_run_entry(fd) == entry;
}

bool limefs_run_take_told(int fd, uint64_t entry, const struct limefs_run_record *record,
                          void *buf, size_t n, off_t at)
{
    return take(fd, entry, record, buf, n, at);
}

bool limefs_run_pread_told(int fd, void *buf, size_t n, off_t at)
{
    uint64_t entry = limefs_run_entry(fd);
    const struct limefs_run_record *record = limefs_run_peek(entry);
    if (!record || !limefs_run_may_be_told(record) || !limefs_run_is_inside(record, at, n))
        return false;
    limefs_run_may_be_cancelled();
    bool before = limefs_run_look_at_told(true);
    bool done = limefs_run_told_is(fd, record) && take(fd, entry, record, buf, n, at);
    limefs_run_look_at_told(before);
    if (done)
        limefs_run_told.bytes += n;
    return done;
}
