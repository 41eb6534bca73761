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

/* {"file": "PATH" on standard output. */
void jsonout_begin_file(const char *path);

/* , "name": ...; null where there is no text (NULL, ""), or the number is 0: not known. */
void jsonout_word(FILE *, const char *name, const char *text);
void jsonout_number(FILE *, const char *name, uint64_t value);

/* "XX..", each byte as two hex digits, quoted. */
void jsonout_hex(FILE *, const char *bytes, size_t len);

/* {"code": "data-cut", "offset": ..., ...}; null for NULL */
void jsonout_finding(FILE *, const struct limefile_finding *);

/* A list that is made before it can be printed, in a file without a name, as it can have
 * millions of elements. All zero: an empty list that nothing is added to. */
struct jsonout_list {
    FILE *file;
    bool any;
};
int jsonout_list_open(struct jsonout_list *); /* 0, -errno */
/* The stream that the caller prints the next element to. */
FILE *jsonout_list_next(struct jsonout_list *);
void jsonout_list_print(struct jsonout_list *); /* on standard output: [...] */
void jsonout_list_close(struct jsonout_list *);

#endif
