/* file.h - one file of the list, from the first look at it to its name */
#ifndef STAGE_FILE_H
#define STAGE_FILE_H

#include "plan.h"
#include "target.h"

#include <stdatomic.h>

struct stage_file {
    const struct stage_options *options;
    const struct stage_item *item;
    struct stage_result *result;
    struct stage_ring *ring;
    struct stage_remote *remote; /* or NULL */
    atomic_uint_fast64_t *moved;
    atomic_bool *stopped;
    uint64_t told; /* of moved: by this file */

    struct stage_port source;
    struct stat st;                 /* of the source */
    struct stage_existing existing; /* what has the target's name, with --force */
    struct stage_plan plan;
};

/* Fills in the result. */
void stage_file_run(struct stage_file *);

#endif
