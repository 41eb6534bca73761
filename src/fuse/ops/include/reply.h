/*
 * reply.h - what the kernel is told: attributes, entries, errors.
 */
#ifndef LIMEFS_REPLY_H
#define LIMEFS_REPLY_H

#include "faces.h"
#include "view.h"

#include <fuse_lowlevel.h>

/* A negative code of ours or of limefile's as the errno that a reader should see. */
int limefs_errno(int code);

/* Attributes of what a node stands for (st: its file's). */
void limefs_attr_node(const struct limefs *, const struct limefs_node *, const struct stat *st,
                      struct stat *out);

/* Look-ups for a reply; each takes one lookup, which limefs_forget() gives back. */
int limefs_entry(struct limefs *, uint64_t parent, const char *name, struct fuse_entry_param *);
/* Of a file of the tree that has just been made, whatever has its name by now. */
int limefs_entry_made(struct limefs *, struct limefs_node *directory, const char *name,
                      const struct stat *, struct fuse_entry_param *);
/* Of what was found in the tree. */
int limefs_entry_node(struct limefs *, struct limefs_node *directory, const char *name,
                      const struct limefs_found *, struct fuse_entry_param *);
void limefs_entry_record(struct limefs *, struct limefs_view *, const struct limefile_record *,
                         struct fuse_entry_param *);
/* Of what the room of faces has looked up. */
void limefs_entry_face(const struct limefs *, const struct limefs_face_entry *,
                       struct fuse_entry_param *);
void limefs_forget(struct limefs *, uint64_t id, uint64_t n);

/* Current attributes of anything that has a node id. */
int limefs_attr(struct limefs *, uint64_t id, struct stat *);

#endif
