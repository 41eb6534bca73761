/* cells.h - what lime info says of checkpoints of particles; lime check: fieldcheck.h */
#ifndef CELLS_H
#define CELLS_H

#include "limecheckpoint.h"

#include <jansson.h>

/* True of the records that checkpoints consist of. */
bool cells_is_type(const char *type);

/* Whether the container has data of checkpoints. */
bool cells_any(const struct limefile_index *);

/* A paragraph for people; a JSON object. */
void cells_tell(const struct limecheckpoint *);
json_t *cells_json(const struct limecheckpoint *);

#endif
