/* checkpoint.h - print checkpoints of particles for lime info; lime check uses field_check.h */
#ifndef CELLS_H
#define CELLS_H

#include "limecheckpoint.h"

#include <jansson.h>

/* True if records of this type are part of a checkpoint. */
bool is_checkpoint_type(const char *type);

/* True if the container has the data record of at least one checkpoint. */
bool has_checkpoint(const struct limefile_index *);

/* Prints the checkpoint as a paragraph of text; returns it as a new JSON object. */
void print_checkpoint(const struct limecheckpoint *);
json_t *checkpoint_json(const struct limecheckpoint *);

#endif
