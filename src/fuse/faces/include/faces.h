/*
 * faces.h - the faces of records: files in other forms that are found beside a record of a
 * field (limeface.h), and the names by which the kernel knows them.
 *
 * A face that the kernel has looked up has a slot; ordinal 0 is the face itself if it is a
 * directory, and its files, and the directories in it, are the ordinals from 1 (the library's
 * numbers + 1). It is of one record as it is: when this mount writes to the record, or changes
 * what describes it, the next look-up makes another face with another slot, and whoever still
 * has the old one open gets ESTALE. So no reader gets old bytes with new ones, and the kernel's
 * pages of a face are always right.
 *
 * Nothing is known of fields before somebody looks up a face in that container.
 */
#ifndef LIMEFS_FACES_H
#define LIMEFS_FACES_H

#include "limeface.h"
#include "view.h"

struct limefs_face;
struct limefs_fields;

/* Before anything is mounted, and after all files are closed. */
int limefs_faces_begin(struct limefs *);
void limefs_faces_release(struct limefs *);

/* ---- look-ups; each takes one, which limefs_face_forget() gives back ---- */

/* What the kernel is told of one. */
struct limefs_face_entry {
    uint64_t id, generation;
    struct stat st;
};

/* The face of that name of one of the container's records; LIMEFILE_E_NO_RECORD if there is
 * none. A record of the same name comes first: the caller has looked for that. */
int limefs_face_lookup(struct limefs *, struct limefs_node *container, const char *name,
                       struct limefs_face_entry *);

/* A file or directory in a face's directory `parent`, an ordinal. */
int limefs_face_lookup_in(struct limefs *, struct limefs_face *, uint64_t parent,
                          const char *name, struct limefs_face_entry *);

void limefs_face_forget(struct limefs *, struct limefs_face *, uint64_t n);

/* True if that is the name of a face of one of the container's records, and of no record. */
bool limefs_face_is_there(struct limefs *, struct limefs_node *container, const char *name);

/* Current attributes of one of its files. */
int limefs_face_attr(struct limefs *, struct limefs_face *, uint64_t ordinal, struct stat *);

/* ---- one in use ---- */

/* From now on, and no longer; its view is pinned meanwhile. -ESTALE if the record is not as it
 * was; LIMEFILE_E_STATE if it has no such face. */
int limefs_face_use(struct limefs *, struct limefs_face *);
void limefs_face_leave(struct limefs *, struct limefs_face *);

/* The same for who opens the file or directory of that ordinal, which becomes *entry: if the
 * caller may read the container, and it is as the face shows it. -ESTALE: there is none. */
int limefs_face_enter(struct limefs *, struct limefs_face *, uint64_t ordinal,
                      struct limefile_face_entry *entry);

/* One in use whose files cannot be read yet; and makes that they can: reads all of the record.
 * One thread at a time. -EBUSY: somebody is writing it. */
bool limefs_face_is_ready(const struct limefs_face *);
int limefs_face_prepare(struct limefs *, struct limefs_face *, atomic_bool *stop);

/* Its bytes are made of parts of the record that are not in order. */
bool limefs_face_jumps(const struct limefs_face *);

/* Of one that is in use. */
const struct limefile_face *limefs_face_files(const struct limefs_face *);
struct limefs_view *limefs_face_view(const struct limefs_face *);
uint64_t limefs_face_record(const struct limefs_face *); /* its ordinal */

ino_t limefs_face_shown(struct limefs *, const struct limefs_face *, uint64_t ordinal);

/* What an ordinal is; false: there is no such file or directory. */
bool limefs_face_entry_of(const struct limefs_face *, uint64_t ordinal,
                          struct limefile_face_entry *);

/* Once more a look-up of an entry; `out` has its attributes then. */
void limefs_face_take(struct limefs *, struct limefs_face *, uint64_t ordinal,
                      const struct limefile_face_entry *, struct limefs_face_entry *out);

/* 0, or -ESTALE since this mount has written to the record. */
int limefs_face_check(struct limefs *, const struct limefs_face *);

/* ---- the record is written to ---- */

/* Around a change of a record's bytes or length by this mount. */
struct limefs_face_change {
    struct limefs_face_change *next, **at;
    const struct limefs_view *view;
    uint64_t ordinal;
};
void limefs_face_change(struct limefs *, struct limefs_view *, uint64_t ordinal,
                        struct limefs_face_change *);
void limefs_face_changed(struct limefs *, struct limefs_view *, struct limefs_face_change *);

/* ---- listed (-o faces) ---- */

/* What is known of a pinned view's fields: read from its metadata if nobody has asked before,
 * which may take long. The caller releases it. */
int limefs_fields_of(struct limefs *, struct limefs_view *, struct limefs_fields **);
void limefs_fields_release(struct limefs_fields *); /* or NULL */

/* The first name from number *i on among those of all faces of all records of the view; *i is
 * the number to go on from. False: there are no more. */
bool limefs_face_listed(struct limefs *, struct limefs_view *, const struct limefs_fields *,
                        uint64_t *i, char name[LIMEFILE_NAME_MAX + 1], struct stat *);

#endif
