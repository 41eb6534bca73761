/* convert_plan.h - choose the target of each file that `lime convert` converts to a directory
 *
 * A file that was found in a source directory gets the same place below the target directory.
 */
#ifndef CONVERT_PLAN_H
#define CONVERT_PLAN_H

#include "pathlist.h"

struct planned_target {
    char *path;        /* NULL: the file is not converted, as it has no configuration ... */
    bool lacks_number; /* ... or no number for {n} in the pattern */
};

struct convert_plan {
    const char *directory; /* for the targets */
    const char *pattern;   /* of the targets' names (target_name.h); NULL: the usual names */
    const char *format;    /* name of the targets' format */
    struct planned_target *targets; /* of file i */
    size_t count;
};

/* Fills plan->targets; the caller has set the members before it. Returns TOOL_GOOD; or another
 * exit status after a message: two files would have one target, a target is a source, the
 * targets' directory is in a source directory, a name would not be a file name. Call
 * convert_plan_release() after both. */
int convert_plan_make(struct convert_plan *, const struct pathlist *sources);
void convert_plan_release(struct convert_plan *);

/* Makes the directories that the target needs. Returns 0 or -errno. */
int convert_plan_make_directories(const char *target);

#endif
