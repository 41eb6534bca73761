/* redo.h - complete a replacement of a record's data that a crash has interrupted */
#ifndef LIMEFILE_REDO_H
#define LIMEFILE_REDO_H

#include "limeedit.h"

/* Finds the new data behind the last record, whose header is at `last`, in a file of `size`
 * bytes and whose mark is MARK_REPLACING. Returns 1 and fills `out`; 0 if it has no valid
 * new data, or an error code: `out` is not to be used then. */
int limefile_redo_find(struct limefile_source *source, uint64_t last, uint64_t size,
                       struct limefile_redo *out);

/* Copies the new data into the record at redo->target. Then cuts the file behind the last
 * record, whose header is at `last`, and clears the mark of the last record. The caller may
 * repeat it after a crash or an error. Returns 0 or an error code. */
int limefile_redo_apply(struct limefile_source *source, uint64_t last,
                        const struct limefile_redo *redo);

#endif
