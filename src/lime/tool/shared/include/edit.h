/* edit.h - lock, index and change a container for a sub-command */
#ifndef EDIT_H
#define EDIT_H

#include "container.h"
#include "record_input.h"
#include "limeedit.h"

struct edit {
    struct container c;
    struct limefile_editor *editor;
};

/* Opens and locks the file that `path` leads to; tries again if another process has replaced it
 * before the lock. Prints a warning if the file system has no locks. test: opens for reading
 * and only tests the lock. Returns an exit status, after a message if it is not GOOD; the
 * caller closes *fd only after GOOD. */
int edit_open_locked(const char *path, bool test, int *fd);

/* Opens a container for writing, locks and indexes it. Refuses one that needs 'lime repair'.
 * Returns an exit status, after a message if it is not GOOD; edit_close() only after GOOD. */
int edit_open(struct edit *, const char *path);
void edit_close(struct edit *);

/* Returns true if the record was the last one when edit_open() was called. */
bool edit_is_last(const struct edit *, const struct limefile_record *);

/* The functions below, except edit_append(), return an exit status: GOOD when the change is on
 * the disk, otherwise another one after a message. A crash leaves the old or the new container,
 * perhaps with a tail that lime repair cuts. Afterwards, only edit_close() may be called. */

/* Removes a record that is not the last one: writes a new container. */
int edit_remove(struct edit *, const struct limefile_record *);

/* Inserts a record after another one: appends it, or writes a new container. */
int edit_insert(struct edit *, const struct limefile_record *after,
                const struct limefile_new_record *insert);

/* Appends a record with the data of an input; several may be appended. Returns false after a
 * message: then edit_rollback() removes all appended records and returns TOOL_BAD. */
bool edit_append(struct edit *, const char *type, bool begins_message, struct input *,
                 struct progress *);
int edit_rollback(struct edit *);

/* Replaces a record's data by an input that has a size. in_place: changes the container itself,
 * which requires the same length or the last record; otherwise writes a new container. */
int edit_replace(struct edit *, const struct limefile_record *, struct input *, bool in_place);

/* Appends a new record to the last message of the container. */
int record_append(struct edit *, const char *type, const void *data, size_t n);

/* Replaces a record's data. Writes a new container if the old data are longer than
 * LIMEFILE_XML_BYTES_MAX, or if the new ones are longer and the record is not the last one.
 * Otherwise in place: the last record gets the new length; others are padded with `fill`. */
int record_replace(struct edit *, const struct limefile_record *, const void *data, size_t n,
                   char fill);

#endif
