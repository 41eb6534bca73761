/*
 * record.h - the text that a run's checkpoint begins with
 */
#ifndef CHECKPOINT_MD_RECORD_H
#define CHECKPOINT_MD_RECORD_H

#include "md.h"

enum {
    MD_RECORD_BYTES = 1024,
};

struct md_record {
    int64_t step;
    struct md_parameters parameters;
    double start; /* the total energy at step 0 */
};

/* Lines of a word and a value, the last one a sum of those before. Returns the length. */
int64_t md_record_print(const struct md_record *, char text[MD_RECORD_BYTES]);

/* `text` ends with a NUL. False: it is none, or has been changed. */
bool md_record_parse(const char *text, struct md_record *);

#endif
