/* snapshot_file.h - functions of snapshot_file.c for snapshot.c */
#ifndef LIMEFS_SNAPSHOT_FILE_H
#define LIMEFS_SNAPSHOT_FILE_H

#include "snapshot.h"

/* Opens and indexes the file behind a descriptor, with the daemon's own rights, as all readers
 * will share it. limefs_snapshot_close_file() closes *out. expected: the file's required
 * identity, or NULL; *st: its attributes. 0, -errno (-ESTALE: another file), LIMEFILE_E_... */
int limefs_snapshot_open_file(int file, const struct limefile_identity *expected,
                              struct limefs_container_file *out, struct stat *st);
void limefs_snapshot_close_file(const struct limefs_container_file *);

/* Stores the result of a check of the file. st: its attributes, or NULL if they could not be
 * read; another thread may have stored newer ones. The caller holds fs->lock. */
void limefs_snapshot_note_check(struct limefs_snapshot *, const struct stat *st);

#endif
