/*
 * text.h - make untrusted text safe to print (file names, types, metadata values, arguments,
 * messages of other programs), and format and parse text in the same way in all programs. Uses
 * no other part of the library.
 */
#ifndef LIMEFILE_TEXT_H
#define LIMEFILE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the UTF-8 sequence at the start of `text` and sets *code. Returns 0 if
 * the sequence is invalid, truncated, overlong or a surrogate. len > 0. */
size_t limefile_utf8_decode(const char *text, size_t len, uint32_t *code);

/* Replaces by '?' all bytes that could control a terminal or forge a line of a log: control
 * characters (C0 and DEL, except those in `allowed`; C1), characters that change the direction
 * of text, line and paragraph separators, and bytes that are not UTF-8. The length stays. */
void limefile_text_sanitize(char *text, const char *allowed);

/* Returns true if the text has no byte that limefile_text_sanitize() would replace, and no NUL.
 */
bool limefile_text_is_harmless(const char *text, size_t len, const char *allowed);

/* Prints "program: text" as one line on stderr, sanitized and cut after 5 KiB. */
void limefile_text_print(const char *program, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

enum { LIMEFILE_SIZE_CHARS = 32 };

/* Set by --bytes: the functions below format all digits. */
extern bool limefile_sizes_are_exact;

/* Format a size in units of 1024, like ls -h: "835", "1.2K", "145K". limefile_format_bytes()
 * formats a number without a unit as "835 bytes". They return `text`. */
const char *limefile_format_size(uint64_t bytes, char text[LIMEFILE_SIZE_CHARS]);
const char *limefile_format_bytes(uint64_t bytes, char text[LIMEFILE_SIZE_CHARS]);

/* Trims white space and control bytes at both ends of a text of *len bytes. */
void limefile_text_trim(const char **text, size_t *len);

/* Parses `len` decimal digits. Returns false for another character, len 0, or an overflow. */
bool limefile_parse_number(const char *text, size_t len, uint64_t *out);

/* Compares two names in natural order: a run of digits counts as a number, so conf.9 comes
 * before conf.10. Other bytes compare by value. Names that differ only in leading zeros compare
 * as strings. Returns a number less than, equal to or greater than 0. */
int limefile_natural_compare(const char *a, const char *b);

#endif
