/* qcdml.h - read a container's configurations and compare them with their QCDml document */
#ifndef QCDML_H
#define QCDML_H

#include "container.h"
#include "limeildg.h"
#include "limephysics.h"
#include "limeqcdml.h"
#include "tool.h"

#include <jansson.h>

enum { PLAQUETTE_MAX = 40 };

/* An ildg-binary-data record. Kept small, because a container may have a million of them. */
struct config {
    uint32_t ordinal;
    uint32_t cksum;                /* set by configs_cksum() */
    char plaquette[PLAQUETTE_MAX]; /* decimal text; "" if unknown */
    const char *origin;            /* plaquette's source: "as in xlf-info"; NULL: unknown */
};

struct configs {
    struct container c;
    struct limefile_fields fields;
    struct config *config;
    size_t count;
    uint64_t bytes; /* in all configurations */
    unsigned threads;
    struct progress progress; /* begun by the caller; configs_cksum() advances it */
};

/* Opens a container, or the directory of one in a limefs mount. Returns TOOL_GOOD, or another
 * exit status after a message: also if the container has no configuration or has a fault. Call
 * configs_close() only after TOOL_GOOD. */
int configs_open(struct configs *, const char *path, unsigned threads);
void configs_close(struct configs *);

/* Gets the field of configuration i. */
void configs_field(const struct configs *, size_t i, struct limefile_field *out);

/* Reads the data of configuration i and sets its cksum. Returns an exit status. */
int configs_cksum(struct configs *, size_t i);

/* Compares the LFNs in the container's ildg-data-lfn records with lfn, which may be NULL.
 * Returns 1 if one is equal, 0 if all differ, -1 if no record has a valid LFN. common, unless
 * NULL, receives the LFN of all these records, or "" if their LFNs differ. */
int configs_lfn(const struct configs *, const char *lfn, char common[LIMEFILE_LFN_MAX]);

/* Returns "single", "double" or "mixed"; NULL if a configuration's precision is unknown. */
const char *configs_precision(const struct configs *);

/* Sets plaquette and origin of configuration i if they are unknown: computes the plaquette if
 * the links are SU(3) matrices, otherwise reads it from the metadata. The plaquette may stay
 * unknown. Returns an exit status, after a message if it is not TOOL_GOOD. */
int configs_plaquette(struct configs *, size_t i);

/* Parses a plaquette. Returns true if the text is a decimal number, as in a document. */
bool plaquette_parse(const char *text, struct limefile_physics_stated *out);

/* ---- documents ---- */

/* Reads a whole document. The caller frees *text. Returns an exit status, after a message if it
 * is not TOOL_GOOD; *text is NULL then. */
int document_read(const char *path, char **text, size_t *n);

/* Parses text, which must outlive the result; path is for messages. Returns TOOL_GOOD, or
 * another exit status after a message. After TOOL_GOOD, the caller must release the result. */
int document_parse(const char *path, const char *text, size_t n, struct limefile_qcdml *);

/* ---- lime check --qcdml: compare a container with its document ---- */

/* The caller sets the members up to `found`, and zeroes the rest. */
struct qcdml_check {
    const char *document, *path;
    unsigned threads;
    bool strict;   /* a crcCheckSum of another kind (qcdml.c) counts as a difference */
    bool silent;   /* print only errors, not differences */
    json_t *found; /* the caller's empty array; receives the first differences and warnings */

    int status; /* TOOL_BAD if there is a difference */
    bool compared;
    size_t records; /* in the document */
    size_t differences, warnings;
};

/* Reads the data, compares them with the document and sets check->status. */
void qcdml_check(struct qcdml_check *);

/* Returns the result as a new JSON object: {"file": "conf.xml", ...} */
json_t *qcdml_check_json(const struct qcdml_check *);

#endif
