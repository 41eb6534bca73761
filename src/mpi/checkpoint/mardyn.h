/*
 * mardyn.h - MarDyn's old ASCII format: a header, and molecules as lines of text; calls no MPI
 *
 * Words and numbers are separated by blanks and line ends; a comment extends from # to the end
 * of the line. The header begins with "mardyn trunk VERSION"; the first word has other
 * spellings, too. Keywords and their values follow in any order. NumberOfMolecules and then the
 * optional MoleculeFormat end the header. Each line after it is a molecule, blank or a comment.
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
    size_t bytes;  /* length of the header's lines, with the last line end */
    int64_t lines; /* number of lines in the header */
    /* Offsets in the header, and lengths, of the texts of the time and the number of molecules.
     * If the header has no time, time_bytes is 0, and a time can be inserted at time_at. */
    size_t time_at, time_bytes, molecules_at, molecules_bytes;
};

/* Parses the header at the beginning of text, which has n bytes and a NUL after them. If the
 * header is invalid, returns false, with a reason and the line's number, counted from 1. */
bool checkpoint_header_parse(const char *text, size_t n, struct checkpoint_header *,
                             char reason[CHECKPOINT_REASON_BYTES], int64_t *line);

/* Returns a copy of the header `text` with this time and number of molecules. The text of the
 * time stays if the time is the same. The caller frees the copy. */
char *checkpoint_header_update(const char *text, const struct checkpoint_header *, double time,
                               int64_t molecules);

/* Returns a new header, which the caller frees. Each component has one Lennard-Jones centre
 * with mass 1, depth 1 and diameter 1. */
char *checkpoint_header_create(const LemonDomain *, double temperature, int64_t components,
                               int64_t molecules, enum checkpoint_format);

/* Parses a line: n bytes, without the line end, and a NUL after them. Returns 1 for a molecule,
 * 0 for a blank line or a comment, and -1 with a reason for an invalid line. */
int checkpoint_line_parse(const char *line, size_t n, const struct checkpoint_header *,
                          struct checkpoint_molecule *, char reason[CHECKPOINT_REASON_BYTES]);

/* Prints a molecule's line with its line end. strtod() reads exactly the same numbers from it;
 * only the bits of NaNs may differ. */
void checkpoint_line_print(const struct checkpoint_molecule *, enum checkpoint_format,
                           FILE *to);

#endif
