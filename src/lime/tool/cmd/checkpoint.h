/*
 * checkpoint.h - recognize and print checkpoints of particles. field_check.h declares the
 * function that compares the particles with their indexes.
 */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "limecheckpoint.h"

#include <jansson.h>

/* True if records of this type are part of a checkpoint. */
bool is_checkpoint_type(const char *type);

/* True if the container has the data record of at least one checkpoint. */
bool has_checkpoint(const struct limefile_index *);

/* Prints the checkpoint as text. */
void print_checkpoint(const struct limecheckpoint *);

/* Returns the checkpoint as a new JSON object. */
json_t *checkpoint_json(const struct limecheckpoint *);

#endif
