/* outdir.h - a folder that records are unpacked into, a file each */
#ifndef OUTDIR_H
#define OUTDIR_H

#include "container.h"
#include "tool.h"

struct outdir {
    const char *path; /* not owned */
    int fd;
    bool without_sync; /* files are not synced one by one, but by outdir_finish() */
};

/* Makes the folder if it is not there. must_be_empty: -ENOTEMPTY if it holds anything. */
int outdir_open(struct outdir *, const char *path, bool must_be_empty);
void outdir_close(struct outdir *);

/* Brings the files' names, and the files without_sync, to the disk. 0 or -errno. */
int outdir_finish(const struct outdir *);

/* Writes a record's data to a new file, never to one that a link of that name leads to.
 * replace: it takes the place of an old file of that name, or link. False after a message; the
 * old file is what it was then, as after a signal. */
bool outdir_save(const struct outdir *, const struct container *,
                 const struct limefile_record *, const char *name, bool replace,
                 struct progress *);

#endif
