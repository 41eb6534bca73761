/*
 * proofs.h - what is known of the records of a container that have a checksum, between what
 * makes verdicts (verify.c) and what is served meanwhile (served.c).
 */
#ifndef LIMEFS_PROOFS_H
#define LIMEFS_PROOFS_H

#include "limegauge.h"
#include "tally.h"
#include "verify.h"
#include "view.h"

enum {
    LIMEFS_PROOF_TYPE_BYTES = 32,
    LIMEFS_READINGS = 2,            /* ways to read a field */
    LIMEFS_PROOFS_MAX = 100 * 1000, /* in a container; more would take too much memory */
};

struct limefs_proof {
    struct limefile_field field; /* its type is the next */
    char type[LIMEFS_PROOF_TYPE_BYTES];
    enum limefile_verdict verdict; /* GOOD, BAD or UNVERIFIED */
    const char *why;               /* it has this verdict without a sum; NULL: it takes one */
    bool by_header;                /* compared with the header of a file in another format */
    struct limefile_checksum sum;  /* BAD: of the data; not if it is by_header */
    int error;                     /* why the last verification could not read the data, or 0 */
    _Atomic uint64_t done;         /* bytes of a verification that is under way */
    unsigned serving, waiting;     /* reads under way; of these, at the end */

    /* Of what was served, one for each way to read the field; none: nothing yet. */
    unsigned tallies;
    struct limefs_tally *tally[LIMEFS_READINGS];
};

/* Of one state of a container. */
struct limefs_proofs {
    atomic_uint holders;
    struct limefs_lock lock; /* taken after fs->lock, where both are */
    pthread_cond_t changed;
    bool dropped;  /* the container has changed */
    bool too_many; /* more records have a checksum than there can be proofs */
    char difference[LIMEFILE_GAUGE_DIFFERENCE_MAX]; /* by_header and BAD: from the header */
    size_t count;
    struct limefs_proof proof[]; /* by ordinal */
};

/* Of a pinned view's record: its proof, and those it is among, which the caller releases.
 * -ENODATA: it has nothing to be compared with. */
int limefs_proof_of(struct limefs *, struct limefs_view *, uint64_t ordinal,
                    struct limefs_proofs **, struct limefs_proof **);
void limefs_proofs_release(struct limefs_proofs *);                               /* or NULL */
struct limefs_proof *limefs_proof_find(struct limefs_proofs *, uint64_t ordinal); /* or NULL */

/* Those of a pinned view, which keeps them; the caller releases them. */
int limefs_proofs_of(struct limefs *, struct limefs_view *, struct limefs_proofs **);

void limefs_proof_drop_tallies(struct limefs_proof *);

bool limefs_proof_is_right(const struct limefs_proof *, const struct limefile_checksum *);

/* Sets the verdict from the sum of the data. The proofs' lock is held. */
void limefs_proof_judge(struct limefs *, struct limefs_proofs *, struct limefs_proof *,
                        const struct limefile_checksum *);

/* Logs that the record is bad. No lock is held. */
void limefs_proof_report_bad(struct limefs *, const struct limefs_view *,
                             const struct limefs_proof *, const char *reason);

/* Logs that the record is bad, if its data have this sum and it is wrong. No lock is held. */
void limefs_proof_report(struct limefs *, const struct limefs_view *,
                         const struct limefs_proof *, const struct limefile_checksum *);

#endif
