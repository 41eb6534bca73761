/*
 * run.h - liblimefs-run.so: if preloaded, it reads records in limefs mounts without FUSE.
 *
 * The programs do not know of the library, so its functions can be called in signal handlers,
 * between fork and exec, and in any number of threads at once. They take no locks, use only
 * static memory, and keep errno unless a comment says otherwise.
 *
 * The table of descriptors is a hint, because programs close descriptors unnoticed (with system
 * calls of their own, inside libc, in children of vfork()). So each read asks the kernel
 * whether the descriptor still refers to the record, and after the read whether the container
 * is unchanged. The program's descriptor and file position remain those of the mount's file: a
 * process that gets the descriptor by dup(), fork(), exec() or a socket continues there.
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

/* ---- libc_functions.c: the functions that the library overrides ---- */

struct limefs_run_libc {
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

const struct limefs_run_libc *limefs_run_libc(void);

/* A read is a cancellation point, as in libc, but only at its start: a thread that is cancelled
 * later would not release what it holds. */
void limefs_run_test_cancel(void);
int limefs_run_disable_cancel(void);
void limefs_run_restore_cancel(int before);

/* Between limefs_run_block_interrupts() and limefs_run_restore_interrupts() the thread is not
 * cancelled, and no signal handler, which might jump away, interrupts it. */
struct limefs_run_interrupts {
    sigset_t signals;
    int cancel;
};
void limefs_run_block_interrupts(struct limefs_run_interrupts *);
void limefs_run_restore_interrupts(const struct limefs_run_interrupts *);

/* ---- fd_table.c: which descriptor is which record ---- */

/* An open record, for all descriptors that share its open file. */
struct limefs_run_record {
    uint64_t dev, ino;                 /* of the file in the mount */
    uint64_t mount_id;                 /* the mount's unique id; 0: the kernel has none */
    struct limefile_identity identity; /* of the container while it is unchanged */
    uint64_t offset, bytes;            /* of the data in the container */
    uint64_t head;                     /* bytes before the data; only the mount has them */
    bool has_tail;                     /* the mount has bytes behind the data, too */
    atomic_int container_fd;           /* the library's; -1: the program has taken its number */
    atomic_int position_fd; /* the library's descriptor of the open file (read_record.c) */
    atomic_bool changed;    /* only the mount may read the record from now on */
    _Atomic uint64_t refs;  /* see fd_table.c */
};

enum {
    LIMEFS_RUN_FDS = 1 << 16, /* higher descriptors are read through the mount */
    LIMEFS_RUN_RECORDS = 1 << 10,
    LIMEFS_RUN_PER_RECORD = 1 << 2, /* a record's entry % PER_RECORD is PER_RECORD - 1 */
    LIMEFS_RUN_NO_POSITION = -1,
};
extern _Atomic uint64_t limefs_run_entries[LIMEFS_RUN_FDS];
extern struct limefs_run_record limefs_run_records[LIMEFS_RUN_RECORDS];

/* Returns the entry of fd; 0: nothing is known of fd. */
static inline uint64_t limefs_run_entry(int fd)
{
    return fd >= 0 && fd < LIMEFS_RUN_FDS
               ? atomic_load_explicit(&limefs_run_entries[fd], memory_order_acquire)
               : 0;
}

/* Get the attributes of fd that the kernel has without a request to the daemon; get from these
 * the mount's id, which no other mount ever has (0: the kernel does not provide it). */
struct statx;
bool limefs_run_stat(int fd, struct statx *);
uint64_t limefs_run_mount_id(const struct statx *);

/* Returns true if fd still refers to the record. */
bool limefs_run_is_record(int fd, const struct limefs_run_record *);

/* Call this before all other functions, and never by two threads at once. */
void limefs_run_table_init(void);

/* Returns false in a child that shares this memory, but not the descriptors. */
bool limefs_run_owns_table(void);

/* Returns true if fd is known as a file in a limefs mount. This is a hint. */
static inline bool limefs_run_is_known(int fd)
{
    return limefs_run_entry(fd) != 0;
}

/* Takes a reference to the record of fd. NULL: the library does not read fd itself. */
struct limefs_run_record *limefs_run_get_record(int fd);
void limefs_run_put_record(struct limefs_run_record *);

/* Returns an entry's record or NULL, without a reference: the record may change at any time. */
static inline struct limefs_run_record *limefs_run_entry_record(uint64_t entry)
{
    return entry % LIMEFS_RUN_PER_RECORD == LIMEFS_RUN_PER_RECORD - 1
               ? &limefs_run_records[entry / LIMEFS_RUN_PER_RECORD % LIMEFS_RUN_RECORDS]
               : NULL;
}

/* Notes that fd is this record, or (NULL) one to be read through the mount. Takes over the
 * descriptor `container` in any case. Returns false if nothing was noted. */
bool limefs_run_insert(int fd, const struct limefs_run_record *, int container);

/* Notes that fd is a duplicate of `of`. */
void limefs_run_copy_entry(int fd, int of);

/* Makes all descriptors that share the open file of fd read through the mount from now on. */
void limefs_run_read_by_mount(int fd);

/* Forget descriptors that were closed, or are about to be. */
void limefs_run_remove(int fd);
void limefs_run_remove_range(unsigned first, unsigned last);

/* Returns true for the library's descriptors, which the program does not know and must not
 * close. limefs_run_yield_fd() frees the number of such a descriptor for the program. */
bool limefs_run_is_library_fd(int fd);
void limefs_run_yield_fd(int fd);

/* Notes that fd is one of the library's descriptors, or (own false) no longer. */
void limefs_run_mark_library_fd(int fd, bool own);

/* Returns true if the program has enough descriptors left when the library takes one more. */
bool limefs_run_may_open_more(void);

/* Duplicate fd to a high number; limefs_run_move_high() closes fd, too. -1: failed. */
int limefs_run_dup_high(int fd);
int limefs_run_move_high(int fd);

/* ---- find_container.c: find out whether a record can be read without the mount ---- */

/* Notes in the table how to read fd, which was just opened with these flags or inherited. */
void limefs_run_examine(int fd, int flags);

/* ---- read_record.c: reads ---- */

struct limefs_run_result {
    ssize_t bytes; /* result of the call */
    int error;     /* errno, if bytes is -1 */
    bool direct;   /* read without the mount */
};

/* Returns true if the read is done. If false, the caller must read through the mount and count
 * the result. `at` < 0: at the file position; `vector`: iov is in the program's memory. */
bool limefs_run_read(int fd, const struct iovec *, int count, bool vector, off_t at,
                     struct limefs_run_result *);

/* Counts bytes that were read without the mount (`direct`) or through it, for the report at the
 * program's end (LIMEFS_RUN_REPORT). Returns `got`, the result of a read. */
ssize_t limefs_run_count(ssize_t got, bool direct);
void limefs_run_report_init(void);

/* For a function that overrides one of libc. */
#define EXPORTED __attribute__((visibility("default")))

#endif
