/* feed.h - where the data of a record come from: a file, a pipe, standard input ("-") */
#ifndef FEED_H
#define FEED_H

#include "progress.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct feed {
    const char *name; /* for messages */
    int fd;
    struct stat st;
    bool sized; /* a file: st.st_size bytes from its beginning; else all until the end comes */
};

/* False after a message. A file that is `container` itself is refused. */
bool feed_open(struct feed *, const char *path, int container);
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
