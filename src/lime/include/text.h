/*
 * text.h - text of unknown origin, made fit to be shown: names of files, types, metadata
 * values, arguments, messages of other programs; and what several programs print alike. It
 * needs nothing else of the library.
 */
#ifndef LIMEFILE_TEXT_H
#define LIMEFILE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the UTF-8 sequence at the start of `text`, its code point in *code; 0 if there is
 * none: a wrong or cut sequence, one that is longer than need be, a surrogate. len > 0. */
size_t limefile_text_sequence(const char *text, size_t len, uint32_t *code);

/* Replaces, in place, each byte that could steer a terminal or forge a line of a log by '?':
 * control characters (C0 and DEL, but for those in `spared`; C1), those that change the
 * direction of text, line and paragraph separators, and whatever is not UTF-8. The length
 * stays. */
void limefile_text_defuse(char *text, const char *spared);

/* Prints "program: text", defused, as one line on stderr; text is cut after 5 KiB. */
void limefile_text_say(const char *program, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

enum {
    LIMEFILE_SIZE_BYTES = 32,
};

/* "1.5 MB" (10^6) into `text`, which is returned; `digits`: at most so many after the point, of
 * three in all. */
const char *limefile_text_size(double bytes, int digits, char text[LIMEFILE_SIZE_BYTES]);

/* Moves both ends of a text of *len bytes inwards over white space and control bytes. */
void limefile_text_trim(const char **text, size_t *len);

/* `len` decimal digits; false if there is anything else, or nothing, or it does not fit. */
bool limefile_text_number(const char *text, size_t len, uint64_t *out);

#endif
