/* tell.h - what is told to people: headings, and names with their values; all harmless */
#ifndef TELL_H
#define TELL_H

#include <stdint.h>

enum { TELL_WIDTH = 16 }; /* of a name */

/* On a terminal headings stand out. */
__attribute__((format(printf, 1, 2))) void tell_heading(const char *format, ...);

/* A name and what is to be said of it. */
__attribute__((format(printf, 2, 3))) void tell_value(const char *name, const char *format,
                                                      ...);

/* "65 bytes", "1.2K (1230 bytes)" */
const char *tell_bytes(uint64_t bytes, char out[64]);

#endif
