/* stagelist.h - the files that lime stage copies, each with its target */
#ifndef STAGELIST_H
#define STAGELIST_H

#include "pathlist.h"
#include "stage.h"

struct stagelist {
    struct stage_item *items; /* owned, with their names */
    size_t count, capacity;
    uint64_t bytes;             /* in all sources */
    char *dir;                  /* a directory on the targets' file system */
    bool recursive, incomplete; /* incomplete: a message named a source that cannot be copied */
    bool force;                 /* replace existing targets */
    const char *listing;        /* the file that lists the sources, "-", or NULL; not owned */
};

/* Lists the sources, with targets in `target` if that is a directory; else a single source with
 * the target `target`. Makes the directories of trees. Returns false, after a message, if
 * nothing may be copied. */
bool stagelist_init(struct stagelist *list, const struct pathlist *sources, const char *target);
void stagelist_release(struct stagelist *list);

#endif
