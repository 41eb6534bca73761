/* series.h - internal interfaces of the modules that implement lemon_series.h */
#ifndef LEMON_SERIES_INTERNAL_H
#define LEMON_SERIES_INTERNAL_H

#include "lemon_inside.h"
#include "lemon_series.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    LEMON_SERIES_NAME_MAX = 256, /* bytes of a file name with its NUL */
};

/* ---- the thread that writes data back to the disk ---- */

struct lemon_writeback {
    pthread_t thread;
    bool started;
    atomic_bool stop, data_complete, is_synced; /* see lemon_writeback_data_complete() */
    int fd, wake_fd;                            /* wake_fd: an eventfd */
    int error;                                  /* errno of the first sync that failed, or 0 */
};

/* Starts the thread. If that fails, the data are written back later, by the final sync. */
void lemon_writeback_start(struct lemon_writeback *, const char *path);

/* Notifies the thread that all data have been passed to the file system. */
void lemon_writeback_data_complete(struct lemon_writeback *);

/* Returns true if a sync that began after lemon_writeback_data_complete() has ended, with or
 * without an error, or if no thread runs. */
bool lemon_writeback_is_done(struct lemon_writeback *);

/* Ends the thread, and waits for it. Returns 0, or the errno of the first sync that failed. */
int lemon_writeback_stop(struct lemon_writeback *);

/* ---- the series' directory, used by rank 0 only ---- */

struct lemon_series_dir {
    int fd, lock;     /* descriptors of the directory and the lock file; -1: none */
    const char *base; /* prefix of the file names */
};

/* Result of a call. */
struct lemon_dir_error {
    int error;          /* 0 or an errno */
    const char *action; /* that failed; not valid if error is 0 */
};

/* Opens the directory `path`, locks the series and removes unfinished checkpoints. The
 * caller sets dir->base first, and calls lemon_series_dir_close() also after an error. EBUSY:
 * another process holds the lock. Sets *locks to false if the file system has no locks. */
struct lemon_dir_error lemon_series_dir_open(struct lemon_series_dir *, const char *path,
                                             bool *locks);
void lemon_series_dir_close(struct lemon_series_dir *);

/* The first formats the file name of a complete checkpoint, the second a unique name for a
 * checkpoint that is being written. Return false if the name is too long. */
bool lemon_series_file_name(const char *base, int64_t number, char name[LEMON_SERIES_NAME_MAX]);
bool lemon_series_part_name(const char *base, int64_t number, uint64_t random,
                            char name[LEMON_SERIES_NAME_MAX]);

/* Lists the numbers of the complete checkpoints, greatest first. The caller frees *numbers. */
struct lemon_dir_error lemon_series_dir_list(const struct lemon_series_dir *, int64_t **numbers,
                                             int64_t *count);

/* Renames the file `part` to the checkpoint's name; ESTALE if `part` is not the file of fd. */
struct lemon_dir_error lemon_series_dir_publish(const struct lemon_series_dir *, int fd,
                                                const char *part, int64_t number);

/* Keeps the `keep` newest checkpoints among those with numbers up to `newest`, and removes all
 * other checkpoints. */
struct lemon_dir_error lemon_series_dir_prune(const struct lemon_series_dir *, int64_t newest,
                                              int64_t keep);

/* ---- the series ---- */

struct lemon_series {
    MPI_Comm comm;
    int rank;
    struct lemon_series_dir dir; /* rank 0 only */
    char *path;                  /* of the directory */
    char *base;                  /* prefix of the file names */
    int64_t keep_count;
    int64_t newest; /* number of the newest valid checkpoint, or -1; the next must be greater */
    int64_t before; /* checkpoints from this number on are invalid, because of a rewind */
    MPI_Info info;
    bool runs_writeback; /* this rank runs the write-back thread of its node */

    /* The checkpoint that is being written, unless writer is NULL. */
    LemonWriter *writer;
    MPI_File file;
    int64_t number;
    int fd; /* rank 0 only */
    char part[LEMON_SERIES_NAME_MAX];
    struct lemon_writeback writeback;
};

#endif
