/* edit.h - a container that a sub-command changes: locked, indexed, with an editor */
#ifndef EDIT_H
#define EDIT_H

#include "container.h"
#include "limeedit.h"

struct edit {
    struct container c;
    struct limefile_editor *editor;
};

/* Opens and locks the file that `path` leads to once it is locked. Where there are no locks, it
 * prints a warning. test: opens it for reading and only tests the lock. Returns an exit status,
 * after a message if it is not GOOD; the caller closes *fd only after GOOD. */
int edit_open_locked(const char *path, bool test, int *fd);

/* Opens for writing and locks. Refuses what is no container, and what lime repair has to see to
 * first. An exit status, after a message if it is not GOOD; edit_close() only after GOOD. */
int edit_open(struct edit *, const char *path);
void edit_close(struct edit *);

bool edit_is_last(const struct edit *, const struct limefile_record *);

/* Reports what limefile_redo_commit() or limefile_redo_begin() returned: an exit status, after
 * a message if it is not GOOD. */
int edit_replaced(const struct edit *, const struct limefile_redo *, int err);

/* limefile_rewrite() with a bar; an exit status, after a message if it is not GOOD. The struct
 * is good for nothing but edit_close() afterwards. */
int edit_rewrite(struct edit *, const struct limefile_record *,
                 const struct limefile_piece *pieces, size_t count);

/* limefile_rewrite_insert(), in the same way. */
int edit_insert(struct edit *, const struct limefile_record *after,
                const struct limefile_insert *insert);

/* ---- small records ---- */

/*
 * All return an exit status, after a message if it is not GOOD, and come back when all is on
 * the disk. What a crash leaves is the container as it was, or as it is to be, but for a tail
 * that lime repair cuts. The struct edit is good for nothing but edit_close() afterwards.
 */

/* A new record at the end of the container, in its last message. */
int record_append(struct edit *, const char *type, const void *data, size_t n);

/* Other data in a record: in place if there is room, filled up with `fill`; the last record of
 * a container gets the right length too. Else the container is written anew. */
int record_put(struct edit *, const struct limefile_record *, const void *data, size_t n,
               char fill);

#endif
