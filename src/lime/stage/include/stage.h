/*
 * stage.h - copies of containers that are verified on their way and appear whole or not at all
 *
 * A list of files is copied, several at once. Each file is first looked at (plan.h: its
 * structure, its fields), then copied (transfer.h) into a temporary file beside its target
 * (target.h), and gets its name only when its sums, the SciDAC checksums in it, and the
 * structure of what was written are right, and all of it is on the disk. docs/staging.md.
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
    STAGE_WORDS_MAX = 8,
};

struct stage_options {
    unsigned kinds;         /* of enum stage_sum_kind */
    unsigned files_at_once; /* 1..STAGE_FILES_AT_ONCE_MAX */
    bool any;               /* what is no container is copied, too */
    bool strict;            /* a warning is a failure, and a field that is not verified */
    bool force;             /* another file that has the target's name is replaced */
    bool check_there;       /* what is there already is read and compared */
    bool verify_target;     /* what was written is read again from the disk */
    uint64_t
        checkpoint;     /* bytes after which is noted how far a file is synced; 0: as is best */
    const char *socket; /* of a running limefs-io, or NULL */
    unsigned job_timeout; /* seconds without an answer after which it has failed */
};

struct stage_item {
    char *source, *target;
    uint64_t size; /* for the progress; what the file has in the end is looked up later */
    dev_t device;  /* of the source when the list was made; inode 0: unknown */
    ino_t inode;
};

/* Sentences, at most STAGE_WORDS_MAX of them; `more` were left out. */
struct stage_words {
    char *line[STAGE_WORDS_MAX];
    unsigned count;
    uint64_t more;
};

enum stage_status {
    STAGE_STAGED,
    STAGE_THERE,   /* it had been staged before, and nothing was done */
    STAGE_FAILED,  /* there is a reason; under the target's name is what was there before */
    STAGE_STOPPED, /* by stage_stop() */
};

struct stage_result {
    enum stage_status status;
    const struct stage_item *item;
    char reason[STAGE_REASON_MAX]; /* without the file's name */
    bool judged;                   /* the next is known: the file was examined in this run */
    enum limefile_verdict verdict; /* on the source; docs/verdicts.md */
    struct stage_words words;      /* warnings */
    struct stage_words unverified; /* data without a checksum that can be compared, and why */
    uint64_t size, records;
    uint64_t resumed;  /* bytes that an earlier try had left */
    uint64_t verified; /* fields whose checksum is right */
    bool read;         /* all of it was, and so compared */
    bool sized, container, has_digest;
    struct stage_digest digest;
    char lfn[LIMEFILE_LFN_MAX];
    double seconds;
};

struct stage;

/* Items must outlive it. -errno; a job that does not answer is no failure (stage_job_failure).
 */
int stage_start(const struct stage_options *, const struct stage_item *items, size_t count,
                struct stage **out);

/* A file that is done with, in the order in which they are: 1, to be released. 0: none within
 * that time. -1: there will be none. *moved: bytes of all files that are done with so far. */
int stage_next(struct stage *, int timeout_ms, struct stage_result **out, uint64_t *moved);

/* Before stage_free(). While thousands are not released nothing more is begun, so that a caller
 * may wait with them for the first item that is under way, and for nothing else. */
void stage_result_release(struct stage_result *);

/* How many records of data have no checksum, or one that cannot be compared. */
uint64_t stage_unverified_count(const struct stage_result *);

/* What is under way is brought to where it can be resumed, and nothing else is begun. */
void stage_stop(struct stage *);

/* Why the job is not used (any more), or NULL. */
const char *stage_job_failure(struct stage *);

void stage_free(struct stage *); /* after stage_next() has said -1 */

/* How many bytes the targets will need beyond what is there, and how many `folder`'s file
 * system has. -errno. */
int stage_space(const struct stage_item *items, size_t count, const char *folder,
                uint64_t *needed, uint64_t *available);

#endif
