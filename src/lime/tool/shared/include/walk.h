/* walk.h - all that is in a folder and in the folders below it */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <sys/stat.h>

enum walk_kind {
    WALK_FILE,    /* a regular one */
    WALK_FOLDER,  /* told before what is in it */
    WALK_WHOLE,   /* a folder that is to be one thing: what is in it is not told */
    WALK_LINK,    /* a symbolic link: not followed */
    WALK_WORKING, /* a temporary file of a command that runs or was killed, or a lock */
    WALK_OTHER,
    WALK_FAULT, /* it cannot be looked at, or, after WALK_FOLDER, not be read to its end */
};

struct walk_entry {
    const char *path, *name; /* the path begins with the root's */
    enum walk_kind kind;
    const struct stat *st; /* NULL: a fault */
    int error;             /* an errno: of a fault */
};

/* Each directory in the order of its names (nameorder.h). The root may be a link to a folder;
 * it is told, too. `is_whole` is asked of each folder; NULL: none is. False: `each` was false,
 * or there is no memory, after a message. (fts(3) takes an error while a folder is read for its
 * end.) */
bool walk(const char *root, bool (*is_whole)(const char *folder),
          bool (*each)(void *context, const struct walk_entry *), void *context);

/* Returns true if a command of this project, running or killed, gives that name to a temporary
 * file or a lock. */
bool walk_is_working_file(const char *name);

#endif
