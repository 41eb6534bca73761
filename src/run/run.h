/*
 * run.h - liblimefs-run.so: reads of records in limefs mounts go round FUSE.
 *
 * The library is preloaded into programs that know nothing of it. Everything here may be called
 * by handlers of signals, between fork and exec, and by any number of threads at once: no
 * locks, no memory but static one; errno stays as it is unless a call says otherwise.
 *
 * What is known of a descriptor is a hint. Programs close descriptors in ways that nobody sees
 * (system calls of their own, libc's inside, children of vfork()); so each read asks the kernel
 * whether the descriptor still is the record, and afterwards whether the container is as it
 * was. The record's descriptor stays the mount's, with the kernel's file position: a process
 * that gets it by dup(), fork(), exec() or a socket goes on where it is.
 */
#ifndef LIMEFS_RUN_H
#define LIMEFS_RUN_H

#include "limerange.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

_Static_assert(sizeof(off_t) == 8, "one function has both names, as pread and pread64");

/* ---- real.c: the functions that ours stand before ---- */

struct limefs_run_real {
    int (*open)(const char *, int, ...), (*open_2)(const char *, int);
    int (*openat)(int, const char *, int, ...), (*openat_2)(int, const char *, int);
    int (*close)(int), (*close_range)(unsigned, unsigned, int);
    void (*closefrom)(int);
    int (*dup)(int), (*dup2)(int, int), (*dup3)(int, int, int);
    int (*fcntl)(int, int, ...);
    ssize_t (*read)(int, void *, size_t), (*pread)(int, void *, size_t, off_t);
    ssize_t (*read_chk)(int, void *, size_t, size_t);
    ssize_t (*pread_chk)(int, void *, size_t, off_t, size_t);
    ssize_t (*readv)(int, const struct iovec *, int);
    ssize_t (*preadv)(int, const struct iovec *, int, off_t);
    ssize_t (*preadv2)(int, const struct iovec *, int, off_t, int);
    int (*fclose)(FILE *);
    FILE *(*freopen)(const char *, const char *, FILE *);
};

const struct limefs_run_real *limefs_run_real(void);

/* As read() of libc is a point of cancellation. Others, within, must be none: what was taken
 * would not be given back. */
void limefs_run_may_be_cancelled(void);
int limefs_run_cancel_off(void);
void limefs_run_cancel_back(int before);

/* Without signals that a handler could jump away by, and without cancellation. */
struct limefs_run_quiet {
    sigset_t signals;
    int cancel;
};
void limefs_run_quiet_begin(struct limefs_run_quiet *);
void limefs_run_quiet_end(const struct limefs_run_quiet *);

/* ---- table.c: which descriptor is which record ---- */

/* A record that is open, for all descriptors that share it. */
struct limefs_run_record {
    uint64_t dev, ino; /* as the mount shows it */
    uint64_t mount;    /* its number, never used again; 0: the kernel has none */
    struct limefile_identity identity; /* of the container, for as long as it is read */
    uint64_t offset, bytes;            /* in the container */
    uint64_t head;                     /* bytes of the mount's own before them */
    bool tail;                         /* and there are such behind them */
    atomic_int container;              /* our own descriptor of it; -1: taken from us */
    atomic_int own;                    /* our descriptor of its open file, if any (bytes.c) */
    atomic_bool changed;               /* it is left to the mount for good */
    _Atomic uint64_t life;             /* table.c */
};

enum {
    LIMEFS_RUN_FDS = 1 << 16, /* higher ones are left to the mount */
    LIMEFS_RUN_RECORDS = 1 << 10,
    LIMEFS_RUN_PER_RECORD = 1 << 2, /* those of records are multiples of it, less 1 */
    LIMEFS_RUN_NO_POSITION = -1,
};
extern _Atomic uint64_t limefs_run_entries[LIMEFS_RUN_FDS];
extern struct limefs_run_record limefs_run_records[LIMEFS_RUN_RECORDS];

/* 0: nothing is known of it. */
static inline uint64_t limefs_run_entry(int fd)
{
    return fd >= 0 && fd < LIMEFS_RUN_FDS
               ? atomic_load_explicit(&limefs_run_entries[fd], memory_order_acquire)
               : 0;
}

/* What fd is, as the kernel knows without a question to the daemon; and the number of the mount
 * that it is in, which is never used again; 0: the kernel has none. */
struct statx;
bool limefs_run_stat(int fd, struct statx *);
uint64_t limefs_run_mount_number(const struct statx *);

/* fd still is the record. */
bool limefs_run_is(int fd, const struct limefs_run_record *);

/* Before any other, and never by two threads at once. */
void limefs_run_table_begin(void);

/* False in a child that shares our memory, but not our descriptors. */
bool limefs_run_is_ours(void);

/* A descriptor of a file in a limefs mount, as far as is known. */
static inline bool limefs_run_is_known(int fd)
{
    return limefs_run_entry(fd) != 0;
}

/* What it is open on, to be let go; NULL: it is read by the mount, or not of one. */
struct limefs_run_record *limefs_run_hold(int fd);
void limefs_run_let_go(struct limefs_run_record *);

/* The same of an entry, without being held: it may become another record at any time. */
static inline struct limefs_run_record *limefs_run_peek(uint64_t entry)
{
    return entry % LIMEFS_RUN_PER_RECORD == LIMEFS_RUN_PER_RECORD - 1
               ? &limefs_run_records[entry / LIMEFS_RUN_PER_RECORD % LIMEFS_RUN_RECORDS]
               : NULL;
}

/* From now on, fd is this record, or (NULL) one that is read by the mount. `container` is taken
 * over, also if there is no room. False: not noted. */
bool limefs_run_note(int fd, const struct limefs_run_record *, int container);

/* fd is what `of` is: it was duplicated. */
void limefs_run_note_same(int fd, int of);

/* From now on what fd is open on is read by the mount, by all descriptors that share it. */
void limefs_run_leave(int fd);

/* fd was closed, or is about to be. */
void limefs_run_forget(int fd);
void limefs_run_forget_range(unsigned first, unsigned last);

/* A descriptor of ours, of which the program knows nothing and which it must not close; and one
 * of ours gives its number up to the program. */
bool limefs_run_is_own(int fd);
void limefs_run_give_up(int fd);

/* fd is one of ours, or no longer. */
void limefs_run_note_own(int fd, bool own);

/* Whether the program has enough left if we take one more. */
bool limefs_run_may_have_more(void);

/* A descriptor like fd, out of the program's way; in its place: closes fd. -1: none. */
int limefs_run_copy_out_of_the_way(int fd);
int limefs_run_out_of_the_way(int fd);

/* ---- ask.c: is it a record that can be read round the mount? ---- */

/* fd has just been opened with these flags, or is found open. */
void limefs_run_look(int fd, int flags);

/* ---- bytes.c: reads ---- */

struct limefs_run_got {
    ssize_t bytes; /* what the call returns */
    int error;     /* errno, if that is -1 */
    bool round;    /* the mount */
};

/* Whether it was read. If not, the call is to be made to the mount, and its result counted.
 * `at` < 0: where the descriptor is; `vector`: iov is the program's. */
bool limefs_run_read(int fd, const struct iovec *, int count, bool vector, off_t at,
                     struct limefs_run_got *);

/* How many bytes went which way, round the mount or through it, is printed at the program's end
 * (LIMEFS_RUN_REPORT). Returns `got`, the result of a read. */
ssize_t limefs_run_count(ssize_t got, bool round);
void limefs_run_report_begin(void);

/* For what stands before a function of libc's. */
#define EXPORTED __attribute__((visibility("default")))

#endif
