/* facts.h - find the names and values in the text of a metadata record
 *
 *     facts_title     how to parse a record of a type, and its heading
 *     facts_read      parses a record
 *     facts_find      returns a value by its name
 *     facts_release   frees the facts */
#ifndef FACTS_H
#define FACTS_H

#include "limefile.h"

enum { FACTS_MAX = 400 }; /* per record; more are not read */

/* A value in a record's text, and its name or "". Both strings are owned and are one line each.
 * They may contain bytes that are not safe to print; see limefile_text_sanitize(). */
struct fact {
    char *name, *value;
};

struct facts {
    struct fact fact[FACTS_MAX];
    size_t count;
    bool is_truncated; /* there are more facts */
};

/* How to parse the data of a record. */
enum facts_form {
    FACTS_NONE,
    FACTS_TEXT, /* "name = value" lines, or several facts in a line separated by ", " */
    FACTS_XML,  /* the leaves of any XML; data that are not XML are parsed as FACTS_TEXT */
};

/* Returns a heading for a record of that type, such as "ensemble"; NULL for other types. */
const char *facts_title(const char *type, enum facts_form *form);

/* Parses a record's data. Returns 0, -errno or LIMEFILE_E_SHRUNK. Call facts_release() before
 * the next call, also after an error. */
int facts_read(struct facts *, struct limefile_source *, const struct limefile_record *,
               enum facts_form);
void facts_release(struct facts *);

/* Returns the first value with this name, in upper or lower case, that is not empty; or NULL.
 */
const char *facts_find(const struct facts *, const char *name);

#endif
