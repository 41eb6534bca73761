/*
 * jsonout.h - JSON written as it comes up. A container can have millions of records, so no
 * tree of them is ever built; numbers are unsigned and 64 bits wide, which a tree of
 * jansson's cannot hold.
 */
#ifndef JSONOUT_H
#define JSONOUT_H

#include "limefile.h"

#include <stdio.h>

/* True if the bytes are UTF-8. */
bool jsonout_is_utf8(const char *text, size_t len);

/* A quoted string in printable ASCII; bytes that are not UTF-8 come out as %XX. */
void jsonout_text(FILE *, const char *text, size_t len);

/* , "name": ... on standard output; null where there is no text (NULL, ""), or the number is 0:
 * not known. */
void jsonout_word(const char *name, const char *text);
void jsonout_number(const char *name, uint64_t value);

/* "XX..", each byte as two hex digits, quoted. */
void jsonout_hex(FILE *, const char *bytes, size_t len);

/* {"code": "data-cut", "offset": ..., ...}; null for NULL */
void jsonout_finding(FILE *, const struct limefile_finding *);

#endif
