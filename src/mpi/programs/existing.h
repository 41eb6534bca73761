/*
 * existing.h - decide whether the benchmark may write to its file
 */
#ifndef EXISTING_H
#define EXISTING_H

#include <stdbool.h>

/* Returns 0, or a code of limefile.h: the file exists and force is false, another process has
 * it open for writing as a container, or it is not a regular file. */
int existing_check(const char *path, bool force);

/* Returns the message for a code of existing_check(). */
const char *existing_reason(int code);

#endif
