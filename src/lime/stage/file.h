/* file.h - one file of the list, from the first look at it to its name */
#ifndef STAGE_FILE_H
#define STAGE_FILE_H

#include "plan.h"
#include "pump.h"
#include "target.h"

struct stage_file {
    const struct stage_options *options;
    const struct stage_item *item;
    struct stage_result *result;
    struct stage_pump *pump;
    struct stage_room *room;
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

/* Reads a file and takes its sums, those of plan's fields (or NULL) too, without writing it
 * anywhere. `err` comes back with its reason in the result. */
int stage_file_sum(struct stage_file *, struct stage_port *, uint64_t size, unsigned kinds,
                   const struct stage_plan *, struct stage_digest *out);

/* Compares the sums of the fields with those in the file; 0 or a code with its reason. */
int stage_file_judge(struct stage_file *, struct stage_fieldsums *, int fd);

/* 1: the target is there, the sums are in the result; 0: it is to be made, and may be; < 0. */
int stage_file_is_there(struct stage_file *);

/* The failure of a flow in words; returns its code. */
int stage_file_blame(struct stage_file *, const struct stage_flow *);

#endif
