/* refs.h - the same field of many containers, and references to it; inside of tool/field */
#ifndef REFS_H
#define REFS_H

#include "limeface.h"

struct refs_wanted {
    const char *record; /* NULL: the only field */
    bool as_type;
    const char *prefix; /* NULL: absolute paths */
};

struct refs_file {
    char *url;
    uint64_t data_offset;
};

/* Zero but for `wanted` to begin with. */
struct refs {
    const struct refs_wanted *wanted;
    struct refs_file *file;
    size_t count, capacity;
    char *first; /* the first one's path */
    struct limefile_array array;
    struct limefile_face *face; /* of the first */
    bool braces;                /* some URL looks like a template */
};

/* An exit status, after a message if it is not TOOL_GOOD. */
int refs_add(struct refs *, const char *path);

/* All of it to standard output. */
int refs_print(const struct refs *);

void refs_release(struct refs *);

#endif
