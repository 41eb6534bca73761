/*
 * verify.h - whether a record with a SciDAC checksum is right: its verdict.
 *
 * Of a view's records, those that have a checksum have a proof each, made from the container's
 * metadata when first asked for. Of some, these tell the verdict: a length that no sites have
 * is bad, and without the size of a site there is none. Else it is found by reading the whole
 * record, by the job's ranks or by this host's processors; or, with -o verify=stream, on the
 * way, from the very bytes that readers are served. It holds until the container changes.
 */
#ifndef LIMEFS_VERIFY_H
#define LIMEFS_VERIFY_H

#include "limefs.h"

#include <stdatomic.h>
#include <sys/uio.h>

struct limefs_file;
struct limefs_proofs;

enum limefs_verdict {
    LIMEFS_UNVERIFIED,
    LIMEFS_OK,
    LIMEFS_BAD,
    LIMEFS_UNVERIFIABLE, /* and will stay so */
};

/* "unverified", "ok", "bad", "unverified" */
const char *limefs_verdict_word(enum limefs_verdict);

/* What is known of a record of a pinned view. -ENODATA: it has no checksum. */
int limefs_verify_ask(struct limefs *, struct limefs_view *, uint64_t ordinal,
                      enum limefs_verdict *);

/* Why it has its verdict without a sum, or has none, in words. -ENODATA: it takes a sum. */
int limefs_verify_why(struct limefs *, struct limefs_view *, uint64_t ordinal,
                      const char **why);

/* Reads the record and takes its sum, if it takes one: takes its time. *stop ends it early,
 * with -EINTR. -ESTALE: the container was changed meanwhile. A bad one is said in the log. */
int limefs_verify_now(struct limefs *, struct limefs_view *, uint64_t ordinal,
                      const atomic_bool *stop, enum limefs_verdict *);

/* Of a verification that is under way, how many bytes are done; else 0. */
uint64_t limefs_verify_progress(struct limefs *, struct limefs_view *, uint64_t ordinal);

/* ---- -o verify=stream ---- */

/* Somebody reads the file from now on: file->proofs, if there is something to be proved. */
void limefs_verify_attach(struct limefs *, struct limefs_file *);
void limefs_verify_detach(struct limefs_file *);

/* True if it is attached, and known to be wrong. */
bool limefs_verify_is_bad(const struct limefs_file *);

/* Around a read: what was got out of it is looked at. -EIO: the record is wrong, and this is
 * its end. */
void limefs_verify_begin(const struct limefs_file *);
int limefs_verify_end(struct limefs *, const struct limefs_file *, uint64_t offset,
                      const struct iovec *iov, int count);

/* ---- for views ---- */

/* The container has changed, or is about to: no verdict holds. Cheap where there is none. */
void limefs_verify_forget(struct limefs *, struct limefs_view *);
void limefs_verify_forget_locked(struct limefs_view *); /* with fs->lock held */

#endif
