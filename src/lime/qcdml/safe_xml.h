/* safe_xml.h - parse untrusted XML within limits; internal to src/lime/qcdml */
#ifndef QCDML_SAFE_H
#define QCDML_SAFE_H

#include <expat.h>
#include <stdbool.h>
#include <stddef.h>

/* Expat 2.9 deprecates the names without 64; earlier versions have only these. */
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

/* A parser with its limits; the first member of the handlers' context. */
struct safe_xml {
    XML_Parser parser;
    unsigned depth, seen;
    bool stopped;
    size_t line;
    char why[SAFE_WHY_MAX]; /* reason of a failure; "": none */
};

/* Creates the parser. Names are "URI|local", or "local" without a namespace. -ENOMEM. */
int safe_xml_begin(struct safe_xml *);

/* Parses a whole document and frees the parser. LIMEFILE_E_XML with line and why; -ENOMEM. */
int safe_xml_parse(struct safe_xml *, const void *xml, size_t n);

/* Stops the parser; only the first reason is recorded. */
__attribute__((format(printf, 2, 3))) void safe_xml_stop(struct safe_xml *, const char *, ...);

/* Must be called first at the start, and last at the end, of each element. False: stopped. */
bool safe_xml_enter(struct safe_xml *);
void safe_xml_leave(struct safe_xml *);

#endif
