/* views.h - what viewfile.c does for view.c */
#ifndef LIMEFS_VIEWS_H
#define LIMEFS_VIEWS_H

#include "view.h"

/* Opens and indexes the file behind a descriptor, which all readers will share: with the
 * daemon's own rights. want: what it must be, or NULL. st: what it is. -ESTALE, LIMEFILE_E_...
 */
int limefs_view_open(int file, const struct limefile_identity *want, struct limefs_opened *out,
                     struct stat *st);
void limefs_view_close(const struct limefs_opened *);

/* With fs->lock held; st: of its file, or NULL if it could not be told. Somebody else may have
 * looked since. */
void limefs_view_note_look(struct limefs_view *, const struct stat *st);

#endif
