/* target_name.h - form the names of converted files from those of their sources */
#ifndef TARGET_NAME_H
#define TARGET_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* The parts of a pattern, for the source "conf.0042.lime":
 *
 *     {name}  conf.0042.lime
 *     {stem}  conf    the name without number and suffix, and what separates them
 *     {n}     0042    the number that ends the name without suffix, or the trajectory number
 *     {ext}   lime    the suffix: a letter and letters or digits after the last '.' */

/* Returns NULL, or why the pattern is not valid: a static text. */
const char *target_name_check(const char *pattern);

/* Returns true if the name has no number for {n}, so that the trajectory number is needed. */
bool target_name_needs_trajectory(const char *pattern, const char *name);

/* Forms a name, which the caller frees. trajectory: used if the name has no number; NULL: not
 * known. Returns NULL with errno ENODATA if the pattern needs a number and none is known. */
char *target_name_form(const char *pattern, const char *name, const uint64_t *trajectory);

/* Forms the usual name: the suffix of a format is replaced by .FORMAT, or .FORMAT is appended.
 */
char *target_name_default(const char *name, const char *format);

#endif
