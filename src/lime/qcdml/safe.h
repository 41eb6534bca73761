/* safe.h - what is refused of any XML document before anything is made of it; inside of
 * src/lime/qcdml */
#ifndef QCDML_SAFE_H
#define QCDML_SAFE_H

#include <expat.h>
#include <stdbool.h>
#include <stddef.h>

/* Expat 2.9 deprecates the names without 64; earlier versions have no others. */
#if XML_MAJOR_VERSION * 1000 + XML_MINOR_VERSION < 2009
#define XML_GetCurrentLineNumber64 XML_GetCurrentLineNumber
#define XML_GetCurrentByteIndex64  XML_GetCurrentByteIndex
#define XML_GetCurrentByteCount64  XML_GetCurrentByteCount
#endif

enum {
    SAFE_DEPTH_MAX = 64,        /* of nested elements */
    SAFE_ELEMENTS_MAX = 200000, /* in one document */
    SAFE_WHY_MAX = 160,
};

/* A parser with its limits, the first member of what the handlers get. */
struct safe {
    XML_Parser parser;
    unsigned depth, seen;
    bool refused;
    size_t line;
    char why[SAFE_WHY_MAX]; /* "" if nothing is wrong */
};

/* Names come as "URI|local", or as "local" where there is no namespace. -ENOMEM. */
int safe_begin(struct safe *);

/* All of it. LIMEFILE_E_XML with line and why; -ENOMEM. Releases the parser. */
int safe_parse(struct safe *, const void *xml, size_t n);

/* Stops the parser: the first reason counts. */
__attribute__((format(printf, 2, 3))) void safe_refuse(struct safe *, const char *format, ...);

/* To be called first for each element, and last; false: it was refused. */
bool safe_enter(struct safe *);
void safe_leave(struct safe *);

#endif
