/* contents.h - examine a file before it is copied: its records, fields and deviations */
#ifndef STAGE_CONTENTS_H
#define STAGE_CONTENTS_H

#include "stage.h"

struct stage_contents {
    bool container; /* the file is a LIME container */
    struct limefile_index *index;
    struct limefile_fields fields; /* only of a container */
};

/* Examines the file. Sets the result's container, records and lfn, and replaces its warnings
 * and unverified data. Returns 0 or a negative code. An error releases the contents, and sets
 * the result's reason and, if the file is the cause, its verdict. */
int stage_contents_examine(struct stage_contents *, int fd, const struct stage_options *,
                           struct stage_result *);
void stage_contents_release(struct stage_contents *);

/* Returns 1 if the copy `fd` has the same records at the same offsets, 0 if not, or -errno. */
int stage_contents_match(const struct stage_contents *, int fd);

/* Adds a formatted message, or counts it in `more` if the list is full. */
__attribute__((format(printf, 2, 3))) void stage_messages_add(struct stage_messages *,
                                                              const char *format, ...);

void stage_messages_release(struct stage_messages *);

void stage_set_verdict(struct stage_result *, enum limefile_verdict verdict);

/* Sets the verdict on a file that is staged or up to date: skipped if it is not a container;
 * unverified if data have no comparable checksum; good if this run has read and compared all
 * data; otherwise none. Replaces the reason, which an earlier attempt may have set. */
void stage_set_copy_verdict(struct stage_result *);

/* Sets the result's reason. Returns err, or -EIO if err is not negative. */
__attribute__((format(printf, 3, 4))) int stage_fail(struct stage_result *, int err,
                                                     const char *format, ...);

#endif
