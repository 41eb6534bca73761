/* stagelist.h - which files `lime stage` is to copy, and what each will be called */
#ifndef STAGELIST_H
#define STAGELIST_H

#include "stage.h"

struct stagelist {
    struct stage_item *items; /* owned, with their names */
    size_t count, capacity;
    uint64_t bytes;
    char *folder;        /* one that lies on the targets' file system */
    bool recursive, bad; /* bad: something was left out, after a message */
    bool force;          /* existing targets will be replaced */
    const char *listing; /* the file that lists the sources, "-", or NULL; the caller's */
};

/* The sources become files in the folder `target`, or the only one becomes `target`. Makes the
 * folders that a tree needs; files below one that cannot be made fail later. False after a
 * message: nothing may be copied. */
bool stagelist_make(struct stagelist *, char *const *sources, size_t count, const char *target);

void stagelist_release(struct stagelist *);

#endif
