/*
 * filler.h - records of zeros, so that the data of the record after them begin aligned.
 */
#ifndef LEMON_FILLER_H
#define LEMON_FILLER_H

#include "internal.h"

/* How many bytes, with its header, the filler has that goes to `offset` so that the data of the
 * record behind it begin at a multiple of `alignment`; 0: none is needed. Both are multiples of
 * 8, and so is the answer. */
int64_t lemon_filler_bytes(int64_t offset, int64_t alignment);

/* Writes it; this rank alone. LEMON_ERR_WRITE. */
int lemon_filler_write(struct lemon_internal *, int64_t offset, int64_t bytes,
                       bool begins_message);

#endif
