/* check.h - lime check: examine one file and print the result */
#ifndef CHECK_H
#define CHECK_H

#include "field_check.h"
#include "files.h"
#include "limefile.h"
#include "limeverdict.h"
#include "tool.h"
#include "qcdml.h"

#include <stdbool.h>
#include <stdint.h>

enum { FIRST_TEXT_MAX = 512 };

struct check_options {
    bool data;    /* also compare checksums */
    bool physics; /* also compute plaquette and link trace of configurations */
    bool strict;  /* warnings and unverified data count as bad */
    unsigned threads;
};

/* One file to check. The caller sets the members before the empty line and zeroes the others,
 * which check_file() sets. */
struct check {
    const char *path;
    const struct check_options *options;
    struct file_task *task;    /* prints the findings, as text or JSON; NULL: print nothing */
    struct qcdml_check *qcdml; /* comparison with a QCDml document, or NULL; check_file() runs
                                * it if the output is JSON; if not, the caller does */
    struct progress *progress; /* or NULL */
    bool is_optional;          /* skip the file if it is not a container */

    enum limefile_verdict verdict;
    const char *format;  /* "nersc", "milc" or "openqcd" for a file in that format; else NULL */
    const char *error;   /* why the file could not be read, or NULL; not owned */
    const char *skipped; /* why the file is skipped, or NULL; not owned */
    uint64_t warnings, deviations, faults; /* numbers of findings, by kind (limeerror.h) */
    char first_text[FIRST_TEXT_MAX];       /* text of the first deviation or fault, or "" */
    uint64_t records, size;
    uint32_t messages;
    int end_code;     /* code of the fault that ends the list of records, or 0 */
    bool read_failed; /* a part of the file cannot be read */
    bool has_data;    /* the file has data that --data would read */
    struct check_counts sums, physics; /* results of --data and of --physics */
    uint64_t bytes_read;               /* bytes read for checksums and for physics */
};

/* Examines the file, prints the findings and sets check->verdict. With JSON, the object's
 * members begin with file_json_begin(). */
void check_file(struct check *);

#endif
