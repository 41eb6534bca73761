/*
 * tree.h - reaches the files below the source.
 *
 * By path from one descriptor, never through a symbolic link: a link that somebody puts
 * in the way does not lead a daemon of root's out of the tree.
 */
#ifndef LIMEFS_TREE_H
#define LIMEFS_TREE_H

#include "inode.h"

/* Opens what the node, or its entry `name` if that is not NULL, stands for.
 * Returns a descriptor or -errno. */
int limefs_tree_open(struct limefs *, const struct limefs_node *, const char *name, int flags);

/* The same for its attributes. */
int limefs_tree_stat(struct limefs *, const struct limefs_node *, const char *name,
                     struct stat *);

/* What a file with these attributes is; looks into it only if it is new or has changed. */
enum limefs_kind limefs_tree_kind(struct limefs *, struct limefs_node *parent, const char *name,
                                  const struct stat *);

/* The path below the source, for messages: "stream2/conf.0100". */
const char *limefs_tree_label(struct limefs *, const struct limefs_node *, char *buf,
                              size_t cap);

#endif
