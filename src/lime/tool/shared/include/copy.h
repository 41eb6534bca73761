/* copy.h - bytes from one descriptor to another by the fastest way that the two allow */
#ifndef COPY_H
#define COPY_H

#include "limefile.h"
#include "progress.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define COPY_AT_POSITION INT64_C(-1)

/* Filled in by the caller; advances as bytes are moved. */
struct copy {
    int in;
    uint64_t in_offset;
    int out;
    int64_t out_offset; /* COPY_AT_POSITION: where the descriptor stands, as write() does */
    uint64_t left;
    struct progress *progress; /* or NULL */
    bool writing;              /* after a failure: it was the writing that failed */
};

/* All data of the record, out of the container in `in`, to stdout. */
struct copy copy_to_stdout(int in, const struct limefile_record *);

/* Moves all that is left. -errno, or LIMEFILE_E_SHRUNK if the input ends before. */
int copy_run(struct copy *);

/* The same of n bytes in memory, which are no more than are left. -errno. */
int copy_put(struct copy *, const void *bytes, size_t n);

/* Whether an input still is as it was before: data that change while they are copied would make
 * a record that never was. */
bool copy_is_unchanged(int in, const struct stat *before);

/* The failure of a copy in words: the file that failed, and how. */
void copy_message(const struct copy *, const char *in_name, const char *out_name, int code);

#endif
