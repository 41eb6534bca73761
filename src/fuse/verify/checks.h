/*
 * checks.h - the state of verification of a container: a check for each record that has a
 * checksum. verify.c reads records; verify_stream.c sums the bytes that readers are served.
 */
#ifndef LIMEFS_CHECKS_H
#define LIMEFS_CHECKS_H

#include "limegauge.h"
#include "tally.h"
#include "verify.h"
#include "snapshot.h"

enum {
    LIMEFS_CHECK_TYPE_BYTES = 32,
    LIMEFS_READINGS = 2,            /* ways to read a field (limefile_field_layout()) */
    LIMEFS_CHECKS_MAX = 100 * 1000, /* in a container; more would take too much memory */
};

struct limefs_check {
    struct limefile_field field; /* its record.type points to `type` */
    char type[LIMEFS_CHECK_TYPE_BYTES];
    enum limefile_verdict verdict; /* GOOD, BAD or UNVERIFIED */
    const char *reason;            /* why the metadata decide the verdict; NULL: data decide */
    bool uses_header;              /* the data are compared with a foreign file's header */
    struct limefile_checksum sum;  /* of BAD data; not set if uses_header */
    int error;                     /* why the last verification could not read the data, or 0 */
    _Atomic uint64_t bytes_read;   /* by a verification that is under way */
    unsigned active_reads, waiting_reads; /* under way; those of them that wait for a verdict */

    /* Sums of the bytes served, one for each way to read the field; none before a read. */
    unsigned tallies; /* their number */
    struct limefs_tally *tally[LIMEFS_READINGS];
};

/* The checks for one state of a container. `refs` counts references. */
struct limefs_checks {
    atomic_uint refs;
    struct limefs_lock lock; /* guards verdicts, sums, `difference`; acquired after fs->lock */
    pthread_cond_t changed;  /* a verdict was set, a read ended, or `is_stale` was set */
    bool is_stale;           /* the container has changed */
    bool too_many;           /* more records have a checksum than LIMEFS_CHECKS_MAX */
    char difference[LIMEFILE_GAUGE_DIFFERENCE_MAX]; /* reason of a BAD check with uses_header */
    size_t count;
    struct limefs_check check[]; /* sorted by ordinal */
};

/* Gets the check of a record of a pinned snapshot, and the checks that contain it, which the
 * caller releases. Returns 0 or a negative code; -ENODATA: the record has no check.
 * limefs_checks_release() accepts NULL. */
int limefs_check_get(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                     struct limefs_checks **, struct limefs_check **);
void limefs_checks_release(struct limefs_checks *);
struct limefs_check *limefs_check_find(struct limefs_checks *, uint64_t ordinal); /* or NULL */

/* Gets the checks of a pinned snapshot; the caller releases them. 0 or a negative code. */
int limefs_checks_get(struct limefs *, struct limefs_snapshot *, struct limefs_checks **);

void limefs_check_drop_tallies(struct limefs_check *); /* frees them; hold the lock */

bool limefs_check_matches(const struct limefs_check *, const struct limefile_checksum *);

/* Sets the verdict from the sum of the data. The caller must hold the lock of the checks. */
void limefs_check_set_verdict(struct limefs *, struct limefs_checks *, struct limefs_check *,
                              const struct limefile_checksum *);

/* Logs that the record is bad. The caller must not hold a lock. */
void limefs_check_report_bad(struct limefs *, const struct limefs_snapshot *,
                             const struct limefs_check *, const char *reason);

/* Logs that the record is bad, if this sum of its data is wrong. The caller holds no lock. */
void limefs_check_report_sum(struct limefs *, const struct limefs_snapshot *,
                             const struct limefs_check *, const struct limefile_checksum *);

#endif
