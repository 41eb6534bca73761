/* limeqcdml.h - read QCDml configuration documents (config2.0), replace values in them, and
 * validate them with a schema.
 *
 * ILDG's catalogues have such a document for each file. Only the text of a few elements is read
 * and replaced; all other bytes remain unchanged. The parser, expat, runs with limits (size,
 * nesting). A document type declaration is an error, so a document cannot define entities or
 * refer to other files. Functions return 0 or a negative code (limeerror.h) unless stated
 * otherwise. The module prints nothing and has no global state. */
#ifndef LIMEQCDML_H
#define LIMEQCDML_H

#include "limefile.h"

#define LIMEFILE_QCDML_BYTES_MAX \
    (4 << 20) /* the size limit of a document, and of a schema, in bytes */

enum {
    LIMEFILE_QCDML_TEXT_MAX = 1024, /* bytes of a value, including the NUL */
    LIMEFILE_QCDML_WHY_MAX = 160,   /* bytes of an error message, including the NUL */
};

/* ---- documents (qcdml_parse.c) ----------------------------------------------------------- */

/* An element that contains text. */
struct limefile_qcdml_value {
    bool found;        /* the document has the element; otherwise all members are zero */
    size_t line;       /* line of the tag, from 1 */
    size_t begin, end; /* the content is the bytes [begin, end) of the document */
    bool empty;        /* the element is <name/>, and the range covers its "/>" */
    char *text;        /* the content without surrounding white space; owned */
    char *new_text;    /* set by limefile_qcdml_set_text(), or NULL; owned */
};

/* An element markovSequence/markovStep/record: one for each ildg-binary-data of the file. */
struct limefile_qcdml_record {
    size_t line;
    struct limefile_qcdml_value field, crc, plaquette;
};

struct limefile_qcdml {
    const char *xml; /* not owned; must outlive this object */
    size_t bytes;
    struct limefile_qcdml_value lfn, precision;
    struct limefile_qcdml_record *record;
    size_t count;                     /* number of elements of `record` */
    size_t line;                      /* line of the error that has stopped the parser */
    char why[LIMEFILE_QCDML_WHY_MAX]; /* the reason of this error */
};

/* Parses a document. The caller must release `out`, also after an error. Returns 0, -ENOMEM,
 * LIMEFILE_E_XML if the document is not well-formed or exceeds a limit, or LIMEFILE_E_XML_VALUE
 * if it is not a configuration document, or the element of a value occurs twice, contains
 * elements or is too long. out->line and out->why explain the last two errors. */
int limefile_qcdml_parse(const void *xml, size_t n, struct limefile_qcdml *out);
void limefile_qcdml_release(struct limefile_qcdml *);

/* Sets the new text of a value that was found. Copies `text`, which must be ASCII. -ENOMEM. */
int limefile_qcdml_set_text(struct limefile_qcdml_value *, const char *text);

/* Writes the document with all new texts to memory, *out, which the caller frees. -ENOMEM. */
int limefile_qcdml_write(const struct limefile_qcdml *, char **out, size_t *n);

/* Parses a crcCheckSum, which may be decimal or hexadecimal: "930766865", "377a6011" or
 * "0x377a6011". Returns 0 if it is not a number; 1 if it can have only one value (in *decimal,
 * even if the text is hexadecimal); or 2 if it is valid in both bases (*decimal and *hex). */
unsigned limefile_qcdml_parse_crc(const char *text, uint32_t *decimal, uint32_t *hex);

/* ---- schemas (qcdml_validate.c) ---- */

/* Receives a fault's line (from 1; 0: unknown) and its text, valid only during the call. */
typedef void limefile_qcdml_fault_fn(void *context, size_t line, const char *text);

/* Validates a document with libxml2, which the first call loads. Returns 1 if the document is
 * valid; 0 if it is invalid or cannot be parsed; LIMEFILE_E_XML if the schema is unusable (it
 * must not include or import other files); -ENOSYS if libxml2 is missing; or -ENOMEM. Calls
 * `fault` for each fault, and if libxml2 is missing. Document and schema have the limit
 * LIMEFILE_QCDML_BYTES_MAX. During the call no other thread may use libxml2. */
int limefile_qcdml_validate(const void *xml, size_t n, const void *schema, size_t schema_n,
                            limefile_qcdml_fault_fn *fault, void *context);

#endif
