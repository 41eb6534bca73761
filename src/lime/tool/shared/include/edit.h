/* edit.h - a container that a sub-command changes: locked, indexed, with an editor */
#ifndef EDIT_H
#define EDIT_H

#include "container.h"
#include "copy.h"
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

/*
 * The following, but for edit_append(), return an exit status, after a message if it is not
 * GOOD, and come back when all is on the disk. What a crash leaves is the container as it was,
 * or as it is to be, but for a tail that lime repair cuts. The struct edit is good for nothing
 * but edit_close() afterwards.
 */

/* Writes the container anew without an inner record. */
int edit_remove(struct edit *, const struct limefile_record *);

/* Adds a record after another one: at the end, or in a container that is written anew. */
int edit_insert(struct edit *, const struct limefile_record *after,
                const struct limefile_insert *insert);

/* Appends a record with the data of a feed; several may be appended. False after a message:
 * then edit_take_back() removes all that have been appended, and returns TOOL_BAD. */
bool edit_append(struct edit *, const char *type, bool begins_message, struct feed *,
                 struct progress *);
int edit_take_back(struct edit *);

/* Other data in a record, from a sized feed: in place (data of the same length, or the last
 * record), or in a container that is written anew. */
int edit_replace(struct edit *, const struct limefile_record *, struct feed *, bool in_place);

/* ---- small records ---- */

/* A new record at the end of the container, in its last message. */
int record_append(struct edit *, const char *type, const void *data, size_t n);

/* Other data in a record: in place if there is room, filled up with `fill`; the last record of
 * a container gets the right length too. Else the container is written anew. */
int record_put(struct edit *, const struct limefile_record *, const void *data, size_t n,
               char fill);

#endif
