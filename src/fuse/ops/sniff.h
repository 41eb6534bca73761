/*
 * sniff.h - names of a folder looked up before anybody asks: what they are, and their
 * attributes.
 *
 * Many at once, by a few threads of their own, because each look may have to wait for a disk,
 * or for a server. They touch nothing of the mount: a store that hangs keeps them, and nobody
 * else.
 */
#ifndef LIMEFS_SNIFF_H
#define LIMEFS_SNIFF_H

#include "inode.h"

#include <dirent.h>
#include <limits.h>

enum {
    LIMEFS_SNIFF_MOST = 256, /* at once */
};

struct limefs_sniff_name {
    char name[NAME_MAX + 1];
    ino_t ino;
    mode_t type; /* 0: not known */
    off_t next;  /* the place in the folder after it */

    bool known;           /* to the mount: it was of that kind, */
    enum limefs_kind was; /* and is for sure with that stamp: */
    bool sure;
    struct limefile_identity stamp;
    bool wanted; /* to be looked at; */

    bool seen; /* and it was: */
    struct limefs_found found;
};

struct limefs_sniff {
    size_t count;
    struct limefs_sniff_name names[LIMEFS_SNIFF_MOST];
};

/* Looks at those that are wanted, below `folder`, with the daemon's own rights: the caller of
 * the mount must have that of search there. False if not all were seen in time. */
bool limefs_sniff_look(struct limefs *, int folder, struct limefs_sniff *);

#endif
