/*
 * mardyn.h - MarDyn's old ASCII format: a header, and molecules as lines of text; calls no MPI
 *
 * Words and numbers are separated by blanks and line ends; a comment extends from # to the end
 * of the line. The file begins with "mardyn trunk VERSION" (the first word has other spellings,
 * too). Keywords and their values follow in any order, but NumberOfMolecules and the optional
 * MoleculeFormat come last. Then each line is a molecule.
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
    double time, temperature; /* 0 if not given */
    double length[3];
    int64_t components;
    int64_t molecules;
    enum checkpoint_format format;
    size_t bytes;  /* length of the header: up to the first molecule's line */
    int64_t lines; /* number of lines in the header */
    /* Byte positions and lengths, in the header, of the time and the number of molecules. If
     * the header has no time, time_bytes is 0 and time_at is where one can be inserted. */
    size_t time_at, time_bytes, molecules_at, molecules_bytes;
};

/* Parses the header at the beginning of text, which has n bytes and a NUL after them. If the
 * header is invalid, returns false and sets reason and the number of the line, from 1. */
bool checkpoint_header_parse(const char *text, size_t n, struct checkpoint_header *,
                             char reason[CHECKPOINT_REASON_BYTES], int64_t *line);

/* Returns the header with a new time and number of molecules. If the time is unchanged, so is
 * its text. The caller frees the header. */
char *checkpoint_header_update(const char *text, const struct checkpoint_header *, double time,
                               int64_t molecules);

/* Returns a new header for components of one Lennard-Jones centre each, with mass, depth and
 * diameter 1. The caller frees it. */
char *checkpoint_header_create(const LemonDomain *, double temperature, int64_t components,
                               int64_t molecules, enum checkpoint_format);

/* Parses a line of n bytes without its line end, followed by a NUL. Returns 1 for a molecule, 0
 * for a blank line or a comment, and -1 with a reason for an invalid line. */
int checkpoint_line_parse(const char *line, size_t n, const struct checkpoint_header *,
                          struct checkpoint_molecule *, char reason[CHECKPOINT_REASON_BYTES]);

/* Prints a line and its line end; strtod() reads the same numbers from it, except for NaNs. */
void checkpoint_line_print(const struct checkpoint_molecule *, enum checkpoint_format,
                           FILE *to);

#endif
