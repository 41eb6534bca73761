/*
 * field_check.h - lime check: compare checksums of data (--data) and validate gauge
 * configurations (--physics)
 */
#ifndef FIELDCHECK_H
#define FIELDCHECK_H

#include "container.h"
#include "limeildg.h"

#include <stdio.h>

/* Number of fields, checkpoints or configurations with each verdict. */
struct check_counts {
    uint64_t good, wrong, unverified;
};

/* The check of one file. The caller owns everything but the three lists. */
struct data_check {
    const char *path;
    const struct container *c; /* its index is built */
    const struct limefile_fields *fields;
    unsigned threads;
    bool quiet;  /* print no answers; findings are still reported */
    bool strict; /* a file in another format without a checksum is a deviation */
    bool with_data, with_physics; /* --data, --physics */
    struct check_counts *sums, *physics;
    limefile_sum_progress_fn *progress;
    void (*report)(void *context, const struct limefile_finding *);
    void *context; /* passed to progress and report */
    /* Results for JSON, such as {"ordinal": 3, "state": "good", ...} (jsonout.h); or NULL. */
    FILE *sum_list, *cell_list, *physics_list;
};

/* ---- checksums ---- */

/* Compares the data of each field with its checksum. */
void sums_check(struct data_check *);

/* Compares header and data of a foreign file shown as a container; skips other fields. */
void sums_check_headers(struct data_check *);

/* ---- checkpoints of particles (checkpoint.c) ---- */

/* Compares all particles with their indexes. A file that has become unreadable or shorter is a
 * finding about its data. Returns 0, or other errors such as -ENOMEM. */
int check_checkpoint_data(struct data_check *);

/* ---- configurations ---- */

/* Compares each configuration with its metadata, and its links with SU(3). 0 or -ENOMEM. */
int physics_check(struct data_check *);

/* ---- files in other formats ---- */

/* Returns "nersc", "milc" or "openqcd" if the file begins like one; NULL for any other file. */
const char *gauge_check_format(const struct container *);

/* Returns an error and fills reason with a message if such a file has a damaged header or a
 * wrong length; 0 for any other file, including one that cannot be opened. */
int gauge_check_damage(const char *path, char *reason, size_t cap);

/* Compares the data with the checksum in the header; if check->with_physics, also checks that
 * the links are SU(3) and match the plaquette and link trace there. Ignores check->fields.
 * Reports a damaged header. An unsupported variant of a format counts as one unverified
 * configuration. Returns 0, or an error if the file cannot be read. */
int gauge_check(struct data_check *);

#endif
