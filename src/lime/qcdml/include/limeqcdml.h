/*
 * limeqcdml.h - QCDml configuration documents (config2.0): what they say of a container, with
 * what is in their place replaced, and whether a schema allows them.
 *
 * ILDG's catalogues have such a document for each file. Of a document only the texts of a few
 * elements are looked at and replaced; all other bytes stay as they are. Parsed by expat within
 * limits: without any document type declaration, so without entities, and nothing is ever
 * fetched. Results are as in limefile.h. Nothing here prints or has global state.
 */
#ifndef LIMEQCDML_H
#define LIMEQCDML_H

#include "limefile.h"

#define LIMEFILE_QCDML_BYTES_MAX                                \
    (4 << 20) /* the longest document, and schema, that is read \
               */

enum {
    LIMEFILE_QCDML_TEXT_MAX = 1024, /* of a value, with the NUL */
    LIMEFILE_QCDML_WHY_MAX = 160,
};

/* ---- documents (document.c) ----------------------------------------------------------- */

/* An element that holds text. */
struct limefile_qcdml_value {
    bool found;
    size_t line;       /* where it begins, from 1 */
    size_t begin, end; /* what is in it: a range of the document */
    bool empty;        /* <name/>: the range is what closes it */
    char *text;        /* without white space around it */
    char *fresh;       /* what it shall be, or NULL; owned */
};

/* One of markovSequence/markovStep/record, of which there is one for each ildg-binary-data. */
struct limefile_qcdml_record {
    size_t line;
    struct limefile_qcdml_value field, crc, plaquette;
};

struct limefile_qcdml {
    const char *xml; /* the caller's, and to be kept until it is released */
    size_t bytes;
    struct limefile_qcdml_value lfn, precision;
    struct limefile_qcdml_record *record;
    size_t count;
    size_t line; /* of a failure, and why */
    char why[LIMEFILE_QCDML_WHY_MAX];
};

/* LIMEFILE_E_XML: it cannot be parsed, or not within the limits; LIMEFILE_E_XML_VALUE: it is no
 * configuration document, or one of the elements above is there twice, holds elements or is too
 * long. Then `line` and `why` say more. Is to be released whatever it was. */
int limefile_qcdml_parse(const void *xml, size_t n, struct limefile_qcdml *out);
void limefile_qcdml_release(struct limefile_qcdml *);

/* The value shall be that text, ASCII. -ENOMEM. */
int limefile_qcdml_set(struct limefile_qcdml_value *, const char *text);

/* The document with all that was set in its place; *out is to be freed. -ENOMEM. */
int limefile_qcdml_write(const struct limefile_qcdml *, char **out, size_t *n);

/* "930766865", "377a6011", "0x377a6011": a crcCheckSum has no prescribed form. What could be
 * either is told as decimal, and *hex, too. How many it can be: 0, 1, 2. */
unsigned limefile_qcdml_crc(const char *text, uint32_t *decimal, uint32_t *hex);

/* ---- schemas (schema.c): by libxml2, which is loaded when it is needed ---------------- */

/* A line from 1, or 0, and a sentence that lives as long as the call. */
typedef void limefile_qcdml_fault_fn(void *context, size_t line, const char *text);

/*
 * 1: the schema allows the document; 0: it does not, and each fault has been told.
 * LIMEFILE_E_XML: the schema itself is unusable, and its faults have been told, as whatever it
 * includes or imports is not read. -ENOSYS: there is no libxml2, told too. -ENOMEM.
 * Both come with limits as above. While it runs, no other thread may use libxml2.
 */
int limefile_qcdml_validate(const void *xml, size_t n, const void *schema, size_t schema_n,
                            limefile_qcdml_fault_fn *fault, void *context);

#endif
