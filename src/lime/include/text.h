/*
 * text.h - text of unknown origin, made fit to be shown: names of files, types, metadata
 * values, arguments, messages of other programs. It needs nothing else of the library.
 */
#ifndef LIMEFILE_TEXT_H
#define LIMEFILE_TEXT_H

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

/* Moves both ends of a text of *len bytes inwards over white space and control bytes. */
void limefile_text_trim(const char **text, size_t *len);

/* `len` decimal digits; false if there is anything else, or nothing, or it does not fit. */
bool limefile_text_number(const char *text, size_t len, uint64_t *out);

#endif
