/* convertcheck.h - what lime convert examines before its output gets its name */
#ifndef CONVERTCHECK_H
#define CONVERTCHECK_H

#include "gaugefile.h"

/*
 * Judges the data that were read: they are finite, they have the checksum, plaquette and link
 * trace that the input states, and their links can be stored in `rows` rows. With
 * `ignores_checksum` a difference is a warning. An exit status, after messages.
 */
int convert_judge_input(const struct gaugefile *in, const char *out_path,
                        const struct limefile_gauge_totals *, unsigned rows,
                        bool ignores_checksum);

/* Prints why the output is not written: `err` of limefile_gauge_image_seal() or of reading it.
 */
void convert_refuse(const char *out_path, int err, const struct limefile_gauge_totals *);

/*
 * Opens the output `fd`, which has been written in this format, as any program of ours would,
 * and compares its header with what was computed while it was written. Data with links that are
 * not SU(3) matrices are read, too: their figures can be out of a format's range. An exit
 * status, after a message.
 */
int convert_judge_output(int fd, const char *out_path, enum limefile_gauge_format,
                         const struct limefile_gauge_totals *);

#endif
