/* record_input.h - open and copy the data of a new record, and report copies that fail */
#ifndef COPY_H
#define COPY_H

#include "limefile.h"
#include "tool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Returns parameters for container_copy(), to copy a record's data to stdout. */
struct limefile_copy stdout_copy(const struct limefile_record *);

/* Returns true if the open file `in` has not changed since fstat() returned *before. A record
 * that is copied while its input changes would contain a mixture of old and new data. */
bool copy_is_unchanged(int in, const struct stat *before);

/* Reports that a copy has failed with `code`. Names the file whose read or write has failed. */
void message_copy(const struct limefile_copy *, const char *in_name, const char *out_name,
                  int code);

/* ---- data of a new record: from a file, a pipe or standard input ("-") ---- */

struct input {
    const char *name; /* for messages */
    int fd;
    struct stat st;
    bool has_size; /* the data are st.st_size bytes at offset 0; false: all bytes up to EOF */
};

/* Opens an input, which must not be the file `container`. Returns false after a message. */
bool input_open(struct input *, const char *path, int container);
/* Creates an input of n bytes in memory. Returns false after a message. */
bool input_open_memory(struct input *, const char *name, const void *data, size_t n);
void input_close(struct input *);

/* Copies all data to `out` at `offset`, and sets *bytes to their number. Returns false after a
 * message, which names `out_name` if a write has failed. */
bool input_copy(struct input *, int out, const char *out_name, uint64_t offset,
                struct progress *progress, uint64_t *bytes);

/* Copies the bytes [from, from + n) of an input that has a size. */
bool input_copy_part(struct input *, uint64_t from, uint64_t n, int out, const char *out_name,
                     uint64_t offset, struct progress *progress);

/* Gives the input a size: copies an input without a size to an unnamed file in the directory of
 * `near_path`. Returns false after a message. */
bool input_spool(struct input *, const char *near_path);

#endif
