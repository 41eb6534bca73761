/*
 * proofs.h - what is known of the records of a container that have a checksum, between what
 * makes verdicts (verify.c) and what is served meanwhile (served.c).
 */
#ifndef LIMEFS_PROOFS_H
#define LIMEFS_PROOFS_H

#include "tally.h"
#include "verify.h"
#include "view.h"

enum {
    LIMEFS_PROOF_TYPE_BYTES = 32,
    LIMEFS_READINGS = 2, /* ways to read a field */
};

struct limefs_proof {
    struct limefile_field field; /* its type is the next */
    char type[LIMEFS_PROOF_TYPE_BYTES];
    enum limefs_verdict verdict;
    const char *why;           /* it has this verdict without a sum; NULL: it takes one */
    _Atomic uint64_t done;     /* bytes of a verification that is under way */
    unsigned serving, waiting; /* reads under way; of these, at the end */

    /* Of what was served, one for each way to read the field; none: nothing yet. */
    unsigned tallies;
    struct limefs_tally *tally[LIMEFS_READINGS];
};

/* A record's. */
struct limefs_cksum {
    uint64_t ordinal;
    uint32_t value;
};

/* Of one state of a container. */
struct limefs_proofs {
    atomic_uint holders;
    struct limefs_lock lock; /* taken after fs->lock, where both are */
    pthread_cond_t changed;
    bool dropped;               /* the container has changed */
    struct limefs_cksum *cksum; /* those that have been taken, */
    size_t cksums;              /* so many */
    size_t count;
    struct limefs_proof proof[]; /* by ordinal */
};

/* Of a pinned view's record: its proof, and those it is among, which the caller releases.
 * -ENODATA: it has no checksum. */
int limefs_proof_of(struct limefs *, struct limefs_view *, uint64_t ordinal,
                    struct limefs_proofs **, struct limefs_proof **);
void limefs_proofs_release(struct limefs_proofs *); /* or NULL */

/* Those of a pinned view, which keeps them; the caller releases them. */
int limefs_proofs_of(struct limefs *, struct limefs_view *, struct limefs_proofs **);

void limefs_proof_drop_tallies(struct limefs_proof *);

bool limefs_proof_is_right(const struct limefs_proof *, const struct limefile_checksum *);

/* That is its sum. With the proofs' lock held. */
void limefs_proof_judge(struct limefs *, struct limefs_proofs *, struct limefs_proof *,
                        const struct limefile_checksum *);

/* A line in the log if it is wrong: `what` has that sum. Without any lock. */
void limefs_proof_report(struct limefs *, const struct limefs_view *,
                         const struct limefs_proof *, const struct limefile_checksum *,
                         const char *what);

#endif
