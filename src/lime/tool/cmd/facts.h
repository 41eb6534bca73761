/* facts.h - find names and values in the text of metadata records */
#ifndef FACTS_H
#define FACTS_H

#include "limeildg.h"

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

/* Calls `add` for each item "name = value" of a text, in order. An item ends at the end of the
 * line, or at a comma before the next '=' in the line; one without '=' has an empty name. The
 * names and values are parts of `text`, perhaps with white space around them. */
typedef void facts_item_fn(void *context, const char *name, size_t name_len, const char *value,
                           size_t value_len);
void facts_split_text(const char *text, size_t n, facts_item_fn *add, void *context);

/* Returns a heading for a record of that type, such as "ensemble"; NULL for other types. */
const char *facts_title(const char *type, enum facts_form *form);

/* Adds the facts in a record's data to those of earlier calls; *facts begins as zeros. Returns
 * 0, -errno or LIMEFILE_E_SHRUNK. Call facts_release() at the end, also after an error. */
int facts_read(struct facts *, struct limefile_source *, const struct limefile_record *,
               enum facts_form);

/* Does the same for all records that describe a configuration, as far as they have names and
 * values: the metadata of its program, the header of another format, the private record. */
int facts_read_field(struct facts *, struct limefile_source *, const struct limefile_index *,
                     const struct limefile_field *);
void facts_release(struct facts *);

/* Returns the first value with this name, in upper or lower case, or else with a name that
 * another program gives to the same value: "trajectory" also finds tmLQCD's "trajectory nr" and
 * NERSC's SEQUENCE_NUMBER. Ignores empty values. Returns NULL if no name matches. */
const char *facts_find(const struct facts *, const char *name);

#endif
