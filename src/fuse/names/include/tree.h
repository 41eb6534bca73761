/*
 * tree.h - reaches the files below the source.
 *
 * Names are hints: other users may rename, link and exchange them between any two of our looks.
 * So whatever names a file goes through here, below one descriptor of the source, never through
 * a symbolic link, and gives a descriptor; what is done then is done to that.
 *
 * What a node stands for is found with the daemon's own rights, as the kernel has found it for
 * the caller before, and compared with what the kernel was told of. What is done with it, and
 * every name that the kernel has not looked up yet, takes the caller's (caller.h).
 */
#ifndef LIMEFS_TREE_H
#define LIMEFS_TREE_H

#include "inode.h"

/* Whatever has the node's name now, in the folder that the kernel knows: an O_PATH descriptor
 * or -errno, -ESTALE if another folder is there. */
int limefs_tree_find(struct limefs *, const struct limefs_node *);

/* What the kernel knows by this node, -ESTALE if its name leads to something else by now: an
 * O_PATH descriptor or -errno. */
int limefs_tree_hold(struct limefs *, struct limefs_node *);

/* The same, for a directory of the tree in which names are looked up, made or removed. */
int limefs_tree_folder(struct limefs *, const struct limefs_node *);

/* The folder that holds the node's file, likewise. */
int limefs_tree_parent(struct limefs *, const struct limefs_node *);

/* The attributes of what the node's name leads to now. */
int limefs_tree_stat(struct limefs *, const struct limefs_node *, struct stat *);

/* The entry `name` of a directory, with the caller's rights: its attributes, and what it is. It
 * is looked into, with the daemon's own, only if it is new or has changed, or may have. */
int limefs_tree_look(struct limefs *, struct limefs_node *parent, const char *name,
                     struct limefs_found *);

enum {
    LIMEFS_TREE_SNIFFED = 144, /* bytes: a shorter file is no container */
};

/* A regular file of that name in `folder`, looked into without regard to what is known of it:
 * this touches nothing of the mount. `formats`: as in limefs_options. */
int limefs_tree_sniff(bool formats, int folder, const char *name, struct limefs_found *);

/* The path below the source, for messages: "stream2/conf.0100". */
const char *limefs_tree_label(struct limefs *, const struct limefs_node *, char *buf,
                              size_t cap);

#endif
