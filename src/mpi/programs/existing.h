/*
 * existing.h - whether the file of the benchmark may be written
 */
#ifndef EXISTING_H
#define EXISTING_H

#include <stdbool.h>

/* Returns 0, or a code of limefile.h: the file exists and force is false, another process has
 * it open for writing as a container, or it is not a regular file. */
int existing_check(const char *path, bool force);

/* Returns the code in words. */
const char *existing_reason(int code);

#endif
