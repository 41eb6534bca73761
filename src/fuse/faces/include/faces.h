/*
 * faces.h - exports of records: files in other formats that the mount shows next to the record
 * of a field (limeface.h).
 *
 * A struct limefs_face is one export that the kernel has looked up. It has a slot (inode.h).
 * Ordinal 0 is the export itself if it is a directory; the files and directories in it are the
 * ordinals from 1 (the numbers of limeface.h + 1). An export belongs to one state of its
 * record: when this mount writes to the record, or changes what describes it, the next look-up
 * makes a new export with a new slot, and a program that has the old one open gets ESTALE. So
 * no read mixes old and new bytes, and the kernel's cached pages of an export are always right.
 *
 * A container's metadata are read at the first look-up of an export in it. Functions that
 * return an int give 0 or a negative code for limefs_errno().
 */
#ifndef LIMEFS_FACES_H
#define LIMEFS_FACES_H

#include "limeface.h"
#include "view.h"

struct limefs_face;
struct limefs_fields;

/* Called before the mount, and after all files are closed. */
int limefs_faces_begin(struct limefs *);
void limefs_faces_release(struct limefs *);

/* ---- look-ups: each takes one lookup, which limefs_face_forget() drops ---- */

/* What the kernel gets for a file or directory. */
struct limefs_face_entry {
    uint64_t id, generation;
    struct stat st;
};

/* Looks up the export of that name in a container. LIMEFILE_E_NO_RECORD: it does not exist. A
 * record of that name has precedence: the caller must look it up first. */
int limefs_face_lookup(struct limefs *, struct limefs_node *container, const char *name,
                       struct limefs_face_entry *);

/* Looks up a file or directory in the directory `parent`, an ordinal, of an export. */
int limefs_face_lookup_in(struct limefs *, struct limefs_face *, uint64_t parent,
                          const char *name, struct limefs_face_entry *);

void limefs_face_forget(struct limefs *, struct limefs_face *, uint64_t n);

/* True if that is the name of an export in the container, and not also of a record. */
bool limefs_face_is_there(struct limefs *, struct limefs_node *container, const char *name);

/* Gets the current attributes of a file or directory of the export. */
int limefs_face_attr(struct limefs *, struct limefs_face *, uint64_t ordinal, struct stat *);

/* ---- use ---- */

/* While an export is in use, its files are open and its snapshot is pinned. -ESTALE: the record
 * has changed. */
int limefs_face_use(struct limefs *, struct limefs_face *);
void limefs_face_leave(struct limefs *, struct limefs_face *);

/* Like limefs_face_use(), to open the file or directory of that ordinal, and sets *entry to it.
 * The caller needs read permission. -ESTALE: the container has changed, or no such entry. */
int limefs_face_enter(struct limefs *, struct limefs_face *, uint64_t ordinal,
                      struct limefile_face_entry *entry);

/* Only a ready export can be read. limefs_face_prepare() makes one in use ready: it reads the
 * whole record. One thread at a time. -EBUSY: the record is being written; -EINTR: *stop. */
bool limefs_face_is_ready(const struct limefs_face *);
int limefs_face_prepare(struct limefs *, struct limefs_face *, atomic_bool *stop);

/* True if the export has the record's sites in an order that jumps back and forth. */
bool limefs_face_jumps(const struct limefs_face *);

/* For an export in use: its files, its snapshot and the ordinal of its record. */
const struct limefile_face *limefs_face_files(const struct limefs_face *);
struct limefs_view *limefs_face_view(const struct limefs_face *);
uint64_t limefs_face_record(const struct limefs_face *);

/* Returns the inode number that programs see. */
ino_t limefs_face_shown(struct limefs *, const struct limefs_face *, uint64_t ordinal);

/* Gets the file or directory of an ordinal. False: it does not exist. */
bool limefs_face_entry_of(const struct limefs_face *, uint64_t ordinal,
                          struct limefile_face_entry *);

/* Takes one lookup of an entry, and sets `out`. */
void limefs_face_take(struct limefs *, struct limefs_face *, uint64_t ordinal,
                      const struct limefile_face_entry *, struct limefs_face_entry *out);

/* Returns 0, or -ESTALE if this mount has written to the record. */
int limefs_face_check(struct limefs *, const struct limefs_face *);

/* ---- changes of a record ---- */

/* Called before and after this mount changes bytes or length of a record: ends its exports. The
 * caller owns the struct, which must stay where it is in between. */
struct limefs_face_change {
    struct limefs_face_change *next, **link;
    const struct limefs_view *snap;
    uint64_t ordinal;
};
void limefs_face_change(struct limefs *, struct limefs_view *, uint64_t ordinal,
                        struct limefs_face_change *);
void limefs_face_changed(struct limefs *, struct limefs_view *, struct limefs_face_change *);

/* ---- listings (-o faces) ---- */

/* Gets the fields of a pinned snapshot, which the caller releases. The first call reads them
 * from the container's metadata, which may take long. */
int limefs_fields_of(struct limefs *, struct limefs_view *, struct limefs_fields **);
void limefs_fields_release(struct limefs_fields *); /* or NULL */

/* Gets the first name from number *i on among all exports of all records of the snapshot, and
 * sets *i to the number to go on from. False: there are no more. */
bool limefs_face_listed(struct limefs *, struct limefs_view *, const struct limefs_fields *,
                        uint64_t *i, char name[LIMEFILE_NAME_MAX + 1], struct stat *);

#endif
