/*
 * xmlread.h - the values of a small XML document: the texts of the children of one element,
 * the leaves, the attributes.
 * Inside of src/lime and its programs; expat does the parsing.
 */
#ifndef LIMEFILE_XMLREAD_H
#define LIMEFILE_XMLREAD_H

#include <stdbool.h>
#include <stddef.h>

enum {
    XMLREAD_DEPTH_MAX = 64,       /* of nested elements */
    XMLREAD_ELEMENTS_MAX = 20000, /* in one document */
    XMLREAD_TEXT_MAX = 256,       /* of a value, with the NUL */
};

/* One value that is asked for. */
struct xmlread_value {
    const char *name; /* of the child, without its namespace */
    bool found;
    bool bad; /* too long, or there twice with different texts; `text` holds a part then */
    char text[XMLREAD_TEXT_MAX]; /* UTF-8, without control bytes and white space around it */
};

/*
 * Fills `values` from the children of the first element that has one of these names (NULL ends
 * them); where there is none, of the root. Names are compared without namespaces and case. Of
 * elements inside of a value the texts count, separated by spaces. Bytes that are no UTF-8,
 * though the document says so, are taken for ISO-8859-1.
 *
 * What surrounds the document, NULs, white space and a byte order mark, is passed over; it ends
 * with the first NUL. Linear in n. LIMEFILE_E_XML: not well-formed, beyond the limits above,
 * longer than LIMEFILE_XML_BYTES_MAX, or with a document type that declares anything.
 */
int xmlread_values(const void *xml, size_t n, const char *const *elements,
                   struct xmlread_value *values, size_t count);

/*
 * What people have written into a document of any kind: `fact` gets the leaves below the root,
 * in their order, with their local names and their texts without white space around them, line
 * ends and control bytes kept, at most XMLREAD_FACT_MAX bytes of each; the text of a root
 * without elements too. Limits and results as above; facts that come before an error have been
 * given.
 */
enum { XMLREAD_FACT_MAX = 16384 };
typedef void xmlread_fact_fn(void *context, const char *name, size_t depth, const char *text);
int xmlread_facts(const void *xml, size_t n, xmlread_fact_fn *fact, void *context);

#endif
