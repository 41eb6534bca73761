/*
 * fieldcheck.h - what lime check finds out about data: checksums (--data), and whether
 * configurations are what they should be (--physics)
 */
#ifndef FIELDCHECK_H
#define FIELDCHECK_H

#include "container.h"
#include "limeildg.h"

#include <stdio.h>

/* How many fields or checkpoints: checksums, or what is known of configurations. */
struct check_counts {
    uint64_t good, wrong, unverified;
};

/* One file. All but the lists is the caller's. */
struct data_check {
    const char *path;
    const struct container *c; /* with its index */
    const struct limefile_fields *fields;
    unsigned threads;
    bool quiet;            /* answers nothing; findings are reported anyway */
    bool strict;           /* a file in another format without a checksum: a deviation */
    bool summed, physical; /* --data, --physics */
    struct check_counts *sums, *physics;
    limefile_sum_progress_fn *progress;
    void (*report)(void *context, const struct limefile_finding *);
    void *context; /* of both */
    /* For JSON, the results: {"ordinal": 3, "state": "good", ...} (jsonout.h); or NULL. */
    FILE *sum_list, *cell_list, *physics_list;
};

/* ---- checksums ---- */

void sums_check(struct data_check *);

/* The same of the configuration in a file in another format that a mount shows as a container:
 * its data with its header. Nothing happens for any other field. */
void sums_check_headers(struct data_check *);

/* ---- checkpoints of particles (cells.c) ---- */

/* Compares all particles with their indexes. A file that cannot be read any more, or has become
 * shorter, is a finding of its data; other errors, as of memory, are returned. */
int cells_check(struct data_check *);

/* ---- configurations ---- */

int physics_check(struct data_check *); /* -ENOMEM */

/* ---- files in other formats ---- */

/* Returns "nersc", "milc" or "openqcd" if the file begins like one; NULL for any other file. */
const char *gauge_check_format(const struct container *);

/* Returns the error, with the reason in words, if it is such a file whose header or length is
 * damaged; 0 for any other file, also one that cannot be opened. */
int gauge_check_damage(const char *path, char *reason, size_t cap);

/* Compares the data with the checksum in the header and, if `physical`, the links and the
 * figures there; check->fields is not used. A header that is damaged is reported; a file of a
 * kind of its format that cannot be read counts as a configuration that is unverified. Returns
 * 0, or why the file cannot be read. */
int gauge_check(struct data_check *);

#endif
