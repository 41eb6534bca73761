/*
 * field.h - random numbers on a lattice, which can be told again.
 *
 * Each number is a function of the seed and of its place in the whole lattice. So what was read
 * is compared bit by bit with what was written, without a copy of it; and the file is the same
 * whatever the number of processes.
 */
#ifndef FIELD_H
#define FIELD_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FIELD_DIMS = 4,
    FIELD_SITE_NUMBERS = 72, /* 4 complex 3x3 matrices: a gauge configuration's */
    FIELD_SITE_BYTES = 72 * 8,
    FIELD_TEXT_BYTES = 256,
};

/* The first dimension is slowest. */
struct field {
    int lattice[FIELD_DIMS]; /* the whole */
    int start[FIELD_DIMS];   /* this process's part */
    int sites[FIELD_DIMS];
};

/* Of the whole lattice, and of this process's part; -1 if it is more than 2^63 - 1. */
int64_t field_bytes(const struct field *);
int64_t field_local_bytes(const struct field *);

/* Writes this process's part. */
void field_fill(const struct field *, uint64_t seed, double *data);

/* How many bytes are not what field_fill() writes; *first is where the first of them is. */
int64_t field_compare(const struct field *, uint64_t seed, const double *data, int64_t *first);

/* The seed and the whole lattice as text, for a file that is kept; its length. And back: false
 * if it is something else. */
int field_print(const struct field *, uint64_t seed, char text[FIELD_TEXT_BYTES]);
bool field_parse(struct field *, uint64_t *seed, const char *text);

#endif
