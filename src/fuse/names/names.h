/*
 * names.h - how inode.c finds its nodes: all by (parent, name), files by (device, inode) as
 * well, since one may have several names. All with fs->lock held.
 */
#ifndef LIMEFS_NAMES_H
#define LIMEFS_NAMES_H

#include "inode.h"

/* By parent and name; limefs_node_find() finds it. */
void limefs_name_put(struct limefs *, struct limefs_node *);
void limefs_name_take(struct limefs *, struct limefs_node *); /* if it is there */

/* By its stamp. Without memory it is found by its name alone. */
void limefs_number_put(struct limefs *, struct limefs_node *);
void limefs_number_take(struct limefs *, struct limefs_node *); /* if it is there */
struct limefs_node *limefs_number_find(struct limefs *, const struct limefile_identity *);

/* The node's own copy of a name that it has from now on, or NULL if there is no memory. A
 * file's are read with the lock held alone; of others, who has read one may go on using it, so
 * these last as long as the node. */
const char *limefs_name_keep(struct limefs *, struct limefs_node *, struct limefs_node *parent,
                             const char *name);

/* It has that name no longer, which is not the one that it is found by. */
void limefs_name_lose(struct limefs *, struct limefs_node *, struct limefs_node *parent,
                      const char *name);

/* All names of a node that is no longer found. */
void limefs_names_free(struct limefs *, struct limefs_name *);

#endif
