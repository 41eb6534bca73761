/*
 * face.h - the inside of the room: faces that the kernel knows, and where they are found.
 */
#ifndef LIMEFS_FACE_H
#define LIMEFS_FACE_H

#include "faces.h"

struct limefs_face {
    uint32_t slot;
    uint64_t id;                  /* never used twice */
    struct limefs_view *view;     /* has one lookup of ours, so that it stays */
    uint64_t ordinal, generation; /* of the record */
    uint64_t digest;              /* of what describes the record */
    struct limefile_facename name;
    atomic_bool ready; /* its files can be read */

    /* Guarded by fs->lock. */
    bool found; /* it is in its bucket: the record is still as it was */
    struct limefs_face *next;
    uint64_t lookups; /* the kernel's, of all its files together */
    unsigned users;
    struct limefile_face *files;       /* NULL: made again when it is used */
    struct limefs_face *newer, *older; /* among those that have files, and no user */
};

/* All with fs->lock held. */

/* The one of that name, or NULL. */
struct limefs_face *limefs_face_find(struct limefs *, const struct limefs_view *,
                                     uint64_t ordinal, const struct limefile_facename *);
int limefs_face_put(struct limefs *, struct limefs_face *);   /* -ENOMEM */
void limefs_face_drop(struct limefs *, struct limefs_face *); /* if it is found */
void limefs_faces_drop(struct limefs *, const struct limefs_view *, uint64_t ordinal);

/* Its files are kept as long as it is: to make them ready takes long. */
static inline bool limefs_face_is_kept(const struct limefs_face *face)
{
    return limefile_face_is_whole(&face->name);
}

/* Somebody has it in use: the first user, or no longer, the last. What the latter gives is to
 * be closed without the lock: the files of the one that was longest without users. */
void limefs_face_wake(struct limefs *, struct limefs_face *);
struct limefile_face *limefs_face_rest(struct limefs *, struct limefs_face *);

bool limefs_face_is_changing(struct limefs *, const struct limefs_view *, uint64_t ordinal);

/* ---- face.c, without the lock ---- */

/* All that a face could be made of. */
uint64_t limefs_face_digest(const struct limefile_field *);

/* What a pinned view's record is; what `field` points to lives as long as `fields`, which the
 * caller releases, also after an error. LIMEFILE_E_NO_RECORD: it is no field. */
int limefs_face_describe(struct limefs *, struct limefs_view *, uint64_t ordinal,
                         struct limefs_fields **, struct limefile_field *field);

/* LIMEFILE_E_NO_RECORD if it has no such face, also if that has more files than can be told
 * apart. */
int limefs_face_files_open(const struct limefile_field *, const struct limefile_facename *,
                           struct limefile_face **);

/* The files of one in use, whose view is pinned, are there again. -ESTALE: it is of another
 * time. */
int limefs_face_open_again(struct limefs *, struct limefs_face *);

/* A user less; and one that was never known, or is no longer, is freed. */
void limefs_face_let_go(struct limefs *, struct limefs_face *);
void limefs_face_bury(struct limefs *, struct limefs_face *);

/* Whether whole files can be of it: SU(3) in four dimensions (listed.c). */
bool limefs_face_is_configuration(const struct limefile_field *);

/* A number for each name that a face can have, below 256. */
unsigned limefs_face_code(const struct limefile_facename *);

#endif
