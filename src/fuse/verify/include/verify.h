/*
 * verify.h - whether the data of a record are right: its verdict.
 *
 * Of a view's records, those that have a checksum have a proof each, made from the container's
 * metadata when first asked for. Of some, these tell the verdict: a length that no sites have
 * is bad, and without the size of a site there is none. Else it is found by reading the whole
 * record; or, with -o verify=stream, on the way, from the very bytes that readers are served.
 * It holds until the container changes.
 *
 * The configuration of a file in another format is compared with the checksum, plaquette and
 * link trace in the header of that file, which this host reads as it is. With -o verify=stream
 * that is done before the record is opened first.
 */
#ifndef LIMEFS_VERIFY_H
#define LIMEFS_VERIFY_H

#include "limefs.h"
#include "limeverdict.h"

#include <stdatomic.h>
#include <sys/uio.h>

struct limefs_proof;
struct limefs_proofs;
struct limefs_view;

/* Before anything is mounted: verdicts go when views change. */
void limefs_verify_begin(struct limefs *);

/* What is known of a record of a pinned view: LIMEFILE_UNVERIFIED means not yet. -ENODATA: it
 * has nothing to be compared with, or cannot be. */
int limefs_verify_ask(struct limefs *, struct limefs_view *, uint64_t ordinal,
                      enum limefile_verdict *);

/* Gets the verdict on a record of a pinned view, also if it has no checksum, and the reason if
 * the data are bad or unreadable or cannot be verified, else "". -ENODATA: the record is not
 * the data of a field. */
#define LIMEFS_REASON_MAX 256
int limefs_verify_describe(struct limefs *, struct limefs_view *, uint64_t ordinal,
                           enum limefile_verdict *, char reason[LIMEFS_REASON_MAX]);

/* What the container holds of the record is what readers get: nothing of it is on its way, or
 * elsewhere. -EBUSY if it is. */
int limefs_verify_settle(struct limefs *, struct limefs_view *, const struct limefile_record *);

/* Reads the record and takes its sum, if it takes one: takes its time. *stop ends it early,
 * with -EINTR. -ESTALE: the container was changed meanwhile. A bad one is said in the log. */
int limefs_verify_now(struct limefs *, struct limefs_view *, uint64_t ordinal,
                      const atomic_bool *stop, enum limefile_verdict *);

/* Of a verification that is under way, how many bytes are done; else 0. */
uint64_t limefs_verify_progress(struct limefs *, struct limefs_view *, uint64_t ordinal);

/* ---- cksum (cksum.c) ---- */

/* What cksum(1) would print of a record, whatever it is, in the same way. */
int limefs_verify_cksum(struct limefs *, struct limefs_view *, uint64_t ordinal,
                        const atomic_bool *stop, uint32_t *out);

/* ---- -o verify=stream ---- */

/* Of a record that is open to be read. */
struct limefs_verify_reader {
    struct limefs_view *view;
    struct limefs_proofs *proofs; /* NULL: what is served is not looked at */
    struct limefs_proof *proof;
};

/* Somebody reads the record from now on, and no longer. */
void limefs_verify_attach(struct limefs *, struct limefs_view *, uint64_t ordinal,
                          struct limefs_verify_reader *);
void limefs_verify_detach(struct limefs_verify_reader *);

/* Returns true if the reader is attached to a record that must be verified before it is read,
 * as the bytes that are served are not those that its checksum is of. */
bool limefs_verify_precedes(const struct limefs_verify_reader *);

/* True if it is attached, and known to be wrong. */
bool limefs_verify_is_bad(const struct limefs_verify_reader *);

/* Around a read: what was got out of it is looked at. -EIO: the record is wrong, and this is
 * its end. */
void limefs_verify_enter(const struct limefs_verify_reader *);
int limefs_verify_leave(struct limefs *, const struct limefs_verify_reader *, uint64_t offset,
                        const struct iovec *iov, int count);

#endif
