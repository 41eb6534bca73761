/* outdir.h - write records to files in a directory */
#ifndef OUTDIR_H
#define OUTDIR_H

#include "container.h"
#include "tool.h"

struct outdir {
    const char *path; /* not owned */
    int fd;
    bool without_sync; /* outdir_finish(), not outdir_save(), syncs the files, all at once */
};

/* Opens the directory, creates it if it does not exist, and removes temporary files of killed
 * processes. Returns 0 or -errno; must_be_empty: -ENOTEMPTY if the directory has entries. */
int outdir_open(struct outdir *, const char *path, bool must_be_empty);
void outdir_close(struct outdir *);

/* Syncs the files' names and, if without_sync, the files. Returns 0 or -errno. */
int outdir_finish(const struct outdir *);

/* Writes a record's data to the file `name`. replace: `name` may be an existing file or link,
 * which is replaced. The container must be a file, not a mounted directory. Returns false after
 * a message. A failure, or a signal, leaves an existing file unchanged. */
bool outdir_save(const struct outdir *, const struct container *,
                 const struct limefile_record *, const char *name, bool replace,
                 struct progress *);

#endif
