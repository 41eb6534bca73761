/* contents.h - examine a file before it is copied: its records, fields and deviations */
#ifndef STAGE_CONTENTS_H
#define STAGE_CONTENTS_H

#include "stage.h"

struct stage_contents {
    bool container;
    struct limefile_index *index; /* NULL if the file is not a container */
    struct limefile_fields fields;
};

/* Examines the file. After a failure (negative) the result has the reason and, if the file
 * causes it, the verdict. Warnings and unverified data go to the result and replace those of an
 * earlier call. */
int stage_contents_examine(struct stage_contents *, int fd, const struct stage_options *,
                           struct stage_result *);
void stage_contents_release(struct stage_contents *);

/* Returns 1 if the file has the same records at the same offsets, 0 if not, or -errno. */
int stage_contents_match(const struct stage_contents *, int fd);

/* Adds a message. */
__attribute__((format(printf, 2, 3))) void stage_messages_add(struct stage_messages *,
                                                              const char *format, ...);

void stage_messages_release(struct stage_messages *);

/* Sets the verdict on the source. */
void stage_set_verdict(struct stage_result *, enum limefile_verdict verdict);

/* Sets the verdict on a file that is staged or up to date. A file that is up to date and was
 * not read in this run gets no verdict, unless no earlier run can have verified it either. */
void stage_set_copy_verdict(struct stage_result *);

/* Sets the reason. Returns err, or -EIO if err is not negative. */
__attribute__((format(printf, 3, 4))) int stage_fail(struct stage_result *, int err,
                                                     const char *format, ...);

#endif
