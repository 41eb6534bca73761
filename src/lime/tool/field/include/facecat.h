/* facecat.h - files of a record's faces (limeface.h) by their names */
#ifndef FACECAT_H
#define FACECAT_H

#include "container.h"
#include "progress.h"

struct limefile_face;

/* One file of a face, opened. */
struct facecat {
    const struct container *c;
    struct limefile_record record;
    struct limefile_face *face;
    uint64_t number; /* of the file in the face */
    uint64_t bytes;
    size_t site_bytes; /* of the record */
};

/* `word` is a record as select_record() takes it with a face's suffix, and, where that is a
 * directory, what is in it: "ildg-binary-data.npy", "3.t/000". 1; 0: it is no such name, or a
 * record has it; < 0 after a message. facecat_close() whatever it was. */
int facecat_open(const struct container *, const char *word, struct facecat *out);
void facecat_close(struct facecat *);

/* Writes n bytes from `offset`, which are there, to standard output. False after a message. */
bool facecat_put(const struct facecat *, uint64_t offset, uint64_t n, struct progress *);

#endif
