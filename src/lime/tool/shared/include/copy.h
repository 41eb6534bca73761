/* copy.h - where the data of a record come from, and messages of copies that fail */
#ifndef COPY_H
#define COPY_H

#include "limefile.h"
#include "tool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* All data of the record, out of the container in `in`, to stdout. */
struct limefile_copy copy_to_stdout(int in, const struct limefile_record *);

/* Whether an input still is as it was before: data that change while they are copied would make
 * a record that never was. */
bool copy_is_unchanged(int in, const struct stat *before);

/* The failure of a copy in words: the file that failed, and how. */
void copy_message(const struct limefile_copy *, const char *in_name, const char *out_name,
                  int code);

/* ---- where the data of a record come from: a file, a pipe, standard input ("-") ---- */

struct feed {
    const char *name; /* for messages */
    int fd;
    struct stat st;
    bool sized; /* a file: st.st_size bytes from its beginning; else all until the end comes */
};

/* False after a message. A file that is `container` itself is refused. */
bool feed_open(struct feed *, const char *path, int container);
/* A sized one of n bytes in memory. */
bool feed_memory(struct feed *, const char *name, const void *data, size_t n);
void feed_close(struct feed *);

/* All of it to `out` at that offset; *bytes: how many. False after a message, which names
 * `out_name` where it was the writing that failed. */
bool feed_run(struct feed *, int out, const char *out_name, uint64_t offset,
              struct progress *progress, uint64_t *bytes);

/* Only [from, from + n) of a sized one. */
bool feed_part(struct feed *, uint64_t from, uint64_t n, int out, const char *out_name,
               uint64_t offset, struct progress *progress);

/* Makes a sized one of it, in an unnamed file in the folder of `beside`. False after a message.
 */
bool feed_collect(struct feed *, const char *beside);

#endif
