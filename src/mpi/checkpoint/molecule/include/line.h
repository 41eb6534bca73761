/*
 * line.h - a molecule as a line of text. Pure.
 */
#ifndef CHECKPOINT_LINE_H
#define CHECKPOINT_LINE_H

#include "header.h"

enum {
    CHECKPOINT_REAL_BYTES = 48,  /* of a number as text, with its NUL */
    CHECKPOINT_LINE_BYTES = 512, /* of a molecule, with line end and NUL */
};

/* A number so that strtod() gives the same bits, NaN included: with 15 digits if they do, else
 * 17. Returns `text`. */
const char *checkpoint_real_text(double value, char text[CHECKPOINT_REAL_BYTES]);

/* A line without its end, of n bytes and a NUL, in a file with that header. 1: a molecule;
 * 0: nothing but blanks and a comment; -1: reason. */
int checkpoint_line_parse(const char *line, size_t n, const struct checkpoint_header *,
                          struct checkpoint_molecule *, char reason[CHECKPOINT_REASON_BYTES]);

/* With its end; returns how many bytes. */
size_t checkpoint_line_print(const struct checkpoint_molecule *, enum checkpoint_format,
                             char line[CHECKPOINT_LINE_BYTES]);

#endif
