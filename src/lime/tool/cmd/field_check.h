/*
 * field_check.h - lime check: compare checksums of data (--data) and validate gauge
 * configurations (--physics)
 */
#ifndef FIELD_CHECK_H
#define FIELD_CHECK_H

#include "container.h"
#include "limeildg.h"

#include <stdio.h>

/* Number of fields, checkpoints or configurations with each verdict. */
struct check_counts {
    uint64_t good, wrong, unverified;
};

/* The check of one file. The caller sets all members, and owns what they point to. */
struct data_check {
    const char *path;
    const struct container *c; /* its index is built */
    const struct limefile_fields *fields;
    unsigned threads;
    bool quiet;  /* print no results; report() still gets the findings */
    bool strict; /* report a file in another format as a deviation if it has no checksum */
    bool with_data, with_physics; /* --data, --physics */
    struct check_counts *sums, *physics;
    limefile_sum_progress_fn *progress;
    void (*report)(void *context, const struct limefile_finding *);
    void *context; /* passed to progress and report */
    /* For JSON, or NULL: lists (jsonout.h) that get results like {"ordinal": 3, ...}. */
    FILE *sum_list, *checkpoint_list, *physics_list;
};

/* ---- checksums ---- */

/* Compares the data of each field with its checksum; counts and reports the results. */
void sums_check(struct data_check *);

/* Used without --data: gets and reports the mount's verdict on a NERSC, MILC or openQCD file
 * that the mount shows as the container `c`. Has no effect for other files. */
void sums_check_headers(struct data_check *);

/* ---- checkpoints of particles (checkpoint.c) ---- */

/* Compares all particles with their indexes. Reports data that cannot be read as a finding, for
 * example if the file has become shorter. Returns 0, or an error such as -ENOMEM. */
int check_checkpoint_data(struct data_check *);

/* ---- configurations ---- */

/* Compares plaquette and link trace of each configuration with its metadata, and checks that
 * its links are SU(3) matrices. Returns 0 or -ENOMEM. */
int physics_check(struct data_check *);

/* ---- files in other formats ---- */

/* Examines the header of a file in another format (check->c->format). If check->with_data or
 * with_physics, compares the data with the checksum, plaquette and link trace in the header; if
 * check->with_physics, also checks that the links are SU(3) matrices.
 * Ignores check->fields. Reports a damaged header. An unsupported variant of a format counts as
 * one unverified configuration. Returns 0, or an error if the file cannot be read. */
int gauge_check(struct data_check *);

#endif
