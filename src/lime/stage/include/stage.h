/* stage.h - copy a list of containers, and verify each copy before it gets its target's name
 *
 * Threads copy several files at once. For each file, a thread examines the records and fields
 * (contents.h), copies the bytes (copy_ring.h) to a temporary file next to the target
 * (target.h), and renames this file to the target only when all bytes are on the disk, the
 * SciDAC checksums are right, and the copy has the records of the source. docs/staging.md.
 *
 * A job, a running limefs-io, can read and write the files (remote.h). The module prints
 * nothing. Functions return 0 or a negative code (limeerror.h) unless stated otherwise. */
#ifndef STAGE_H
#define STAGE_H

#include "limeverdict.h"
#include "sums.h"

#include <stdio.h>
#include <sys/types.h>

enum {
    STAGE_FILES_AT_ONCE = 8, /* the default */
    STAGE_FILES_AT_ONCE_MAX = 64,
    STAGE_REASON_MAX = 512,
    STAGE_MESSAGES_MAX = 8,
};

struct stage_options {
    unsigned kinds;         /* sums to compute, of enum stage_sum_kind */
    unsigned files_at_once; /* 1..STAGE_FILES_AT_ONCE_MAX */
    bool any_file;          /* also copy files that are not containers */
    bool strict;            /* a warning, or an unverified field, is a failure */
    bool force;             /* replace another file that has the target's name */
    bool check_existing;    /* read and compare even a target that seems up to date */
    bool require_sums;      /* an item without `sum` is unverified */
    bool verify_target;     /* read the copy again from the disk */
    uint64_t checkpoint;    /* bytes between two points where a copy can resume; 0: automatic */
    const char *socket;     /* path of the job's Unix socket; NULL: without a job */
    unsigned job_timeout;   /* seconds without a reply after which the job has failed */
};

struct stage_item {
    char *source, *target;
    uint64_t size; /* bytes of the source when it was listed; the copy gets the current size */
    dev_t device;  /* of the source, as is inode; only the caller uses them */
    ino_t inode;
    bool is_other;   /* not a container, and skipped unless any_file */
    const char *sum; /* NULL, or the sum that the file must have, by stage_digest_format() */
    enum stage_sum_kind sum_kind; /* of `sum`; must be in stage_options.kinds */
};

/* At most STAGE_MESSAGES_MAX messages; `more` counts those that were left out. */
struct stage_messages {
    char *line[STAGE_MESSAGES_MAX];
    unsigned count;
    uint64_t more;
};

enum stage_status {
    STAGE_STAGED,
    STAGE_UP_TO_DATE, /* the target is already a copy; nothing was done */
    STAGE_FAILED,     /* `reason` is set; an existing target is unchanged */
    STAGE_SKIPPED,    /* `reason` is set; the item is_other */
    STAGE_STOPPED,    /* stage_stop() has interrupted this file */
    STAGE_STATUS_COUNT,
};

struct stage_result {
    enum stage_status status;
    const struct stage_item *item;
    char reason[STAGE_REASON_MAX]; /* without the file's name */
    bool has_verdict;              /* `verdict` is set */
    enum limefile_verdict verdict; /* on the source or an existing target; docs/verdicts.md */
    struct stage_messages warnings;
    struct stage_messages unverified; /* data without a comparable checksum, and why */
    uint64_t size, records;
    uint64_t resumed;  /* bytes kept from an earlier run */
    uint64_t verified; /* number of fields with the right checksum */
    bool read;         /* this run has read all data and compared their checksums */
    bool has_size;     /* `size` is set */
    bool container;    /* the file is a LIME container, and `records` is set */
    bool has_digest;   /* `digest` is set */
    struct stage_digest digest;
    char lfn[LIMEFILE_LFN_MAX]; /* logical file name that the file states, or "" */
    double seconds;
};

struct stage;

/* Starts threads that stage the items, which must outlive *out. A job that does not answer is
 * not an error: this process then copies by itself, and stage_job_failure() returns why. */
int stage_start(const struct stage_options *, const struct stage_item *items, size_t count,
                struct stage **out);

/* Waits until a file is finished. Returns 1 with its result, which the caller must release; 0
 * after the timeout; or -1 if all threads have ended and all results were returned: an item
 * that still has no result was not begun. *moved: bytes copied so far, of all files. */
int stage_wait(struct stage *, int timeout_ms, struct stage_result **out, uint64_t *moved);

/* Releases a result; must be called before stage_free(). No further file begins while thousands
 * of results are unreleased, so a caller must not hold all results until the end. */
void stage_result_release(struct stage_result *);

/* Returns the number of data records whose checksum is missing or cannot be compared. */
uint64_t stage_unverified_count(const struct stage_result *);

/* Makes the threads begin no further file, and interrupts the files in progress. The next run
 * can resume these. */
void stage_stop(struct stage *);

/* Returns why the job could not be reached or has failed, or NULL; valid until stage_free(). */
const char *stage_job_failure(struct stage *);

void stage_free(struct stage *); /* after stage_wait() has returned -1 */

/* Sets *needed to the bytes that the copies need in addition to the temporary files of earlier
 * runs. A target of the source's size counts as up to date and needs 0 bytes. Sets *available
 * to the free bytes of dir's file system. Returns 0 or -errno. */
int stage_compute_space(const struct stage_item *items, size_t count, const char *dir,
                        uint64_t *needed, uint64_t *available);

#endif
