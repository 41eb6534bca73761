/*
 * writer.h - a container that is written to: its lock, its last record, what is being replaced.
 *
 * There is one for each view that was ever written to. While somebody uses it, the container
 * is locked against other writers and open for writing; the view shows what it does at once.
 *
 * Bytes are moved with the lock shared, so that any number of requests move some at once;
 * whatever changes where bytes belong has it alone.
 *
 * Three kinds of records can be written to:
 *   the last one   of any length, in place; limefile_commit() makes its length known
 *   an inner one   in place, within its length
 *   a replaced one an inner record after O_TRUNC or a change of its length: what is written
 *                  is collected in a file without a name, and put in its place when it is
 *                  synced
 */
#ifndef LIMEFS_WRITER_H
#define LIMEFS_WRITER_H

#include "store.h"
#include "view.h"

struct limefs_writer;
struct limefs_target; /* a record that somebody has open for writing */

/* Before anything is mounted: writers go with their views. */
void limefs_writers_begin(struct limefs *);

/* A pinned view's record for writing; the container is locked and made good first, if it was
 * not. -EBUSY: somebody else writes to it; -EROFS, -EACCES ...; the log says what to do.
 * `appends`: only at its end; -EPERM for an inner one. */
int limefs_target_open(struct limefs *, struct limefs_view *, uint64_t ordinal, bool appends,
                       struct limefs_target **);
uint64_t limefs_target_ordinal(const struct limefs_target *);

/* The last user takes back what was not finished. `forced`: the mount ends, and what is not
 * closed is not complete. */
void limefs_target_close(struct limefs *, struct limefs_target *, bool forced);

/* How many bytes, all of them, or -errno. Behind its end a record grows. */
ssize_t limefs_target_write(struct limefs *, struct limefs_target *, const char *buf, size_t n,
                            uint64_t offset);

/* All that was written to the record is on the disk, with its length. `closing`: a descriptor
 * is closed; where there is a copy of it, and nothing was written yet, this is for later. */
int limefs_target_sync(struct limefs *, struct limefs_target *, bool closing);

int limefs_target_allocate(struct limefs *, struct limefs_target *, int mode, uint64_t offset,
                           uint64_t bytes);

/* ---- by ordinal, of a pinned view; the container is locked for as long as it takes ---- */

/* `emptied`: by O_TRUNC. */
int limefs_record_resize(struct limefs *, struct limefs_view *, uint64_t ordinal,
                         uint64_t bytes, bool emptied);

/* A further record, of that file name; *target has it open. */
int limefs_record_append(struct limefs *, struct limefs_view *, const char *name,
                         struct limefs_target **target);

/* It was appended, and not committed yet. */
bool limefs_record_is_new(struct limefs_view *, uint64_t ordinal);

/* The one of that file name. -ENOENT if it goes meanwhile, whatever has its number by then. */
int limefs_record_remove(struct limefs *, struct limefs_view *, const char *name);

/* "type", "mb" or "me". */
int limefs_record_set(struct limefs *, struct limefs_view *, uint64_t ordinal, const char *key,
                      const char *value, size_t len);

/* Times of access and change, as for utimensat(). Those of a record that is collected beside
 * the container are for the container that will hold it. */
int limefs_record_set_times(struct limefs *, struct limefs_view *, uint64_t ordinal,
                            const struct timespec times[2]);

/* A kernel that caches what is written keeps the time of change, and tells it between writes.
 * The container gets it when the record is synced or closed: to set it waits until nobody
 * writes to the container, and the kernel, which sends no writes meanwhile, for that. False: no
 * time that can be kept. */
bool limefs_target_note_mtime(struct limefs_target *, const struct timespec *);

/* ---- for readers ---- */

/* The record's data now: `fd` has them from `at` on. */
struct limefs_place {
    int fd;
    uint64_t at, bytes;
    uint64_t shape; /* as long as the writer has this one, the record is there */
};

/* Until limefs_place_leave() they stay there. Only of views that have a writer. */
int limefs_place_enter(struct limefs *, struct limefs_view *, uint64_t ordinal,
                       struct limefs_place *);
void limefs_place_leave(struct limefs_view *);

/* Between the two: what is on its way to those n bytes of the container gets there. */
void limefs_place_gather(struct limefs *, struct limefs_view *, uint64_t at, size_t n);

/* How long the record is now, which the index may not know yet. */
uint64_t limefs_record_bytes(struct limefs *, struct limefs_view *,
                             const struct limefile_record *);

/* ---- the mount ---- */

/* Locks a container for as long as it is mounted, and then one that takes its place. */
int limefs_writer_hold(struct limefs *, struct limefs_view *);
void limefs_writer_let_go(struct limefs *);

#endif
