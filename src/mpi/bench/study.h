/*
 * study.h - one lattice, written and read by Lemon: what the sub-commands share
 */
#ifndef BENCH_STUDY_H
#define BENCH_STUDY_H

#include "lemon.h"
#include "options.h"
#include "report.h"

struct bench_study {
    const struct bench_options *options;
    const struct bench_world *world;
    const char *name; /* of the sub-command */
    MPI_Comm cart;
    const struct bench_pattern *pattern;
    int64_t bytes; /* of the lattice */
    char *data;
    const char *cache;
    MPI_File file;
    LemonWriter *writer; /* one of the two, while the file is open */
    LemonReader *reader;
};

/* BENCH_GOOD, or another status after a message. Collective. */
int bench_study_set(struct bench_study *, const char *name, const struct bench_options *,
                    const struct bench_world *);
void bench_study_free(struct bench_study *);

/* A new file, or that which is there, with a writer or reader of it; then what Lemon answered.
 */
bool bench_study_open(struct bench_study *, bool writing);
bool bench_study_close(struct bench_study *);
bool bench_study_check(struct bench_study *, const char *action, int code);

/* The record's header, written or read. */
int bench_study_header(struct bench_study *);

/* What was read must be what was written; before reading, the buffer must be neither. */
void bench_study_spoil(struct bench_study *);
bool bench_study_verify(struct bench_study *);

void bench_study_drop_cache(struct bench_study *);

/* "parameters" of the JSON object. */
json_t *bench_study_parameters(const struct bench_study *);

/* The sub-commands: they write their results into `json`, which may be NULL, and text to `to`,
 * which may be NULL. BENCH_GOOD or BENCH_FAILED. */
int bench_overlap(struct bench_study *, json_t *json, FILE *to);
int bench_checksum(struct bench_study *, json_t *json, FILE *to);

#endif
