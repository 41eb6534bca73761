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

/* Calls `each` for the root and all below it; a directory's entries come in the order of their
 * names (nameorder.h). The root may be a link to a directory. `is_whole` returns true for a
 * directory that is not to be entered; NULL: all are. Returns false if `each` did, or without
 * memory, after a message. (fts(3) takes an error while it reads a directory for its end.) */
bool walk(const char *root, bool (*is_whole)(const char *folder),
          bool (*each)(void *context, const struct walk_entry *), void *context);

/* Returns true if a command of this project, running or killed, gives that name to a temporary
 * file or a lock. */
bool walk_is_working_file(const char *name);

#endif
