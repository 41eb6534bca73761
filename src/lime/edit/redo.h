/* redo.h - complete a replacement of a record's data that a crash has interrupted */
#ifndef LIMEFILE_REDO_H
#define LIMEFILE_REDO_H

#include "limeedit.h"

/* Finds the new data behind the last record, whose header is at `last`, in a file of `size`
 * bytes. Returns 1 and fills `out`; 0 if no data match, or an error code. */
int limefile_redo_find(struct limefile_source *source, uint64_t last, uint64_t size,
                       struct limefile_redo *out);

/* Copies the new data into their record, cuts the file behind the last record and clears its
 * mark. The caller may repeat it after a crash or an error. */
int limefile_redo_apply(struct limefile_source *source, uint64_t last,
                        const struct limefile_redo *redo);

#endif
