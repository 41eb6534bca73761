/*
 * file.h - an open file: a record of a view, or a file of the tree that is no container.
 */
#ifndef LIMEFS_FILE_H
#define LIMEFS_FILE_H

#include "stream.h"
#include "view.h"

/* Bytes that were given out and where they stood in the container, to be found there again. */
struct limefs_sample {
    uint64_t at;
    size_t n;
    char bytes[64];
};

enum {
    LIMEFS_DIRECT_UNTRIED = -2,
};

struct limefs_file {
    struct limefs_handle handle; /* first: the list leads here */
    struct limefs_view *view;    /* pinned; NULL for a file of the tree */
    struct limefile_record record;
    int fd;               /* of a file of the tree, else -1 */
    pthread_mutex_t lock; /* guards what follows */
    struct limefs_stream stream;
    int direct;                  /* the container with O_DIRECT; -1: cannot be had */
    struct limefs_stamp checked; /* the container when the record was last found good */
    struct limefs_sample sample; /* of the last read */
};

/* *keep: the kernel's cached pages are still good. */
int limefs_file_open(struct limefs *, uint64_t id, struct limefs_file **, bool *keep);
void limefs_file_close(struct limefs *, struct limefs_file *);
void limefs_files_release(struct limefs *); /* closes all */

/* backend_local.c: reads up to n bytes at `offset`; how many, or -errno. *bytes points into
 * the calling thread's buffer. Never bytes of anything but this file. */
ssize_t limefs_file_read(struct limefs *, struct limefs_file *, size_t n, uint64_t offset,
                         const char **bytes);

/* SEEK_DATA and SEEK_HOLE. */
int64_t limefs_file_seek(struct limefs_file *, int64_t offset, int whence);

#endif
