/* checksum_files.h - lime checksum --write and --verify: lists of the sums of whole files */
#ifndef CHECKSUM_FILES_H
#define CHECKSUM_FILES_H

#include "files.h"
#include "sums.h"

/* Computes a sum of each file and writes them to the list `name`. force: replace an existing
 * file. Returns an exit status. */
int checksum_files_write(const struct command *, const struct files_options *, const char *name,
                         enum stage_sum_kind, bool force, int count, char **operands);

/* Compares the files in the list `name` with their sums. directory: the files are below it, and
 * files that the list does not name are counted; NULL: the paths are those in the list,
 * relative to its directory. Returns an exit status. */
int checksum_files_verify(const struct command *, const struct files_options *,
                          const char *name, const char *directory);

#endif
