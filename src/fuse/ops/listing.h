/*
 * listing.h - the inside of an open directory, between what it may be of: a container or a
 * directory of the tree (dir.c), or a face (dirface.c), and what a reply is made of.
 */
#ifndef LIMEFS_LISTING_H
#define LIMEFS_LISTING_H

#include "dir.h"
#include "faces.h"

#include <dirent.h>

struct limefs_dir {
    struct limefs_handle handle; /* first: the list leads here */
    struct limefs_node *node;
    struct limefs_face *face; /* in use; NULL: no directory of a face; */
    uint64_t ordinal;         /* in it */

    struct limefs_lock lock;     /* guards what follows */
    struct limefs_view *view;    /* pinned; NULL for a directory of the tree, or of a face */
    struct limefs_fields *faces; /* of the view, that are listed; NULL: not yet */
    uint64_t records;            /* that are listed before them, then */
    uint64_t asked;              /* limefs_view_asked() at the last reply */
    uint64_t plus_left;          /* more records are listed with their attributes */
    DIR *stream;
    uint64_t dev;               /* of the directory */
    off_t offset;               /* where the stream stands */
    struct dirent *entry;       /* read, but did not fit into the last reply */
    unsigned ahead_left;        /* so many names more are looked up as they are listed, */
    bool may_search;            /* if their reader may do so; */
    struct limefs_sniff *ahead; /* here, or NULL */
};

/* Where entries are put; `full` when one did not fit. */
struct limefs_listing {
    fuse_req_t req;
    char *buf;
    size_t cap, used;
    bool full, plus;
    struct stat container; /* whose records are listed */
};

void limefs_listing_add(struct limefs_listing *, const char *name, const struct stat *,
                        off_t next);
void limefs_listing_add_plus(struct limefs_listing *, const char *name,
                             const struct fuse_entry_param *, off_t next);

/* Without attributes, but its number and type: the kernel looks it up if somebody wants them.
 */
void limefs_listing_add_name(struct limefs_listing *, const char *name, ino_t shown,
                             mode_t type, off_t next);

/* ---- dirtree.c ---- */

/* A directory of the tree, from that offset on. */
int limefs_dir_list_folder(struct limefs *, struct limefs_dir *, struct limefs_listing *,
                           off_t offset);

/* ---- dirface.c ---- */

int limefs_dir_open_face(struct limefs *, struct limefs_dir *);

/* A directory of a face, from that offset on. */
void limefs_dir_list_face(struct limefs *, struct limefs_dir *, struct limefs_listing *,
                          uint64_t offset);

/* The faces of a container's records, after `offset`, the first of which is the number of
 * records and 2. */
void limefs_dir_list_faces(struct limefs *, struct limefs_dir *, struct limefs_listing *,
                           uint64_t offset);

#endif
