/*
 * tree.h - open the files below the source.
 *
 * Names are hints: other users may rename, link and exchange them between two system calls. So
 * every function here that resolves a name does so below one descriptor of the source, never
 * through a symbolic link, and returns a descriptor; the daemon then acts on that descriptor.
 *
 * The daemon opens a node's file with its own rights, because the kernel has already looked the
 * file up for the caller. It checks that this is the file that the kernel knows. The daemon
 * uses the caller's rights (credentials.h) to act on the file, and to resolve names that the
 * kernel has not looked up yet.
 */
#ifndef LIMEFS_TREE_H
#define LIMEFS_TREE_H

#include "inode.h"

/* Opens the file that has the node's name now, even if the kernel knows another one. Returns an
 * O_PATH descriptor or -errno; -ESTALE if the name's directory was replaced. */
int limefs_tree_open_name(struct limefs *, const struct limefs_node *);

/* Opens the file that the kernel knows by this node. Returns an O_PATH descriptor or -errno;
 * -ESTALE if no known name of the file leads to it any more. */
int limefs_tree_open_node(struct limefs *, struct limefs_node *);

/* Like limefs_tree_open_node(), for a directory in which names are looked up or changed. */
int limefs_tree_open_dir(struct limefs *, const struct limefs_node *);

/* Like limefs_tree_open_node(), for the directory that holds the node's file. */
int limefs_tree_open_parent(struct limefs *, const struct limefs_node *);

/* Gets the attributes of the file that has the node's name now. */
int limefs_tree_stat(struct limefs *, const struct limefs_node *, struct stat *);

/* Gets attributes and kind of the entry `name` of a directory, with the caller's rights. Reads
 * the file, with the daemon's rights, only if it is new or may have changed. 0 or -errno. */
int limefs_tree_lookup(struct limefs *, struct limefs_node *parent, const char *name,
                       struct limefs_tree_entry *);

enum {
    LIMEFS_TREE_DETECT_BYTES = 144, /* bytes to read; a shorter file is not a container */
};

/* Like limefs_tree_lookup(), for an entry of the open directory `dir`, but always reads the
 * file and neither uses nor changes a node. formats: as in struct limefs_options. */
int limefs_tree_detect(bool formats, int dir, const char *name, struct limefs_tree_entry *);

/* Returns the path below the source, for messages: "stream2/conf.0100". */
const char *limefs_tree_display_path(struct limefs *, const struct limefs_node *, char *buf,
                                     size_t cap);

#endif
