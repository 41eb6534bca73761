/* outdir.h - a folder that records are unpacked into, a file each */
#ifndef OUTDIR_H
#define OUTDIR_H

#include "container.h"
#include "progress.h"

struct outdir {
    const char *path; /* not owned */
    int fd;
};

/* Makes the folder if it is not there. must_be_empty: -ENOTEMPTY if it holds anything. */
int outdir_open(struct outdir *, const char *path, bool must_be_empty);
void outdir_close(struct outdir *);

/* A new file, never one that a link of that name leads to. replace: an old file of that name
 * goes. A descriptor or -errno. */
int outdir_create(const struct outdir *, const char *name, bool replace);

/* Writes a record's data to a new file. False after a message; nothing is left then, nor after
 * a signal. */
bool outdir_save(const struct outdir *, const struct container *,
                 const struct limefile_record *, const char *name, bool replace,
                 struct progress *);

#endif
