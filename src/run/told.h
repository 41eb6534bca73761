/*
 * told.h - the looks at a record of which the kernel tells (notice.c)
 *
 * Inline, and few: after a system call little of a program is left in the nearest caches, and
 * one that reads 4 KiB takes a microsecond.
 */
#ifndef LIMEFS_RUN_TOLD_H
#define LIMEFS_RUN_TOLD_H

#include "run.h"

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

enum {
    LIMEFS_RUN_MOST = 0x7ffff000,     /* bytes that the kernel moves at once */
    LIMEFS_RUN_SLOTS = 8,             /* records at once */
    LIMEFS_RUN_COVERS_MOST = 1 << 16, /* bytes; beside more, a look takes no time */
    LIMEFS_RUN_PAGE = 4096,           /* of other systems, a multiple */
};

struct limefs_run_slot {
    atomic_bool taken;    /* by a record, which has its number, */
    atomic_bool guards;   /* and what it found is relied on */
    atomic_bool left;     /* the record is gone, its ring is not: somebody was looking at it */
    bool closing;         /* it is told when a descriptor of the record is closed; else */
    int mark;             /* of its open file; 0: none yet */
    char *ring;           /* NULL: none */
    const unsigned *told; /* in it: 0 as long as nothing was told */
};

/* The kernel clears it in a child that fork() makes. */
struct limefs_run_page {
    atomic_bool usable;
    struct limefs_run_slot slot[LIMEFS_RUN_SLOTS];
};

extern struct limefs_run_told {
    struct limefs_run_page *page;
    volatile bool looking; /* a read looks at rings of records that it does not hold */
    uint64_t bytes;        /* that were read so */
} limefs_run_told;

/* Somebody may tell of it, and it is read from the container. */
static inline bool limefs_run_may_be_told(const struct limefs_run_record *record)
{
    return __libc_single_threaded &&
           atomic_load_explicit(&record->notice, memory_order_relaxed) != 0 &&
           !atomic_load_explicit(&record->changed, memory_order_relaxed);
}

/* As much as the kernel moves at once, and not nothing. */
static inline bool limefs_run_is_inside(const struct limefs_run_record *record, off_t at,
                                        size_t n)
{
    uint64_t from = (uint64_t)at - record->head;
    return at >= (off_t)record->head && from < record->bytes && n <= record->bytes - from &&
           n > 0 && n <= LIMEFS_RUN_MOST;
}

/* Whose slot nothing was told in since a look found the container as it was; NULL: none. All is
 * looked up once: a handler of a signal may change it in between. */
static inline const struct limefs_run_slot *limefs_run_holding(
    const struct limefs_run_record *record)
{
    int number = atomic_load_explicit(&record->notice, memory_order_relaxed);
    if (number == 0 || !__libc_single_threaded)
        return NULL;
    const struct limefs_run_slot *slot = &limefs_run_told.page->slot[number - 1];
    const unsigned *told = __atomic_load_n(&slot->told, __ATOMIC_RELAXED);
    bool holds = told && __atomic_load_n(told, __ATOMIC_ACQUIRE) == 0;
    return holds && atomic_load(&slot->guards) ? slot : NULL;
}

/* And fd still is the record. False: perhaps. */
static inline bool limefs_run_told_is(int fd, const struct limefs_run_record *record)
{
    const struct limefs_run_slot *slot = limefs_run_holding(record);
    return slot && (slot->closing || limefs_run_has_mark(fd, slot->mark));
}

/* Around a look at a record that is not held: a handler of a signal that comes meanwhile, and
 * closes it, leaves what is looked at. What was said before, to be said again afterwards. Who
 * jumps out of it is not told any more. */
static inline bool limefs_run_look_at_told(bool looks)
{
    bool before = limefs_run_told.looking;
    atomic_signal_fence(memory_order_seq_cst);
    limefs_run_told.looking = looks;
    atomic_signal_fence(memory_order_seq_cst);
    return before;
}

/* These bytes, read from there in the container, are what they were, as nothing was told. A
 * truncate() by a path in the middle of it, which is told of too late, has made zeros of all
 * bytes up to the end of a page. */
static inline bool limefs_run_told_nothing(const struct limefs_run_record *record,
                                           const char *bytes, size_t n, uint64_t at)
{
    if (n == 0 || n > LIMEFS_RUN_COVERS_MOST || !limefs_run_holding(record))
        return false;
    for (size_t end = LIMEFS_RUN_PAGE - at % LIMEFS_RUN_PAGE; end < n; end += LIMEFS_RUN_PAGE)
        if (bytes[end - 1] == 0)
            return false;
    return bytes[n - 1] != 0;
}

#endif
