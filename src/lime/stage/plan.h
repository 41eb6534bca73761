/* plan.h - what a file is, before it is copied: its records, its fields, what is wrong with it
 */
#ifndef STAGE_PLAN_H
#define STAGE_PLAN_H

#include "stage.h"

struct stage_plan {
    bool container;
    struct limefile_index *index; /* NULL if it is none */
    struct limefile_fields fields;
};

/* A failure (negative) comes with its reason and, if it is the file's, its verdict. Warnings
 * and data that cannot be verified go to the result's words; those of an earlier call are
 * removed.
 */
int stage_plan_build(struct stage_plan *, int fd, const struct stage_options *,
                     struct stage_result *);
void stage_plan_release(struct stage_plan *);

/* 1 if the file has the same records at the same places; 0 if not; -errno if it is unknown. */
int stage_plan_fits(const struct stage_plan *, int fd);

/* Adds a sentence. */
__attribute__((format(printf, 2, 3))) void stage_words_add(struct stage_words *,
                                                           const char *format, ...);

void stage_words_release(struct stage_words *);

/* Sets the verdict on the source. */
void stage_judge(struct stage_result *, enum limefile_verdict verdict);

/* The same for a file that is staged or there. What was there and was not read in this run has
 * no verdict, unless no earlier run can have verified it either. */
void stage_judge_copy(struct stage_result *);

/* Sets the reason; returns err, or -EIO if that is not negative. */
__attribute__((format(printf, 3, 4))) int stage_fail(struct stage_result *, int err,
                                                     const char *format, ...);

#endif
