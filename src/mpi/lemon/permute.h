/*
 * permute.h - copy sites between disk order and the user's memory order; no MPI
 *
 * Both orders are row-major, each with its own order of dimensions.
 */
#ifndef LEMON_PERMUTE_H
#define LEMON_PERMUTE_H

#include "box.h"

#include <stdbool.h>

/* How to copy. The dimensions are in disk order; dimensions that are adjacent in both orders
 * are merged into one. A block is a range of bytes that is contiguous in both orders. */
struct lemon_permute {
    int dims; /* 0: both orders are equal; otherwise 2 or more */
    int64_t block_bytes;
    int64_t extent[LEMON_BOX_DIMS];
    int64_t disk_stride[LEMON_BOX_DIMS], memory_stride[LEMON_BOX_DIMS]; /* in bytes */
};

/* sites: the extents in disk order. order[i]: the disk dimension that is the i-th in memory.
 * Both orders begin with the slowest dimension. The total size must fit into an int64_t. */
void lemon_permute_init(struct lemon_permute *, int dims, const int64_t *sites,
                        const int *order, int64_t site_bytes);

/* Copy all sites. permute->dims must not be 0, and the buffers must not overlap. */
void lemon_permute_to_memory(const struct lemon_permute *, const char *disk, char *memory);
void lemon_permute_to_disk(const struct lemon_permute *, const char *memory, char *disk);

#endif
