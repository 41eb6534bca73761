/*
 * position.c - the kernel's position of a record, in programs with threads
 *
 * Another thread may make the record's number another file between any two system calls of a
 * read. So the position is not moved by that number, but by a descriptor of our own, which
 * shares the open file and is no concern of the program's. It is made by the first such read of
 * a record, and closed with it.
 *
 * Without threads there is none: only a handler of a signal comes in between then, and the read
 * goes on after it.
 */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

#ifndef F_DUPFD_QUERY /* Linux 6.10 */
#define F_DUPFD_QUERY 1027
#endif

enum {
    NONE = LIMEFS_RUN_NO_POSITION,
    MAKING = NONE - 1, /* somebody else is about to */
};

/* They share an open file. Where the kernel does not tell, the record is enough. */
static bool are_one(int fd, int own, const struct limefs_run_record *record)
{
    long same = syscall(SYS_fcntl, fd, F_DUPFD_QUERY, own);
    return same < 0 && errno == EINVAL ? limefs_run_is(fd, record) : same == 1;
}

/* As long as fd has the entry, what is duplicated is the record's open file: it is forgotten
 * before it becomes another one. */
static int duplicate(int fd, const struct limefs_run_record *record)
{
    uint64_t entry = limefs_run_entry(fd);
    if (limefs_run_peek(entry) != record || !limefs_run_is(fd, record))
        return NONE;
    int own = limefs_run_copy_out_of_the_way(fd);
    if (own < 0)
        return NONE;
    if (limefs_run_entry(fd) == entry && limefs_run_is(own, record)) {
        limefs_run_note_own(own, true);
        return own;
    }
    limefs_run_real()->close(own);
    return NONE;
}

/* One thread does, and the others leave the read to the mount meanwhile: who came too late
 * would have to close his, and with it all locks of the program's on the record. With no
 * signals: a handler that jumps away would leave it open. */
static int make(int fd, struct limefs_run_record *record)
{
    struct limefs_run_quiet quiet;
    int own = NONE;
    limefs_run_quiet_begin(&quiet);
    if (limefs_run_is_ours() && atomic_compare_exchange_strong(&record->own, &own, MAKING)) {
        own = duplicate(fd, record);
        atomic_store(&record->own, own);
    }
    limefs_run_quiet_end(&quiet);
    return own;
}

int limefs_run_position(int fd, struct limefs_run_record *record)
{
    if (__libc_single_threaded)
        return limefs_run_is(fd, record) ? fd : -1;
    int own = atomic_load(&record->own);
    if (own == NONE)
        own = make(fd, record);
    return own >= 0 && limefs_run_is(own, record) && are_one(fd, own, record) ? own : -1;
}
