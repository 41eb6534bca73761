/*
 * holders.h - who else has a record open.
 */
#ifndef LIMEFS_HOLDERS_H
#define LIMEFS_HOLDERS_H

#include "view.h"

/* True if a process has a descriptor of the record to write to it, as far as /proc shows.
 * Without the writer's lock; asks nothing of the mount. */
bool limefs_record_is_held(struct limefs *, struct limefs_view *, uint64_t ordinal);

#endif
