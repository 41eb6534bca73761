/*
 * file.h - opens, reads, changes and closes a file: a record, a file of an export, or a file of
 * the source tree that is not a container. Any thread may use an open file.
 */
#ifndef LIMEFS_FILE_H
#define LIMEFS_FILE_H

#include "exports.h"
#include "job.h"
#include "verify.h"
#include "writer.h"

#include <limits.h>

/* Bytes that a read returned, to check that the container still has them at offset `at`. */
struct limefs_sample {
    uint64_t at;
    size_t n;
    char bytes[64];
};

enum { LIMEFS_DIRECT_UNTRIED = INT_MIN }; /* not an -errno */

struct limefs_file {
    struct limefs_handle handle;   /* must be first: fs->files points to it */
    struct limefs_snapshot *snap;  /* of a record or export, pinned; else NULL */
    struct limefile_record record; /* the record, or the export's, as it was when opened */
    struct limefile_index *index;  /* owns the memory of record.type */
    uint64_t generation;           /* differs from that of another record with this ordinal */
    struct limefs_target *target;  /* of a record open for writing; else NULL */
    struct limefs_export *export;  /* of a file of an export, in use; else NULL */
    uint64_t number;               /* of that file in the export */
    bool uncached;                 /* the kernel reads and writes it around its page cache */
    int fd;                        /* of a file of the source tree; else -1 */
    struct limefs_node *node;      /* of a file of the source tree */
    bool is_writable;              /* a file of the source tree is open for writing */
    bool is_append_only;           /* is_writable, but only for appending (append.h) */
    uid_t uid;                     /* of the user that opened the file */
    gid_t gid;
    struct limefs_verify_reader reader;  /* verifies what is served (verify=stream) */
    struct limefs_lock lock;             /* guards the fields below */
    int direct_fd;                       /* the container with O_DIRECT; < 0: not available */
    struct limefile_identity last_valid; /* the container's when the record was last valid */
    struct limefs_sample sample;         /* of the latest read */
};

/* Opens the file of inode `id` with `flags` of open(2) and the caller's rights. *keep_cache:
 * the kernel's pages are still valid. Returns 0 or a negative code (limefs_errno()). */
int limefs_file_open(struct limefs *, uint64_t id, int flags, struct limefs_file **,
                     bool *keep_cache);

/* Open a record or a file of the source tree that was just created. They take ownership of the
 * pinned snapshot and the target, or of fd, also on error. */
int limefs_file_open_new_record(struct limefs *, struct limefs_snapshot *,
                                struct limefs_target *, struct limefs_file **);
int limefs_file_open_new_plain(struct limefs *, struct limefs_node *, int fd, int flags,
                               struct limefs_file **);

/* Duplicates the descriptor of an open file of the source tree, even if its name was removed.
 * The caller closes the duplicate. Returns -ENOENT if the node's file is not open. */
int limefs_file_dup(struct limefs *, const struct limefs_node *);

/* The same, or the result of limefs_tree_open_node() if the node's file is not open. */
int limefs_file_get_fd(struct limefs *, struct limefs_node *);

void limefs_file_close(struct limefs *, struct limefs_file *);
void limefs_files_release(struct limefs *); /* closes all */

/* Like pwrite(2), but returns -errno. */
ssize_t limefs_file_write(struct limefs *, struct limefs_file *, const char *buf, size_t n,
                          uint64_t offset);

/* closing false: syncs the file like fsync(2). closing true: for each close(2) of the file;
 * reports late write errors, does not sync a plain file. Returns 0 or -errno. */
int limefs_file_sync(struct limefs *, struct limefs_file *, bool closing);

/* Like fallocate(2) with `mode`, but returns 0 or -errno. */
int limefs_file_allocate(struct limefs *, struct limefs_file *, int mode, uint64_t offset,
                         uint64_t bytes);

/* Like limefs_record_resize(), and invalidates the record's exports. */
int limefs_file_resize(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                       uint64_t bytes, bool emptied);

/* True if the record is large enough to be read by the job or around the page cache. */
bool limefs_file_is_large(const struct limefs *, const struct limefs_file *);

/* The bytes that were read, in the calling thread's buffers or in slots of prefetch.h. */
enum { LIMEFS_READ_PARTS = 4 }; /* at most: an export's header, two chunks, its trailer */
struct limefs_file_result {
    struct iovec iov[LIMEFS_READ_PARTS];
    int count;
    struct limefs_chunks pieces; /* slots that are held until the release */
};

/* file_read.c: reads up to n bytes at `offset`. Returns their number or a negative code;
 * -ESTALE: the record may have been replaced. The caller releases the result, also on error. */
ssize_t limefs_file_read(struct limefs *, struct limefs_file *, size_t n, uint64_t offset,
                         struct limefs_file_result *);
void limefs_file_result_release(struct limefs *, struct limefs_file_result *);

/* local_read.c: like pread(2) at offset `at` of the container, but returns -errno. buf has room
 * for n + 2 * LIMEFILE_DIRECT_ALIGN bytes. Sets *bytes to the first byte read. */
ssize_t limefs_local_read(struct limefs_file *, char *buf, size_t n, uint64_t at,
                          const char **bytes);

/* Like lseek(2) with SEEK_DATA or SEEK_HOLE. Returns the offset or -errno. */
int64_t limefs_file_seek(struct limefs_file *, int64_t offset, int whence);

#endif
