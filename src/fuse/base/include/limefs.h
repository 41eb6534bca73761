/*
 * limefs.h - state that all parts of the daemon share: the mount, its options, the log.
 *
 * The daemon shows a container as a directory of its records, or it shows a directory tree in
 * which each container is a directory of its records. See docs/architecture.md.
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
struct limefs_snapshot;
struct limefs_slot;

enum limefs_verify {
    LIMEFS_VERIFY_OFF, /* on request only */
    LIMEFS_VERIFY_OPEN,
    LIMEFS_VERIFY_STREAM,
};

struct limefs_options {
    double attr_timeout, entry_timeout; /* seconds that the kernel may cache an answer */
    unsigned max_open;                  /* unused containers that are kept open */
    uint64_t readahead;                 /* bytes that the kernel reads ahead; 0: its default */
    int serves_others;                  /* allow_other or allow_root */
    unsigned max_read;                  /* bytes of one request; 0: the kernel's choice */
    bool rw;                            /* containers may be written to */
    enum limefs_verify verify;          /* when to verify records that have a checksum */

    /* The MPI job. Without `ranks` and `job` all reads are local. */
    unsigned ranks;     /* of the job that the daemon starts; 0: it starts no job */
    char *job, *mpirun; /* socket of a running job; command that starts a job; owned, or NULL */
    uint64_t window, extent, forward_from; /* bytes; limefs --help describes them */
    int io;              /* enum limejob_io, for the job that the daemon starts */
    uint64_t stripe;     /* bytes; for the job that the daemon starts; 0: the job's default */
    int job_required;    /* without a job, nothing is mounted */
    double job_timeout;  /* seconds to wait for an answer of the job */
    int ino32;           /* inode numbers have 32 bits */
    int mkdir_container; /* mkdir makes a container, whatever its name */
    int direct_io;       /* large records bypass this mount's page cache */
    int list_exports;    /* directories list the export files, too */
    int formats;         /* a tree shows files in other formats as containers */
    char *given;         /* the other options as given, for limefs --status; owned, or NULL */
};

/* Bytes that all indexes may take together before unused containers are evicted. */
#define LIMEFS_INDEX_MEMORY (UINT64_C(256) << 20)

enum {
    LIMEFS_WATCHES_MAX = 4,
    LIMEFS_CLOSING_MAX = 64,
    LIMEFS_REASON_MAX = 512,
};

/* The open file of a container, and its contents. */
struct limefs_container_file {
    int fd;
    struct limefile_index *index;
    struct limefile_gauge_adapter *adapter; /* of a file in another format, or NULL */
    bool being_written;                     /* the file may be changing without new times */
};

/* The nodes and snapshots that the kernel knows, by number and by name. Guarded by fs->lock. */
struct limefs_inodes {
    struct limefs_slot *slots;
    uint32_t slot_count, slot_free; /* the latter: the first free slot; 0: none is free */
    uint64_t ids;                   /* number of ids given to nodes, snapshots and exports */
    struct limefs_node *root;
    struct limefs_node **names; /* hash of (parent, name) */
    size_t name_buckets, name_count;
    struct limefs_node **nodes;      /* hash of (dev, ino), for files with several names */
    size_t file_buckets, file_count; /* of the hash `nodes` */
};

/* Snapshots of open containers, most recently used first. Guarded by fs->lock. */
struct limefs_snapshots {
    struct limefs_snapshot *newest, *oldest;
    unsigned open_count;
    struct limefs_container_file closing[LIMEFS_CLOSING_MAX]; /* close after unlocking */
    unsigned closing_count;
    uint64_t index_memory;
    const struct limefs_snapshot_watch *watches[LIMEFS_WATCHES_MAX];
    unsigned watch_count;
    /* The snapshot of the only mounted container, from its first opening for writing on: the
     * mount keeps its writer. Otherwise NULL. */
    struct limefs_snapshot *mount_snap;
};

struct limefs_stats {
    atomic_uint_least64_t requests, local_bytes; /* read requests; bytes not read by the job */
    atomic_uint_least64_t local_written_bytes;
    atomic_uint_least64_t verified_bytes, verified_ok, verified_bad; /* the last two: records */
};

struct limefs {
    /* The mount. Constant once requests are served. */
    struct limefs_options options;
    char *source;           /* absolute path of the container or directory */
    uint64_t source_dev;    /* the device of the source */
    int source_fd;          /* O_PATH: the directory shown, or the one with the container */
    const char *container;  /* its name in source_fd (points into `source`); NULL: a tree */
    const char *mountpoint; /* absolute; NULL: unknown, as another program opened /dev/fuse */
    bool foreground;
    double mounted_at;                     /* limefs_clock_seconds() */
    char no_job_reason[LIMEFS_REASON_MAX]; /* why it starts no job; "": it starts the job */
    bool switches_creds; /* requests run with their callers' rights (credentials.h) */
    bool denies_changes; /* by other users, as the daemon cannot switch to their rights */
    struct fuse_session *session;         /* NULL: not mounted yet */
    unsigned threads;                     /* maximum number of threads that serve requests */
    struct limefs_job *job;               /* job.h; NULL: the mount has no job */
    struct limefs_readahead *readahead;   /* readahead.h; NULL: nothing is read ahead */
    struct limefs_work_queue *work_queue; /* the work queue of slow requests (work.h) */

    /* Guards inodes, snapshots, exports, files and dirs. Do no I/O while holding it. */
    struct limefs_lock lock;
    struct limefs_inodes inodes;
    struct limefs_snapshots snapshots;
    struct limefs_exports *exports;     /* exports.h */
    struct limefs_handle *files, *dirs; /* file.c, dir.c */

    double last_lookup;              /* when a name of a listed directory was last looked up */
    bool is_notifying;               /* a thread is sending a notification (kernel_notify.c) */
    atomic_uint verify_waiters;      /* threads that wait for a verdict (verify.h) */
    atomic_bool has_large_readahead; /* the kernel reads ahead >= LIMEFILE_DIRECT_MIN bytes */
    struct limefs_stats stats;
};

/* seen: a file's attributes at the time seen_at (CLOCK_REALTIME). Returns true if the data
 * cannot change while these stay the same. being_written: see limefile_is_being_written(). */
static inline bool limefs_identity_is_reliable(const struct limefile_identity *seen,
                                               const struct timespec *seen_at,
                                               bool being_written)
{
    return limefile_validity(seen, seen_at, being_written, seen) == LIMEFILE_VALID;
}

/* An open file or directory. On exit, the daemon closes all handles still in its lists. */
struct limefs_handle {
    struct limefs_handle *next, **link;
};

/* Insert into and remove from fs->files or fs->dirs. Call them without fs->lock. */
void limefs_handle_add(struct limefs *, struct limefs_handle **list, struct limefs_handle *);
void limefs_handle_remove(struct limefs *, struct limefs_handle *);

/* ---- log.c: to stderr in the foreground, else to syslog, without control characters ---- */

/* Chooses stderr or syslog, also for libfuse's messages. */
void limefs_log_open(bool foreground);

/* limefs_log_capture_stderr() holds stderr back, also that of programs that libfuse runs, such
 * as fusermount; limefs_log_restore_stderr() prints it, without control characters except
 * `allowed`. Only while there is one thread. */
void limefs_log_capture_stderr(void);
void limefs_log_restore_stderr(const char *allowed);

/* From now on, libfuse's messages are appended to the string `text`, which has room for
 * `bytes`; text NULL: they are printed again. Call it only while the process has one thread. */
void limefs_log_capture_libfuse(char *text, size_t bytes);

/* Logs a line (without newline); drops it if there were too many. priority: LOG_ERR etc. */
void limefs_log(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
