/*
 * tree.h - open the files below the source.
 *
 * Names are hints: other users may rename, link and exchange them between two system calls. So
 * every function here that resolves a name does so below one descriptor of the source, never
 * through a symbolic link, and returns a descriptor; the daemon then acts on that descriptor.
 *
 * The daemon opens the file of a node with its own rights, because the kernel has already
 * looked it up for the caller, and checks that it is the file that the kernel knows. It acts on
 * the file, and resolves names that the kernel has not looked up yet, with the caller's rights
 * (credentials.h).
 */
#ifndef LIMEFS_TREE_H
#define LIMEFS_TREE_H

#include "inode.h"

/* Opens what has the node's name now, in the directory that the kernel knows. Returns an O_PATH
 * descriptor or -errno, -ESTALE if it is another directory. */
int limefs_tree_open_name(struct limefs *, const struct limefs_node *);

/* Opens the file that the kernel knows by this node. Returns an O_PATH descriptor or -errno,
 * -ESTALE if the name leads to something else by now. */
int limefs_tree_open_node(struct limefs *, struct limefs_node *);

/* The same for a directory of the tree in which names are looked up, made or removed. */
int limefs_tree_open_dir(struct limefs *, const struct limefs_node *);

/* The same for the directory that holds the node's file. */
int limefs_tree_open_parent(struct limefs *, const struct limefs_node *);

/* Gets the attributes of what the node's name leads to now. */
int limefs_tree_stat(struct limefs *, const struct limefs_node *, struct stat *);

/* Gets attributes and kind of the entry `name` of a directory, with the caller's rights. Reads
 * the file, with the daemon's rights, only if it is new or may have changed. 0 or -errno. */
int limefs_tree_lookup(struct limefs *, struct limefs_node *parent, const char *name,
                       struct limefs_tree_entry *);

enum {
    LIMEFS_TREE_DETECT_BYTES = 144, /* bytes to read; a shorter file is not a container */
};

/* The same for the entry `name` of the open directory `dir`, but always reads the file, and
 * neither uses nor changes a node. `formats`: as in struct limefs_options. */
int limefs_tree_detect(bool formats, int dir, const char *name, struct limefs_tree_entry *);

/* Returns the path below the source, for messages: "stream2/conf.0100". */
const char *limefs_tree_display_path(struct limefs *, const struct limefs_node *, char *buf,
                                     size_t cap);

#endif
