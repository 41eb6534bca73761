/* views.h - functions of viewfile.c for view.c */
#ifndef LIMEFS_VIEWS_H
#define LIMEFS_VIEWS_H

#include "view.h"

/* Opens and indexes the file behind a descriptor, with the daemon's own rights, as all readers
 * will share it. limefs_view_close() closes *out. expected: the file's required identity, or
 * NULL; *st: its attributes. Returns 0, -errno (-ESTALE: another file) or LIMEFILE_E_... */
int limefs_view_open(int file, const struct limefile_identity *expected,
                     struct limefs_opened *out, struct stat *st);
void limefs_view_close(const struct limefs_opened *);

/* Stores a check of the file. st: its attributes, or NULL if they could not be read; another
 * thread may have stored newer ones. The caller holds fs->lock. */
void limefs_view_note_look(struct limefs_view *, const struct stat *st);

#endif
