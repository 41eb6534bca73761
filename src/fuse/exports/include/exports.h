/*
 * exports.h - exports of records: files in other formats that the mount shows next to the
 * record of a field (limeexport.h).
 *
 * A struct limefs_export is one export that the kernel has looked up. It has a slot (inode.h).
 * The ordinal of a file or directory in an export is its number (limeexport.h) + 1, so 1 if the
 * export is a single file. If the export is a directory, this directory has ordinal 0. Each
 * export belongs to one state of its record: after this mount has written to the record or to
 * the metadata that describe it, the next look-up makes a new export with a new slot, and a
 * program that has the old one open gets ESTALE. So no read mixes old and new bytes, and the
 * kernel's cached pages are right.
 *
 * A container's metadata are read at the first look-up of an export in it. Functions that
 * return an int give 0 or a negative code for limefs_errno().
 */
#ifndef LIMEFS_EXPORTS_H
#define LIMEFS_EXPORTS_H

#include "limeexport.h"
#include "snapshot.h"

struct limefs_export;
struct limefs_fields;

/* Call limefs_exports_init() before the mount, the other after all files are closed. */
int limefs_exports_init(struct limefs *);
void limefs_exports_release(struct limefs *);

/* ---- look-ups: limefs_export_lookup*() add one, limefs_export_forget() drops n ---- */

/* What the kernel gets for a file or directory. */
struct limefs_export_entry {
    uint64_t id, generation;
    struct stat st;
};

/* Looks up the export of that name in a container. LIMEFILE_E_NO_RECORD: it does not exist. A
 * record of that name has precedence: the caller must look it up first. */
int limefs_export_lookup(struct limefs *, struct limefs_node *container, const char *name,
                         struct limefs_export_entry *);

/* Looks up a name in the directory of the export that has the ordinal `parent`. */
int limefs_export_lookup_child(struct limefs *, struct limefs_export *, uint64_t parent,
                               const char *name, struct limefs_export_entry *);

void limefs_export_forget(struct limefs *, struct limefs_export *, uint64_t n);

/* True if the container has an export, but no record, of that name. */
bool limefs_export_exists(struct limefs *, struct limefs_node *container, const char *name);

/* Gets the current attributes of a file or directory of the export. */
int limefs_export_getattr(struct limefs *, struct limefs_export *, uint64_t ordinal,
                          struct stat *);

/* ---- use ---- */

/* Begin and end a use; in between, files and snapshot are open. -ESTALE: the record changed. */
int limefs_export_acquire(struct limefs *, struct limefs_export *);
void limefs_export_release(struct limefs *, struct limefs_export *);

/* Like limefs_export_acquire(), when a program opens the entry (file or directory) with that
 * ordinal; sets *entry. -EACCES: no read permission; -ESTALE: the entry no longer exists. */
int limefs_export_acquire_entry(struct limefs *, struct limefs_export *, uint64_t ordinal,
                                struct limefile_export_entry *entry);

/* An export must be ready before it is read. limefs_export_prepare() reads the whole record to
 * make an export in use ready; only one thread at a time may call it. -EBUSY: the record is
 * being written; -EINTR: *stop was set. */
bool limefs_export_is_ready(const struct limefs_export *);
int limefs_export_prepare(struct limefs *, struct limefs_export *, atomic_bool *stop);

/* True if a sequential read of the export jumps back and forth in the record. */
bool limefs_export_is_reordered(const struct limefs_export *);

/* For an export in use: its files, its snapshot and the ordinal of its record. */
const struct limefile_export *limefs_export_files(const struct limefs_export *);
struct limefs_snapshot *limefs_export_snapshot(const struct limefs_export *);
uint64_t limefs_export_record(const struct limefs_export *);

/* Returns the inode number that programs see. */
ino_t limefs_export_visible_ino(struct limefs *, const struct limefs_export *,
                                uint64_t ordinal);

/* Gets the entry with that ordinal of an export in use. False: there is no such entry. */
bool limefs_export_get_entry(const struct limefs_export *, uint64_t ordinal,
                             struct limefile_export_entry *);

/* Counts a lookup of the entry by the kernel, and sets *out to what the kernel gets. */
void limefs_export_add_lookup(struct limefs *, struct limefs_export *, uint64_t ordinal,
                              const struct limefile_export_entry *,
                              struct limefs_export_entry *out);

/* Returns 0, or -ESTALE if this mount is writing, or has written, to the export's record. */
int limefs_export_validate(struct limefs *, const struct limefs_export *);

/* ---- changes of a record ---- */

/* Call these before and after this mount changes a record's bytes or length: the record's
 * exports become invalid. The caller owns the struct and must not move it between the calls. */
struct limefs_export_change {
    struct limefs_export_change *next, **link;
    const struct limefs_snapshot *snap;
    uint64_t ordinal;
};
void limefs_export_change_begin(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                                struct limefs_export_change *);
void limefs_export_change_end(struct limefs *, struct limefs_snapshot *,
                              struct limefs_export_change *);

/* ---- listings (-o faces) ---- */

/* Gets the fields of a pinned snapshot; the caller must release them. The first call for a
 * snapshot reads the container's metadata, which may take long. */
int limefs_fields_get(struct limefs *, struct limefs_snapshot *, struct limefs_fields **);
void limefs_fields_release(struct limefs_fields *); /* NULL: does nothing */

/* Gets the name of the next export in a listing of all records of the snapshot, and its inode
 * number and type in *st. *i is the place in the listing, 0 at first. False: no more. */
bool limefs_export_next_name(struct limefs *, struct limefs_snapshot *,
                             const struct limefs_fields *, uint64_t *i,
                             char name[LIMEFILE_NAME_MAX + 1], struct stat *);

#endif
