/*
 * verify.h - verifies the data of records and keeps the verdicts.
 *
 * Each record with a checksum has a struct limefs_check, made from the container's metadata at
 * the first request. For some records the metadata decide the verdict: a record whose length is
 * not a whole number of sites is bad; one whose site size is unknown stays unverified. For all
 * others the daemon reads the whole record or, with -o verify=stream, sums the bytes that
 * readers get. A verdict holds until the container changes.
 *
 * For a file in another format, the daemon compares the configuration with the checksum, the
 * plaquette and the link trace in the file's header. To verify such a file, it always reads the
 * whole file; with -o verify=stream it does so before the record is first opened.
 */
#ifndef LIMEFS_VERIFY_H
#define LIMEFS_VERIFY_H

#include "limefs.h"
#include "limeverdict.h"

#include <stdatomic.h>
#include <sys/uio.h>

struct limefs_check;
struct limefs_checks;
struct limefs_snapshot;

/* Registers a callback that drops verdicts when a snapshot changes. Call before the mount. */
void limefs_verify_init(struct limefs *);

/* Gets the known verdict on a record of a pinned snapshot; LIMEFILE_UNVERIFIED: not verified
 * yet. Returns 0 or a negative code; -ENODATA: the record cannot be compared with anything. */
int limefs_verify_lookup(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                         enum limefile_verdict *);

/* Gets the known verdict on any record of a pinned snapshot, with or without a checksum.
 * reason: why the data are bad, unreadable or cannot be verified, or "". -ENODATA: the record
 * does not hold the data of a field. */
#define LIMEFS_REASON_MAX 256
int limefs_verify_describe(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                           enum limefile_verdict *, char reason[LIMEFS_REASON_MAX]);

/* Waits until the container holds the bytes that readers of the record get. Returns 0, or
 * -EBUSY if these bytes are in another file or the record was moved or resized. */
int limefs_verify_flush(struct limefs *, struct limefs_snapshot *,
                        const struct limefile_record *);

/* Verifies a record and logs it if it is bad. Reads the whole record, unless the metadata
 * decide the verdict. -EINTR: *stop was set; -ESTALE: the container has been changed. */
int limefs_verify_record(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                         const atomic_bool *stop, enum limefile_verdict *);

/* Returns the number of bytes that a verification under way has read; 0: none is under way. */
uint64_t limefs_verify_progress(struct limefs *, struct limefs_snapshot *, uint64_t ordinal);

/* cksum.c: computes cksum(1) of any record. *stop and errors: as limefs_verify_record(). */
int limefs_verify_cksum(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                        const atomic_bool *stop, uint32_t *out);

/* ---- -o verify=stream ---- */

/* A record that is open for reading. */
struct limefs_verify_reader {
    struct limefs_snapshot *snap;
    struct limefs_checks *checks; /* NULL: the bytes served are not summed */
    struct limefs_check *check;
};

/* Called when a record was opened for reading, and when it is closed. */
void limefs_verify_attach(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                          struct limefs_verify_reader *);
void limefs_verify_detach(struct limefs_verify_reader *);

/* True if the reader is attached to a record that must be verified before it is read, because
 * its checksum is not computed from the bytes that readers get. */
bool limefs_verify_is_due_before_read(const struct limefs_verify_reader *);

/* True if the reader is attached to a record that is known to be bad. */
bool limefs_verify_is_bad(const struct limefs_verify_reader *);

/* Called before and after a read. limefs_verify_read_end() sums the bytes read; at the end of
 * the record it may wait for other reads of the record, and returns -EIO if it is bad. */
void limefs_verify_read_begin(const struct limefs_verify_reader *);
int limefs_verify_read_end(struct limefs *, const struct limefs_verify_reader *,
                           uint64_t offset, const struct iovec *iov, int count);

#endif
