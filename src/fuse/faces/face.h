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

    /* Guarded by fs->lock. */
    bool found; /* it is in its bucket: the record is still as it was */
    struct limefs_face *next;
    uint64_t lookups; /* the kernel's, of all its files together */
    unsigned users;
    struct limefile_face *files; /* NULL: made again when it is used */
    struct limefs_face *newer, *older; /* among those that have files, and no user */
};

/* All with fs->lock held. */

/* The one of that name, or NULL. */
struct limefs_face *limefs_face_find(struct limefs *, const struct limefs_view *,
                                     uint64_t ordinal, const struct limefile_facename *);
int limefs_face_put(struct limefs *, struct limefs_face *); /* -ENOMEM */
void limefs_face_drop(struct limefs *, struct limefs_face *); /* if it is found */
void limefs_faces_drop(struct limefs *, const struct limefs_view *, uint64_t ordinal);

/* Somebody has it in use: the first user, or no longer, the last. What the latter gives is to be
 * closed without the lock: the files of the one that was longest without users. */
void limefs_face_wake(struct limefs *, struct limefs_face *);
struct limefile_face *limefs_face_rest(struct limefs *, struct limefs_face *);

bool limefs_face_is_changing(struct limefs *, const struct limefs_view *, uint64_t ordinal);

/* A number for each name that a face can have, below 256. */
unsigned limefs_face_code(const struct limefile_facename *);

#endif
