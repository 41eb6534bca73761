/* qcdml.h - the configurations in a container, as a QCDml document describes them: one for
 * each ildg-binary-data */
#ifndef QCDML_H
#define QCDML_H

#include "container.h"
#include "limeildg.h"
#include "limephysics.h"
#include "limeqcdml.h"
#include "tool.h"

#include <jansson.h>

enum { PLAQUETTE_MAX = 40 };

/* Small: a container may have a million. */
struct config {
    uint32_t ordinal;
    uint32_t cksum;
    char plaquette[PLAQUETTE_MAX]; /* a number as text; "": not known */
    const char *from;              /* where it comes from: "as xlf-info says" */
};

struct configs {
    struct container c;
    struct limefile_fields fields;
    struct config *config;
    size_t count;
    uint64_t bytes; /* of all of them */
    unsigned threads;
    struct progress progress;
};

/* Opens the container, or the folder as which limefs shows it. Exit statuses, after a message
 * if not GOOD; configs_close() only after GOOD. */
int configs_open(struct configs *, const char *path, unsigned threads);
void configs_close(struct configs *);

void configs_field(const struct configs *, size_t i, struct limefile_field *out);

/* Reads the data, and takes their cksum; sets it. An exit status. */
int configs_cksum(struct configs *, size_t i);

/* What an ildg-data-lfn of the container says: 1: that name is among them; 0: others are; -1:
 * there is none. `lfn` NULL: whether there is one, and *only, if not NULL, the only one there
 * is or "". */
int configs_lfn(const struct configs *, const char *lfn, char only[LIMEFILE_LFN_MAX]);

/* "single", "double", "mixed"; NULL: not known of all. */
const char *configs_precision(const struct configs *);

/* Finds out the plaquette of the i-th, and sets it; it may stay unknown. An exit status. */
int configs_plaquette(struct configs *, size_t i);

/* True if the text is a finite decimal number, which a document may hold. */
bool plaquette_parse(const char *text, struct limefile_physics_stated *out);

/* ---- documents ---- */

/* Reads a whole document; *text is to be freed. An exit status. */
int document_read(const char *path, char **text, size_t *n);

/* The same, understood; `text` must stay as long as it. */
int document_understand(const char *path, const char *text, size_t n, struct limefile_qcdml *);

/* ---- lime check --qcdml: a container compared with its document ---- */

/* The first part is the caller's; the rest is zero to begin with. */
struct qcdml_check {
    const char *document, *path;
    unsigned threads;
    bool strict;   /* a crcCheckSum of another kind is a difference */
    bool silent;   /* says nothing, but of what cannot be read */
    json_t *found; /* an empty array, for the first differences and warnings */

    int status; /* TOOL_BAD if there is a difference */
    bool compared;
    size_t records; /* in the document */
    size_t differences, warnings;
};

/* Reads the data. */
void qcdml_check(struct qcdml_check *);

/* {"file": "conf.xml", ...} */
json_t *qcdml_check_json(const struct qcdml_check *);

#endif
