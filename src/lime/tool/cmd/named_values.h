/* named_values.h - lists of named values, and pairs of equal names from two lists */
#ifndef NAMED_VALUES_H
#define NAMED_VALUES_H

#include <stddef.h>

struct named_value {
    char *name, *text; /* owned by the list */
    size_t order;      /* number in the list, from 0 */
};

/* Initialise with zeros. */
struct named_values {
    struct named_value *values;
    size_t count, capacity;
};

/* Adds a copy of a value, without white space at the ends. Returns 0 or -ENOMEM. */
int named_values_add(struct named_values *, const char *name, size_t name_len, const char *text,
                     size_t text_len);

/* Adds the values of a NUL-terminated text: the leaves of an XML document, or the items
 * "name = value" of its lines, as facts_split_text() finds them. Returns 0 or -ENOMEM. */
int named_values_parse(struct named_values *, const char *text);

/* Sorts both lists by name, and calls pair() for the first values of a name in both, then for
 * the second ones, and so on. NULL stands for a value that the other list lacks. Ends early if
 * pair() returns a value that is not 0; returns this value, or 0. */
typedef int named_values_fn(void *context, const struct named_value *a,
                            const struct named_value *b);
int named_values_pair(struct named_values *a, struct named_values *b, named_values_fn *pair,
                      void *context);

void named_values_release(struct named_values *);

#endif
