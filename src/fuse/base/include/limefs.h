/*
 * limefs.h - what all parts of the daemon share: the mount, its options, the log.
 *
 * The daemon shows a container as a directory of records, or a directory as a tree in
 * which each container is such a directory. See docs/architecture.md.
 */
#ifndef LIMEFS_H
#define LIMEFS_H

#include "limeidentity.h"
#include "lock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct limefs_handle;
struct limefs_node;
struct limefs_view;
struct limefs_slot;

enum limefs_verify {
    LIMEFS_VERIFY_OFF, /* on request only */
    LIMEFS_VERIFY_OPEN,
    LIMEFS_VERIFY_STREAM,
};

struct limefs_options {
    double attr_timeout, entry_timeout; /* seconds that the kernel may trust an answer */
    unsigned max_open;                  /* containers kept open while nobody uses them */
    uint64_t readahead;                 /* bytes the kernel reads ahead; 0: leave it alone */
    int shared;                         /* allow_other or allow_root */
    unsigned max_read;                  /* of one request; 0: as the kernel likes */
    bool rw;                            /* containers may be written to */
    enum limefs_verify verify;          /* of records with a checksum */

    /* The job: all unset, and reads are local. */
    unsigned ranks;     /* of a job of our own; 0: none */
    char *job, *mpirun; /* socket of another job; how to start our own; owned, or NULL */
    uint64_t window, extent, forward_from;
    uint64_t stripe;     /* of a job of our own; 0: its default */
    double job_timeout;  /* seconds to wait for an answer */
    int ino32;           /* inode numbers have 32 bits */
    int mkdir_container; /* mkdir makes a container of any name */
    int direct_io;       /* large records are read around this mount's page cache */
    int faces;           /* they are listed, too */
    int formats;         /* configurations in other formats are containers, too, in a tree */
};

/* Bytes that the indices of unused containers may take together. */
#define LIMEFS_INDEX_MEMORY (UINT64_C(256) << 20)

enum {
    LIMEFS_WATCHES_MAX = 4,
    LIMEFS_LEAVING_MAX = 64,
};

/* A container's file that is open, and what it is. */
struct limefs_opened {
    int fd;
    struct limefile_index *index;
    struct limefile_gauge_guise *guise; /* or NULL */
    bool moving; /* it may have been changed meanwhile, with the same times */
};

/* What the kernel knows by a number, and names (inode.c, names.c). Under fs->lock. */
struct limefs_inodes {
    struct limefs_slot *slots;
    uint32_t slot_count, slot_free;
    uint64_t ids; /* given so far to nodes and views */
    struct limefs_node *root;
    struct limefs_node **names; /* hash of (parent, name) */
    size_t name_buckets, name_count;
    struct limefs_node **nodes; /* hash of (dev, ino): of files that may have several names */
    size_t file_buckets, file_count;
};

/* Views with an open container, most recently used first (view.c). Under fs->lock. */
struct limefs_snapshots {
    struct limefs_view *newest, *oldest;
    unsigned views_open;
    struct limefs_opened leaving[LIMEFS_LEAVING_MAX]; /* closed once the lock is given back */
    unsigned leaving_count;
    uint64_t index_memory;
    const struct limefs_view_watch *watches[LIMEFS_WATCHES_MAX];
    unsigned watch_count;
    struct limefs_view *held; /* of a container that is mounted for writing; its writer has a
                                 user */
};

struct limefs_stats {
    atomic_uint_least64_t requests, local_bytes; /* reads so far */
    atomic_uint_least64_t local_written_bytes;
    atomic_uint_least64_t verified_bytes, verified_ok, verified_bad; /* records */
};

struct limefs {
    /* The mount: constant once requests are served. */
    struct limefs_options options;
    char *source;           /* absolute path of the container or the directory */
    uint64_t source_dev;    /* the device of the source */
    int source_fd;          /* O_PATH: the directory, or the one that holds the container */
    const char *container;  /* its name there (in source); NULL for a tree */
    const char *mountpoint; /* absolute; NULL: mounted for us, not known */
    bool foreground;
    bool switches; /* requests are served with their caller's rights (caller.h) */
    bool refuses;  /* changes by others than our own user, whose rights we cannot take on */
    struct fuse_session *session;   /* NULL: not mounted yet */
    unsigned threads;               /* that serve requests, at most */
    struct limefs_job *job;         /* job.h; NULL: none wanted */
    struct limefs_ahead *ahead;     /* ahead.h; NULL: nothing is read ahead */
    struct limefs_errands *errands; /* errand.h */

    /* Guards inodes, snapshots, faces, and what is open; held briefly, never over I/O. */
    struct limefs_lock lock;
    struct limefs_inodes inodes;
    struct limefs_snapshots snapshots;
    struct limefs_faces *faces;         /* faces.h */
    struct limefs_handle *files, *dirs; /* file.c, dir.c */

    double looked;         /* when names of a folder were wanted that was listed */
    bool following;        /* one of them is in limefs_follow() */
    atomic_uint waiting;   /* of these, for verdicts (verify.c) */
    atomic_bool reads_far; /* the kernel reads ahead as far as it was told */
    struct limefs_stats stats;
};

/* What is read now of a file that was `seen` at that time, and is being written or not, holds
 * for as long as its attributes stay as they are. */
static inline bool limefs_is_settled(const struct limefile_identity *seen,
                                     const struct timespec *seen_at, bool being_written)
{
    return limefile_validity(seen, seen_at, being_written, seen) == LIMEFILE_VALID;
}

/* Open files and directories, so that none is left when the mount ends with some open. */
struct limefs_handle {
    struct limefs_handle *next, **at;
};

/* Into and out of fs->files or fs->dirs. */
void limefs_handle_add(struct limefs *, struct limefs_handle **list, struct limefs_handle *);
void limefs_handle_remove(struct limefs *, struct limefs_handle *);

/* ---- log.c: stderr in the foreground, syslog behind it; nothing steers a terminal ---- */

/* Takes libfuse's messages, too. */
void limefs_log_open(bool foreground);

/* Between these two, what programs that libfuse runs print on stderr is held back; then it is
 * printed, made harmless but for the characters in `spared`. Only while there is one thread. */
void limefs_log_catch(void);
void limefs_log_release(const char *spared);

/* Appends libfuse's messages to text, which has room for `bytes`, instead of printing them;
 * text NULL: prints them again. The process must have one thread only. */
void limefs_log_collect(char *text, size_t bytes);

/* priority: LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO. One line, no newline at its end. */
void limefs_log(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
