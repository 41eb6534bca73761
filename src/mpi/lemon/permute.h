/*
 * permute.h - the same sites in two orders of their dimensions: that of the disk and that of
 * the user's memory; pure, no MPI.
 *
 * Both are row-major, each with its dimensions in an order of its own.
 */
#ifndef LEMON_PERMUTE_H
#define LEMON_PERMUTE_H

#include "box.h"

#include <stdbool.h>

/* What is left when dimensions that follow each other in both orders are taken as one: blocks
 * of bytes, and for each dimension, in the order of the disk, its extent and its strides. */
struct lemon_permute {
    int dims; /* 0: both orders are the same; otherwise 2 or more */
    int64_t block;
    int64_t sites[LEMON_BOX_DIMS];
    int64_t disk[LEMON_BOX_DIMS], memory[LEMON_BOX_DIMS]; /* bytes */
};

/* sites: the extents in the order of the disk, slowest first; order: order[i] is the one of
 * them that is i-th, slowest first, in memory, a permutation. No more bytes than an int64_t
 * holds. */
void lemon_permute_make(struct lemon_permute *, int dims, const int64_t *sites,
                        const int *order, int64_t site_bytes);

/* Copies all sites; the two must not overlap. Only if dims is not 0. */
void lemon_permute_to_memory(const struct lemon_permute *, const char *disk, char *memory);
void lemon_permute_to_disk(const struct lemon_permute *, const char *memory, char *disk);

#endif
