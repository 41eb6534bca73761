/* checkphysics.h - what lime check --physics finds out about one configuration */
#ifndef CHECKPHYSICS_H
#define CHECKPHYSICS_H

#include "fieldcheck.h"
#include "limephysics.h"

/* What became of a gauge field. */
struct physics_result {
    uint64_t ordinal; /* 0: it is all of a file in another format */
    enum state { PHYSICS_OK, PHYSICS_BAD, PHYSICS_UNKNOWN, PHYSICS_UNREADABLE } state;
    const char *reason; /* UNKNOWN, UNREADABLE */
    unsigned precision;
    struct limefile_physics is;
    struct limefile_physics_stated *stated; /* allocated */
    int stated_count;
};

/* Reports, counts and keeps it; `stated` is taken. `err`: of reading it, or LIMEFILE_E_STATE. 0
 * or -ENOMEM. */
int physics_conclude(struct physics_check *, const struct field_check *,
                     const struct limefile_field *, struct physics_result *, int err);

/* Reports each figure that differs from that of the data. Returns whether all agree. */
bool physics_report_stated(const struct field_check *, const struct limefile_field *,
                           const struct physics_result *);

#endif
