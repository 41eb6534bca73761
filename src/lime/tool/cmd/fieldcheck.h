/*
 * fieldcheck.h - what lime check finds out about the data of fields: their SciDAC checksums
 * (--data), and whether configurations are what they should be (--physics)
 */
#ifndef FIELDCHECK_H
#define FIELDCHECK_H

#include "container.h"
#include "jsonout.h"
#include "limeildg.h"

/* What both are given: all is the caller's. */
struct field_check {
    const char *path;
    const struct container *c; /* with its index */
    const struct limefile_fields *fields;
    unsigned threads;
    bool quiet;            /* answers nothing; findings are reported anyway */
    bool summed, physical; /* --data, --physics */
    limefile_sum_progress_fn *progress;
    void (*report)(void *context, const struct limefile_finding *);
    void *context; /* of both */
    /* For JSON, the result of each field: {"ordinal": 3, "state": "good", ...}; or NULL. */
    struct jsonout_list *sums, *physics_results;
};

/* ---- checksums (checksums.c) ---- */

/* Zero to begin with. */
struct sums_check {
    uint64_t verified, wrong, unverified;
};

void sums_check(struct sums_check *, const struct field_check *);

/* The same of the configuration in a file in another format that a mount shows as a container:
 * its data with its header. Nothing happens for any other field. */
void sums_check_headers(struct sums_check *, const struct field_check *);

/* True if a mount does not give out the data as they are bad, which has been reported then. */
bool sums_check_withheld(const struct field_check *, const struct limefile_field *);

/* ---- configurations (checkphysics.c) ---- */

/* Zero to begin with. */
struct physics_check {
    uint64_t good, wrong, unverified; /* unverified: gauge fields that cannot be examined */
};

int physics_check(struct physics_check *, const struct field_check *); /* -ENOMEM */

/* ---- files in other formats (checkgauge.c) ---- */

/* Returns "nersc", "milc" or "openqcd" if the file begins like one; NULL for any other file. */
const char *gauge_check_format(const struct container *);

/* Returns the error, with the reason in words, if it is such a file whose header or length is
 * damaged; 0 for any other file, also one that cannot be opened. */
int gauge_check_damage(const char *path, char *reason, size_t cap);

struct gauge_check {
    struct sums_check *sums;
    struct physics_check *physics;
    bool summed;     /* --data */
    bool physical;   /* --physics */
    bool strict;     /* without a checksum: a deviation */
    bool unexamined; /* set if it is of a kind of its format that cannot be read */
};

/* Compares the data with the checksum in the header and, if `physical`, the links and the
 * figures there; check->fields is not used. A header that is damaged is reported. Returns 0, or
 * why the file cannot be read. */
int gauge_check(struct gauge_check *, const struct field_check *);

#endif
