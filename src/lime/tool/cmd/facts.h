/* facts.h - what people and programs have written into text records: names and values */
#ifndef FACTS_H
#define FACTS_H

#include "limefile.h"

enum {
    FACTS_MAX = 400,             /* of one record; more are not shown */
    FACTS_BYTES_MAX = 64 * 1024, /* of a text that are looked at */
};

/* "" as the name: there is a value alone. Both are one line, as the record has it otherwise:
 * not fit to be shown as it is (text.h). Both are owned. */
struct fact {
    char *name, *value;
};

struct facts {
    struct fact fact[FACTS_MAX];
    size_t count;
    bool cut; /* there are more */
};

/* How the data of a record are to be understood. */
enum facts_form {
    FACTS_NONE,
    FACTS_TEXT, /* "name = value" a line, or several separated by ", " */
    FACTS_XML,  /* the leaves of any XML; or text that isn't */
};

/* What a record of that type holds: "ensemble", "inverter"; NULL for other types. */
const char *facts_title(const char *type, enum facts_form *form);

/* Reads a record. 0; -errno or LIMEFILE_E_SHRUNK. Call facts_release() whatever it was. */
int facts_read(struct facts *, struct limefile_source *, const struct limefile_record *,
               enum facts_form);
void facts_release(struct facts *);

#endif
