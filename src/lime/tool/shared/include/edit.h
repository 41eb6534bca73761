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

/* Opens and locks the file that `path` leads to; tries again if another process has replaced
 * the file before it was locked. Prints a warning if the file system has no locks. test: opens
 * the file for reading, and checks that it could be locked. Returns TOOL_GOOD, and the caller
 * must close *fd; or another exit status after a message. */
int edit_open_locked(const char *path, bool test, int *fd);

/* Opens, locks and indexes a container for writing. Refuses one that needs 'lime repair'. The
 * caller must call edit_close() after TOOL_GOOD. Other exit statuses come after a message. */
int edit_open(struct edit *, const char *path);
void edit_close(struct edit *);

/* Returns true if the record was the last one when edit_open() was called. */
bool edit_is_last(const struct edit *, const struct limefile_record *);

/* The functions below, except edit_append(), return an exit status: TOOL_GOOD if the change is
 * on the disk, or another one after a message. After any of them, only edit_close() may be
 * called. A crash leaves the old or the new container, perhaps with a tail that 'lime repair'
 * cuts off. */

/* Removes a record that is not the last one: writes a new container. */
int edit_remove(struct edit *, const struct limefile_record *);

/* Inserts a record after the record `after`: appends it if `after` is the last one, otherwise
 * writes a new container. */
int edit_insert(struct edit *, const struct limefile_record *after,
                const struct limefile_new_record *insert);

/* Appends a record with the data of an input. Can be called several times. Returns false after
 * a message; the caller must then call edit_rollback(), which removes all appended records and
 * returns TOOL_BAD. */
bool edit_append(struct edit *, const char *type, bool begins_message, struct input *,
                 struct progress *);
int edit_rollback(struct edit *);

/* Replaces a record's data by an input that has a size. in_place: true: changes the container
 * itself; the record must be the last one or keep its length. false: writes a new container. */
int edit_replace(struct edit *, const struct limefile_record *, struct input *, bool in_place);

/* Appends a record to the last message of the container. */
int edit_append_small(struct edit *, const char *type, const void *data, size_t n);

/* Replaces a record's data. Writes a new container if the old data are longer than
 * LIMEFILE_XML_BYTES_MAX, or if the new data are longer than the old data and the record is not
 * the last one. Otherwise changes the container in place: the last record gets the new length;
 * in any other record, `fill` pads the new data to the old length. */
int edit_replace_small(struct edit *, const struct limefile_record *, const void *data,
                       size_t n, char fill);

#endif
