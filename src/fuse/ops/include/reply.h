/*
 * reply.h - attributes, entries and errors for replies to the kernel. Functions that return an
 * int give 0 or a negative code for limefs_errno().
 */
#ifndef LIMEFS_REPLY_H
#define LIMEFS_REPLY_H

#include "exports.h"
#include "snapshot.h"

#include <fuse_lowlevel.h>

/* Converts a negative errno or LIMEFILE_E_* code to the errno that programs see; 0 to 0. */
int limefs_errno(int code);

/* Sets *out to the attributes of the node, whose file has the attributes *st. */
void limefs_attr_node(const struct limefs *, const struct limefs_node *, const struct stat *st,
                      struct stat *out);

/* Fill an entry for a reply, and count one lookup of its node id. If the kernel does not
 * receive the reply, the caller must drop the lookup by limefs_forget(). */
int limefs_entry_lookup(struct limefs *, uint64_t parent, const char *name,
                        struct fuse_entry_param *);
/* Fills it for a new file with these attributes, even if the name leads to another file now. */
int limefs_entry_created(struct limefs *, struct limefs_node *directory, const char *name,
                         const struct stat *, struct fuse_entry_param *);
/* Fills it for a file that limefs_tree_lookup() found. */
int limefs_entry_node(struct limefs *, struct limefs_node *directory, const char *name,
                      const struct limefs_tree_entry *, struct fuse_entry_param *);
void limefs_entry_record(struct limefs *, struct limefs_snapshot *,
                         const struct limefile_record *, struct fuse_entry_param *);
/* Fills it for a file of an export; a function of exports.h has already counted the lookup. */
void limefs_entry_export(const struct limefs *, const struct limefs_export_entry *,
                         struct fuse_entry_param *);
void limefs_forget(struct limefs *, uint64_t id, uint64_t n);

/* Gets the current attributes of what a node id stands for. */
int limefs_attr_get(struct limefs *, uint64_t id, struct stat *);

#endif
