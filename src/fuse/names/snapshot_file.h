/* snapshot_file.h - functions of snapshot_file.c for snapshot.c */
#ifndef LIMEFS_SNAPSHOT_FILE_H
#define LIMEFS_SNAPSHOT_FILE_H

#include "snapshot.h"

/* Opens the file behind the descriptor `file` again, with the daemon's own rights because all
 * readers will share it, and indexes it. limefs_snapshot_close_file() closes *out. Sets *st to
 * its attributes. expected: the identity that it must have, or NULL. Returns 0, LIMEFILE_E_...,
 * or -errno (-ESTALE: it does not have this identity). */
int limefs_snapshot_open_file(int file, const struct limefile_identity *expected,
                              struct limefs_container_file *out, struct stat *st);
void limefs_snapshot_close_file(const struct limefs_container_file *);

/* Stores the result of a check of the file. st: its attributes, unless another thread has
 * stored newer ones; NULL: they could not be read. The caller holds fs->lock. */
void limefs_snapshot_note_check(struct limefs_snapshot *, const struct stat *st);

#endif
