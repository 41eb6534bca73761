/*
 * file.h - an open file: a record of a view, a file of a face of one, or a file of the tree
 * that is no container.
 */
#ifndef LIMEFS_FILE_H
#define LIMEFS_FILE_H

#include "faces.h"
#include "job.h"
#include "verify.h"
#include "writer.h"

#include <limits.h>

/* Bytes that were given out and where they stood in the container, to be found there again. */
struct limefs_sample {
    uint64_t at;
    size_t n;
    char bytes[64];
};

enum {
    LIMEFS_DIRECT_UNTRIED = INT_MIN, /* no -errno */
};

struct limefs_file {
    struct limefs_handle handle;   /* first: the list leads here */
    struct limefs_view *view;      /* pinned; NULL for a file of the tree */
    struct limefile_record record; /* as it was when it was opened */
    struct limefile_index *index;  /* where its type stands */
    uint64_t generation;           /* tells it from another of the same ordinal */
    struct limefs_target *target;  /* open for writing */
    struct limefs_face *face;      /* of a face's file, in use; the record is what it is of */
    uint64_t number;               /* that file's, in the face */
    bool uncached;            /* the kernel caches nothing of what is read or written by it */
    int fd;                   /* of a file of the tree, else -1 */
    struct limefs_node *node; /* of a file of the tree */
    bool writes;              /* such a file, open for writing */
    bool appends;             /* nothing else (append.h) */
    uid_t uid;                /* who has opened it */
    gid_t gid;
    struct limefs_verify_reader reader; /* what is served is looked at */
    struct limefs_lock lock;            /* guards what follows */
    int direct;                         /* the container with O_DIRECT; -1: cannot be had */
    struct limefile_identity checked;   /* the container when the record was last found good */
    struct limefs_sample sample;        /* of the last read */
};

/* Flags as for open(2). *keep: the kernel's cached pages are still good. */
int limefs_file_open(struct limefs *, uint64_t id, int flags, struct limefs_file **,
                     bool *keep);

/* A new one for a record or a file of the tree that has just been made: what is given is taken
 * over, also after an error. */
int limefs_file_of_record(struct limefs *, struct limefs_view *, struct limefs_target *,
                          struct limefs_file **);
int limefs_file_of_plain(struct limefs *, struct limefs_node *, int fd, int flags,
                         struct limefs_file **);

/* A file of the tree that is open, whether or not its name is still there: a descriptor that
 * the caller closes; -ENOENT: it is not open. */
int limefs_file_dup(struct limefs *, const struct limefs_node *);

/* The same, or what the node's name leads to, as limefs_tree_hold() finds it. */
int limefs_file_hold(struct limefs *, struct limefs_node *);

void limefs_file_close(struct limefs *, struct limefs_file *);
void limefs_files_release(struct limefs *); /* closes all */

/* As for the system calls of these names; `closing`: a descriptor is closed. */
ssize_t limefs_file_write(struct limefs *, struct limefs_file *, const char *buf, size_t n,
                          uint64_t offset);
int limefs_file_sync(struct limefs *, struct limefs_file *, bool closing);
int limefs_file_allocate(struct limefs *, struct limefs_file *, int mode, uint64_t offset,
                         uint64_t bytes);

/* As limefs_record_resize(), and the record's faces are others from now on. */
int limefs_file_resize(struct limefs *, struct limefs_view *, uint64_t ordinal, uint64_t bytes,
                       bool emptied);

/* A record that is worth being forwarded or read around the page cache. */
bool limefs_file_is_large(const struct limefs *, const struct limefs_file *);

/* What was read: in the calling thread's buffers, or in memory of forward.h's. */
enum {
    LIMEFS_ANSWER_PARTS = 4, /* an export's own bytes, two pieces, own bytes */
};
struct limefs_answer {
    struct iovec iov[LIMEFS_ANSWER_PARTS];
    int count;
    struct limefs_pieces pieces;
};

/* read.c: reads up to n bytes at `offset`; how many, or -errno. Never bytes of anything but
 * this file. The answer is released once it has been given, also after an error. */
ssize_t limefs_file_read(struct limefs *, struct limefs_file *, size_t n, uint64_t offset,
                         struct limefs_answer *);
void limefs_answer_release(struct limefs *, struct limefs_answer *);

/* backend_local.c: from byte `at` of the container, by the daemon itself, into buf, which has
 * room for n bytes and two blocks of LIMEFILE_DIRECT_ALIGN; *bytes is where they begin. */
ssize_t limefs_local_read(struct limefs_file *, char *buf, size_t n, uint64_t at,
                          const char **bytes);

/* SEEK_DATA and SEEK_HOLE. */
int64_t limefs_file_seek(struct limefs_file *, int64_t offset, int whence);

#endif
