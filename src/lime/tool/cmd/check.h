/* check.h - lime check: what is found out about one file */
#ifndef CHECK_H
#define CHECK_H

#include "fieldcheck.h"
#include "limefile.h"
#include "limeverdict.h"
#include "tool.h"
#include "qcdml.h"

#include <stdbool.h>
#include <stdint.h>

struct check_options {
    bool quiet, json;
    bool lines;        /* JSON: an object a line */
    bool data;         /* compare checksums, too */
    bool physics;      /* compute plaquette and link trace of configurations, too */
    bool strict;       /* warnings and what is unverified are bad */
    bool list_skipped; /* name the files that are skipped */
    bool all;          /* a file in a directory that is not a container is bad */
    unsigned threads;
};

/* Path, options and progress are the caller's. The rest is zero to begin with. */
struct check {
    const char *path;
    const struct check_options *options;
    struct qcdml_check *qcdml; /* or NULL; compared by who prints it */
    struct progress *progress; /* or NULL */
    bool optional;             /* if it is not a container, it is skipped */

    enum limefile_verdict verdict;
    const char *format;  /* if it is not a container: "nersc", "milc", "openqcd" */
    const char *error;   /* why it could not be read, or NULL; not owned */
    const char *skipped; /* why it is skipped, or NULL; not owned */
    uint64_t warnings, deviations, faults;
    uint64_t records, size;
    uint32_t messages;
    int fault;                         /* the code that ended the container, or 0 */
    bool read_failed;                  /* a part of it cannot be read */
    bool has_data;                     /* that --data would have read */
    struct check_counts sums, physics; /* physics: of configurations */
    uint64_t summed;                   /* bytes that were read for sums and for physics */
};

/* Examines the file and prints all about it; sets its verdict. */
void check_file(struct check *);

#endif
