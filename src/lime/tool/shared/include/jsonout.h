/*
 * jsonout.h - print JSON
 *
 * jansson builds and prints what is small. Lists of records and of findings are printed piece
 * by piece: a container can have millions of records, and a finding can have numbers above
 * 2^63, which jansson cannot hold.
 */
#ifndef JSONOUT_H
#define JSONOUT_H

#include "limefile.h"

#include <jansson.h>
#include <stdio.h>

/* True if the bytes are UTF-8. */
bool jsonout_is_utf8(const char *text, size_t len);

/* A string; bytes that are not UTF-8 become %XX. NULL if there is no memory. */
json_t *jsonout_string(const char *text, size_t len);

/* The same; null for NULL and "". */
json_t *jsonout_string_or_null(const char *text);

/* Prints the value in printable ASCII and releases it; null for NULL. */
void jsonout_print(FILE *, json_t *value);

/* Prints jsonout_string(). */
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
