/*
 * series.h - a series of checkpoints: what its files share.
 */
#ifndef LEMON_SERIES_INTERNAL_H
#define LEMON_SERIES_INTERNAL_H

#include "lemon_inside.h"
#include "lemon_series.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    LEMON_SERIES_NAME = 256, /* bytes of a file's name, with its NUL */
};

/* ---- push.c: the thread that brings data to the disk ---- */

struct lemon_push {
    pthread_t thread;
    bool started;
    atomic_bool stop, moved, clean; /* see lemon_push_moved() */
    int fd, wake;                   /* wake: an eventfd */
    int error;                      /* an errno of fdatasync() */
};

/* Without memory, or where the file cannot be opened, nothing is brought there beforehand. */
void lemon_push_start(struct lemon_push *, const char *path);

/* All has been handed to the file system. */
void lemon_push_moved(struct lemon_push *);

/* Whether a sync has begun after that, and ended; or whether there is no thread. */
bool lemon_push_clean(struct lemon_push *);

/* Waits for the thread to end. 0, or an errno. */
int lemon_push_stop(struct lemon_push *);

/* ---- folder.c: rank 0's folder, by its descriptor ---- */

struct lemon_folder {
    int fd, lock;     /* -1: none */
    const char *base; /* what the names begin with */
};

/* What a call met: an errno, and where. 0: all is well. */
struct lemon_folder_fault {
    int error;
    const char *action;
};

/* path: of the folder. Takes the lock and removes what is unfinished: EBUSY. *locks: whether
 * the file system has any. */
struct lemon_folder_fault lemon_folder_open(struct lemon_folder *, const char *path,
                                            bool *locks);
void lemon_folder_close(struct lemon_folder *);

/* The file name of a checkpoint, and one for a checkpoint that is being written, which no other
 * has. False: too long. */
bool lemon_folder_name(const char *base, int64_t number, char name[LEMON_SERIES_NAME]);
bool lemon_folder_part(const char *base, int64_t number, uint64_t chance,
                       char name[LEMON_SERIES_NAME]);

/* The numbers of the complete ones, greatest first; *numbers: freed by free(). */
struct lemon_folder_fault lemon_folder_list(const struct lemon_folder *, int64_t **numbers,
                                            int64_t *count);

/* Gives the file `part`, which is fd's, the name of a checkpoint. */
struct lemon_folder_fault lemon_folder_publish(const struct lemon_folder *, int fd,
                                               const char *part, int64_t number);

/* Removes all that are greater than `newest`, and all but `keep` of the others. */
struct lemon_folder_fault lemon_folder_remove(const struct lemon_folder *, int64_t newest,
                                              int64_t keep);

/* ---- the series ---- */

struct lemon_series {
    MPI_Comm comm;
    int rank;
    struct lemon_folder folder; /* rank 0's */
    char *path;                 /* of the folder */
    char *base;                 /* of the names in it */
    int64_t keep;
    int64_t newest; /* numbers begin behind it; -1 at first */
    int64_t before; /* others than those below it do not count, once rewound */
    MPI_Info info;
    bool pushes; /* this rank does it for its node */

    /* What is being written; no writer: nothing. */
    LemonWriter *writer;
    MPI_File file;
    int64_t number;
    int fd; /* rank 0's */
    char part[LEMON_SERIES_NAME];
    struct lemon_push push;
};

#endif
