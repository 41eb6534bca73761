/* jsonout.h - build JSON values, and print JSON, if necessary in parts
 *
 * Most objects are printed as a whole. An object with a list of records, fields or findings is
 * printed in parts, and the list element by element, because it may have millions of elements.
 * If elements are found before the members that precede the list, a memfd holds them as text.
 *
 * The functions that return a json_t return a new reference, or NULL if memory is exhausted. */
#ifndef JSONOUT_H
#define JSONOUT_H

#include "limefile.h"

#include <jansson.h>
#include <stdio.h>

/* ---- values ---- */

bool jsonout_is_utf8(const char *text);

/* Returns a string, with %XX for bytes that are not UTF-8. NULL for NULL. */
json_t *jsonout_string(const char *text);

/* Returns jsonout_string(), but the JSON value null for NULL and "". */
json_t *jsonout_string_or_null(const char *text);

/* Returns an integer; or a real number if it exceeds INT64_MAX, the limit of jansson. */
json_t *jsonout_integer(uint64_t);

/* Returns jsonout_integer(), but the JSON value null for 0. */
json_t *jsonout_integer_or_null(uint64_t);

/* Returns a list of integers; the JSON value null if count is 0. */
json_t *jsonout_integers(const uint64_t *, unsigned count);

/* Returns a string of 8 hexadecimal digits. */
json_t *jsonout_hex(uint32_t);

/* Returns an object that describes a finding; the JSON value null for NULL. */
json_t *jsonout_finding(const struct limefile_finding *);

/* ---- printing ---- */

/* All functions below print only printable ASCII, print NULL as null, and release the value. */

void jsonout_print(FILE *, json_t *);

/* Prints element i of a list, counted from 0, after a comma if it is not the first. */
void jsonout_element(size_t i, json_t *);

/* Prints `before`, the object `members` without its braces, and `after`. */
void jsonout_members(const char *before, json_t *members, const char *after);

/* ---- lists that are printed later ---- */

/* Creates an empty list, whose text is in a memfd. Returns 0 or -errno. */
int jsonout_list_create(FILE **list);

void jsonout_list_add(FILE *list, json_t *);

/* Prints a comma and the list as a member of an object on stdout. NULL: an empty list. */
void jsonout_list_print(const char *name, FILE *list);

void jsonout_list_release(FILE *list); /* NULL is allowed */

#endif
