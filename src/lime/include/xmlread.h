/*
 * xmlread.h - read values from a small XML document: the texts of the children of one element,
 * or of all leaves. For src/lime and its programs only; expat does the parsing.
 */
#ifndef LIMEFILE_XMLREAD_H
#define LIMEFILE_XMLREAD_H

#include <stdbool.h>
#include <stddef.h>

enum {
    XMLREAD_DEPTH_MAX = 64,       /* nesting of elements */
    XMLREAD_ELEMENTS_MAX = 20000, /* elements in one document */
    XMLREAD_TEXT_MAX = 256,       /* bytes of a value, with the NUL */
};

/* A requested value. */
struct xmlread_value {
    const char *name; /* name of the child, without namespace */
    bool found;
    bool bad; /* too long, or given twice with different texts; do not use `text` */
    char text[XMLREAD_TEXT_MAX]; /* UTF-8, without control bytes, trimmed */
};

/* Fills `values` from the children of the first element with a name in `elements` (NULL ends
 * this list) or, if no element has one, of the root. Names are compared without their
 * namespaces and without case. Texts of nested elements are joined with spaces. If a document
 * claims to be UTF-8 but is not, its bytes are read as ISO-8859-1.
 *
 * NULs, white space and a byte order mark around the document are skipped; the first NUL after
 * them ends the document. Takes time linear in n. LIMEFILE_E_XML: the document is not
 * well-formed, exceeds LIMEFILE_XML_BYTES_MAX or a limit above, or its document type has
 * declarations. */
int xmlread_values(const void *xml, size_t n, const char *const *elements,
                   struct xmlread_value *values, size_t count);

/* Calls `fact` for each leaf of a document in order (for the root if it has no elements), with
 * its local name, its text and its depth (1: the root). The text is trimmed, keeps line ends
 * and control bytes, and is cut after XMLREAD_FACT_MAX bytes. Limits and results are as above;
 * if there is an error, `fact` has been called for the leaves before it. */
enum { XMLREAD_FACT_MAX = 16384 };
typedef void xmlread_fact_fn(void *context, const char *name, size_t depth, const char *text);
int xmlread_facts(const void *xml, size_t n, xmlread_fact_fn *fact, void *context);

#endif
