/* stage_file.h - stage one file of the list, from the first check to the final rename */
#ifndef STAGE_FILE_H
#define STAGE_FILE_H

#include "contents.h"
#include "target.h"

#include <stdatomic.h>

struct stage_file {
    const struct stage_options *options;
    const struct stage_item *item;
    struct stage_result *result;
    struct stage_ring *ring;
    struct stage_remote *remote; /* or NULL */
    atomic_uint_fast64_t *moved; /* bytes that all threads have copied */
    atomic_bool *stopped;        /* set by stage_stop() */
    uint64_t progress;           /* bytes of *moved that this file has added */

    struct stage_port source;
    struct stat st;                 /* of the source */
    struct stage_existing existing; /* the file that the copy replaces, with options->force */
    struct stage_contents contents;
};

/* Stages the file and fills in *result. Before this, the caller must set the members up to
 * `stopped`, and zero the other members and *result. */
void stage_file_run(struct stage_file *);

#endif
