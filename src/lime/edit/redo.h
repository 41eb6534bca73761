/* redo.h - complete a replacement of a record's data that a crash has interrupted */
#ifndef LIMEFILE_REDO_H
#define LIMEFILE_REDO_H

#include "limeedit.h"

/* Finds the new data behind the last record. last: offset of this record's header, which has
 * MARK_REPLACING; size: bytes of the file. Returns 1 with *out filled, 0 if the file has no
 * valid new data, or an error code. For 0 and errors *out is undefined. */
int limefile_redo_find(struct limefile_source *source, uint64_t last, uint64_t size,
                       struct limefile_redo *out);

/* Copies the new data to redo->target. Then cuts the file behind the last record, whose header
 * is at `last`, and clears the last record's mark. The caller may repeat the call after a crash
 * or an error. Returns 0 or an error code. */
int limefile_redo_apply(struct limefile_source *source, uint64_t last,
                        const struct limefile_redo *redo);

#endif
