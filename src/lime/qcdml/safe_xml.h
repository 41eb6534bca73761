/* safe_xml.h - parse untrusted XML within limits; internal to src/lime/qcdml */
#ifndef QCDML_SAFE_H
#define QCDML_SAFE_H

#include <expat.h>
#include <stdbool.h>
#include <stddef.h>

/* Expat 2.9 deprecates the names without the suffix 64, the only ones of earlier versions. */
#if XML_MAJOR_VERSION * 1000 + XML_MINOR_VERSION < 2009
#define XML_GetCurrentLineNumber64 XML_GetCurrentLineNumber
#define XML_GetCurrentByteIndex64  XML_GetCurrentByteIndex
#define XML_GetCurrentByteCount64  XML_GetCurrentByteCount
#endif

enum {
    SAFE_DEPTH_MAX = 64,        /* nested elements */
    SAFE_ELEMENTS_MAX = 200000, /* elements in one document */
    SAFE_WHY_MAX = 160,
};

/* A parser. Handlers receive a pointer to this struct as their context. The struct can be the
 * first member of a larger one. */
struct safe_xml {
    XML_Parser parser;
    unsigned depth, seen; /* numbers of open elements, and of all elements so far */
    bool stopped;
    size_t line;            /* where the parser was stopped */
    char why[SAFE_WHY_MAX]; /* the reason; "" if the parser was not stopped */
};

/* Creates the parser. Handlers get element names as "URI|local", or "local" for elements
 * without a namespace. Returns 0 or -ENOMEM. After 0, safe_xml_parse() must be called. */
int safe_xml_begin(struct safe_xml *);

/* Parses a whole document and frees the parser. Returns 0, -ENOMEM, or LIMEFILE_E_XML with the
 * line and the reason in the struct. */
int safe_xml_parse(struct safe_xml *, const void *xml, size_t n);

/* Stops the parser. The first call records the current line and the formatted reason. */
__attribute__((format(printf, 2, 3))) void safe_xml_stop(struct safe_xml *, const char *, ...);

/* The first action of a start handler must be safe_xml_enter(), the last one of an end handler
 * safe_xml_leave(). enter() returns false if the parser has stopped, perhaps at a limit. */
bool safe_xml_enter(struct safe_xml *);
void safe_xml_leave(struct safe_xml *);

#endif
