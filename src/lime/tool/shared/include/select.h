/* select.h - which record a word on the command line means */
#ifndef SELECT_H
#define SELECT_H

#include "container.h"

/*
 * `word` is an ordinal ("3"), message.record ("2.1"), a type, or the name that the record
 * has in a mount ("003-ildg-binary-data"); `as_type`: a type whatever it looks like.
 * False after a message that says what to name instead.
 */
bool select_record(const struct container *, const char *word, bool as_type,
                   struct limefile_record *out);

#endif
