/* checkphysics.h - what lime check --physics finds out about one configuration */
#ifndef CHECKPHYSICS_H
#define CHECKPHYSICS_H

#include "fieldcheck.h"
#include "limephysics.h"
#include "limeverdict.h"

/* The verdict on a gauge field. */
struct physics_result {
    uint64_t ordinal; /* 0: it is all of a file in another format */
    enum limefile_verdict verdict;
    const char *reason; /* LIMEFILE_UNVERIFIED, LIMEFILE_UNREADABLE */
    unsigned precision;
    struct limefile_physics is;
    struct limefile_physics_stated *stated; /* allocated */
    int stated_count;
};

/* Reports, counts and keeps the result, and takes ownership of `stated`. `err`: why the data
 * could not be read, or LIMEFILE_E_STATE if result->reason tells why they were not examined.
 * Returns 0 or -ENOMEM. */
int physics_conclude(struct physics_check *, const struct field_check *,
                     const struct limefile_field *, struct physics_result *, int err);

/* Reports each figure that differs from that of the data. Returns whether all agree. */
bool physics_report_stated(const struct field_check *, const struct limefile_field *,
                           const struct physics_result *);

#endif
