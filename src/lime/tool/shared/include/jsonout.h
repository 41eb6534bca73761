/*
 * jsonout.h - print JSON
 *
 * jansson builds and prints single lines. Lists of records and of findings are printed member
 * by member, by jsonout(): a container can have millions of records, and a finding can have
 * numbers above 2^63, which jansson cannot hold.
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

/*
 * Prints members of an object: names with a letter each that is the type of the argument.
 * Brackets are printed as they are, also as a value; a comma is put before each name but the
 * first behind one that opens. jsonout(out, "{ordinal:u sums:{suma:x sumb:x}}", ...) prints
 * {"ordinal": 3, "sums": {"suma": "0000000a", "sumb": "0000000b"}}.
 *
 *     u  uint64_t          n  the same; 0 is null       w  unsigned int      i  int64_t
 *     s  text              z  the same; "" is null      r  text that is JSON already
 *     x  uint32_t, as 8 hexadecimal digits in quotes    b  bool
 *     d  double; null unless it is finite
 *     f  const struct limefile_finding *; null for NULL
 *     j  struct jsonout_list *
 *     l  a list: const uint64_t *, unsigned int; null for 0 elements
 */
void jsonout(FILE *, const char *format, ...);

/* A list that is made before jsonout() prints it, in a file without a name, as it can have
 * millions of elements. All zero: an empty list that nothing is added to. */
struct jsonout_list {
    FILE *file;
    bool any;
};
int jsonout_list_open(struct jsonout_list *); /* 0, -errno */
/* The stream that the caller prints the next element to. */
FILE *jsonout_list_next(struct jsonout_list *);
void jsonout_list_close(struct jsonout_list *);

#endif
