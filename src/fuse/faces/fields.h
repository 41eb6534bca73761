/*
 * fields.h - what the metadata of a container say of its records, kept while it is awake.
 */
#ifndef LIMEFS_FIELDS_H
#define LIMEFS_FIELDS_H

#include "faces.h"

struct limefs_fields {
    atomic_uint holders;
    struct limefile_index *index; /* which they need */
    struct limefile_fields fields;
};

/* With fs->lock held: they are not so any more, or the container is asleep. */
void limefs_fields_forget(struct limefs_view *);

#endif
