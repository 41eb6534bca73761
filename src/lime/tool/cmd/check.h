/* check.h - lime check: what is found out about one file */
#ifndef CHECK_H
#define CHECK_H

#include "limeildg.h"
#include "progress.h"
#include "qcdmlcheck.h"

#include <stdbool.h>
#include <stdint.h>

struct check_options {
    bool quiet, json;
    bool lines;   /* JSON: an object a line */
    bool data;    /* sums too */
    bool physics; /* configurations too: plaquette, link trace, SU(3) */
    bool strict;  /* data without a checksum or a description are deviations */
    unsigned threads;
    bool here; /* by this host's processors, though a mount may have ranks */
};

/* Path, options and progress are the caller's. The rest is zero to begin with. */
struct check {
    const char *path;
    const struct check_options *options;
    struct qcdml_check *qcdml; /* or NULL; compared by who prints it */
    struct progress *progress; /* of this one */
    bool optional;             /* if it does not begin like a container, it is passed over */

    const char *format; /* if it is no container: "nersc", "milc", "openqcd" */
    const char *error;  /* why it could not be looked at, or NULL; not owned */
    bool passed_over, empty;
    uint64_t deviations, faults;
    uint64_t records, size;
    uint32_t messages;
    int fault;                                 /* the code that ended the container, or 0 */
    uint64_t verified, wrong, unverified;      /* sums */
    uint64_t physical, unphysical, unexamined; /* configurations */
    uint64_t summed; /* bytes that were read for sums and for physics */
};

/* Checks the file, and says what it finds, but for the end of the line. An exit status. */
int check_file(struct check *);

/* What has been found out: false if it is no container; a line; a word for scripts. */
bool check_is_container(const struct check *);
void check_summary(const struct check *);
const char *check_verdict(const struct check *);

/* The JSON of a file of which nothing is known but `error`. */
void check_lost_json(struct check *);

/* The verdict, and what a document says, which end the JSON of a file. */
void check_end_json(const struct check *, const char *verdict);

#endif
