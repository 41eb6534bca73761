/* pathlist.h - the files that a command works on: named, listed in a file, found in folders */
#ifndef PATHLIST_H
#define PATHLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pathlist_item {
    char *path;    /* owned by the list */
    uint64_t size; /* 0 if it cannot be told */
    bool found;    /* in a folder: nobody has asked for it by its name */
};

/* Zero to begin with. */
struct pathlist {
    struct pathlist_item *items;
    size_t count, capacity;
    uint64_t skipped; /* links, sockets and the like, found in folders */
    bool incomplete;  /* something could not be read, after a message */
    bool walk;        /* set by the caller: a folder means all regular files below it */
};

/* Found files come in the order of their names; links found are not followed, so that there is
 * no way round in a circle. False after a message: out of memory. */
bool pathlist_add(struct pathlist *, const char *path);

/* The paths in the file `name` ('-': standard input), one a line, or (nul) ended by NULs. False
 * after a message. */
bool pathlist_read(struct pathlist *, const char *name, bool nul);

/* Both: the paths of the command line, and those in `name` unless it is NULL. */
bool pathlist_make(struct pathlist *, char *const *paths, size_t count, const char *name,
                   bool nul);

void pathlist_release(struct pathlist *);

#endif
