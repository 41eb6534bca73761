/*
 * mardyn.h - MarDyn's old ASCII format: its header, and molecules as lines of text. Pure.
 *
 * Words and numbers between blanks and line ends; from # to the end of the line is a comment.
 * First "mardyn trunk VERSION" (the first has other spellings, too), then keywords with their
 * values, in any order but that NumberOfMolecules, and MoleculeFormat if it is there, are the
 * last. A line a molecule follows.
 */
#ifndef CHECKPOINT_MARDYN_H
#define CHECKPOINT_MARDYN_H

#include "molecule.h"

#include <stddef.h>
#include <stdio.h>

enum {
    CHECKPOINT_HEADER_MAX = 1 << 20, /* bytes */
    CHECKPOINT_REASON_BYTES = 256,
};

struct checkpoint_header {
    double time, temperature; /* 0 where they are not given */
    double length[3];
    int64_t components;
    int64_t molecules;
    enum checkpoint_format format;
    size_t bytes;  /* up to the first line of a molecule */
    int64_t lines; /* in these */
    /* Where time and number of molecules stand; no bytes: where the time could. */
    size_t time_at, time_bytes, molecules_at, molecules_bytes;
};

/* `text` has n bytes and a NUL after them; what follows the header does not matter. False: the
 * reason, and the line. */
bool checkpoint_header_parse(const char *text, size_t n, struct checkpoint_header *,
                             char reason[CHECKPOINT_REASON_BYTES], int64_t *line);

/* The text with time and number of molecules as they are now, malloc()ed; as it was where they
 * are the same. */
char *checkpoint_header_renew(const char *text, const struct checkpoint_header *, double time,
                              int64_t molecules);

/* A new one, malloc()ed, for components of one Lennard-Jones centre each, of mass, depth and
 * diameter 1. */
char *checkpoint_header_make(const LemonDomain *, double temperature, int64_t components,
                             int64_t molecules, enum checkpoint_format);

/* A line without its end, of n bytes and a NUL, in a file with that header. 1: a molecule;
 * 0: nothing but blanks and a comment; -1: reason. */
int checkpoint_line_parse(const char *line, size_t n, const struct checkpoint_header *,
                          struct checkpoint_molecule *, char reason[CHECKPOINT_REASON_BYTES]);

/* With its end. strtod() makes the same numbers of it; of NaN, some NaN. */
void checkpoint_line_print(const struct checkpoint_molecule *, enum checkpoint_format,
                           FILE *to);

#endif
