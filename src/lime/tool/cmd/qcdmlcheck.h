/* qcdmlcheck.h - lime check --qcdml: a container compared with its QCDml document */
#ifndef QCDMLCHECK_H
#define QCDMLCHECK_H

#include "jsonout.h"

#include <stdbool.h>
#include <stddef.h>

/* The first part is the caller's; the rest is zero to begin with. */
struct qcdml_check {
    const char *document, *path;
    unsigned threads;
    bool strict; /* a crcCheckSum of another kind is a difference */
    bool silent; /* says nothing, but of what cannot be read */

    int status; /* TOOL_BAD if there is a difference */
    bool compared;
    size_t records; /* in the document */
    size_t differences, warnings;
    struct jsonout_list found; /* the first of these */
    size_t found_count;
};

/* Reads the data. */
void qcdml_check(struct qcdml_check *);

/* {"file": "conf.xml", ...} */
void qcdml_check_json(struct qcdml_check *);
void qcdml_check_release(struct qcdml_check *);

#endif
