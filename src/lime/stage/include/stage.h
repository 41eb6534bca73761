/*
 * stage.h - copy a list of containers, and verify each copy before it gets its target's name
 *
 * Threads copy several files at once. For each file the thread reads its structure and fields
 * (contents.h), copies it (copy_ring.h) into a temporary file next to its target (target.h),
 * and renames that only when its sums, its SciDAC checksums and the structure of the written
 * file are right, and all bytes are on the disk. docs/staging.md.
 *
 * Nothing here prints. Results are as in limefile.h.
 */
#ifndef STAGE_H
#define STAGE_H

#include "limeverdict.h"
#include "sums.h"

#include <stdio.h>
#include <sys/types.h>

enum {
    STAGE_FILES_AT_ONCE = 8,
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
    bool check_existing;    /* if the target is up to date, read and compare it, too */
    bool verify_target;     /* read the copy again from the disk */
    uint64_t checkpoint;    /* bytes between checkpoints of a copy; 0: automatic */
    const char *socket;     /* of a running limefs-io, or NULL */
    unsigned job_timeout;   /* seconds without a reply after which the job has failed */
};

struct stage_item {
    char *source, *target;
    uint64_t size; /* bytes, for the progress; stage_file_run() reads it again */
    dev_t device;  /* of the source when the list was built; inode 0: unknown */
    ino_t inode;
};

/* At most STAGE_MESSAGES_MAX messages; `more` counts those that were left out. */
struct stage_messages {
    char *line[STAGE_MESSAGES_MAX];
    unsigned count;
    uint64_t more;
};

enum stage_status {
    STAGE_STAGED,
    STAGE_UP_TO_DATE, /* an earlier run staged it; nothing was done */
    STAGE_FAILED,     /* `reason` is set; an existing target is unchanged */
    STAGE_STOPPED,    /* stage_stop() has interrupted it */
};

struct stage_result {
    enum stage_status status;
    const struct stage_item *item;
    char reason[STAGE_REASON_MAX]; /* without the file's name */
    bool has_verdict;              /* `verdict` is set: this run examined the file */
    enum limefile_verdict verdict; /* on the source; docs/verdicts.md */
    struct stage_messages warnings;
    struct stage_messages unverified; /* data without a comparable checksum, and why */
    uint64_t size, records;
    uint64_t resumed;  /* bytes kept from an earlier run */
    uint64_t verified; /* number of fields with the right checksum */
    bool read;         /* all data were read and compared */
    bool has_size, container, has_digest;
    struct stage_digest digest;
    char lfn[LIMEFILE_LFN_MAX];
    double seconds;
};

struct stage;

/* Starts the threads. `items` must outlive the stage. Returns -errno; a job that does not
 * answer is not an error (stage_job_failure). */
int stage_start(const struct stage_options *, const struct stage_item *items, size_t count,
                struct stage **out);

/* Waits for a finished file, in the order in which they finish. Returns 1 and a result to be
 * released, 0 after the timeout, or -1 if no file is left. *moved: bytes copied so far, of all
 * files. */
int stage_wait(struct stage *, int timeout_ms, struct stage_result **out, uint64_t *moved);

/* Call it before stage_free(). No file begins while thousands of results are not released, so a
 * caller may hold them until the first item in progress is finished, but for nothing else. */
void stage_result_release(struct stage_result *);

/* Returns how many data records have no checksum, or one that cannot be compared. */
uint64_t stage_unverified_count(const struct stage_result *);

/* Begins no further file, and interrupts those in progress where they can be resumed. */
void stage_stop(struct stage *);

/* Returns why the job is not used (any more), or NULL. */
const char *stage_job_failure(struct stage *);

void stage_free(struct stage *); /* after stage_wait() has returned -1 */

/* Computes the bytes that the targets need in addition to existing ones, and the bytes that the
 * file system of the directory has free. -errno. */
int stage_compute_space(const struct stage_item *items, size_t count, const char *dir,
                        uint64_t *needed, uint64_t *available);

#endif
