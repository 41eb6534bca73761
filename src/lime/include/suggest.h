/* suggest.h - find the word that a user probably meant. Uses no other part of the library. */
#ifndef LIMEFILE_SUGGEST_H
#define LIMEFILE_SUGGEST_H

enum { SUGGESTION_BYTES = 160 };

struct limefile_suggestion {
    char best[SUGGESTION_BYTES - 24]; /* the nearest candidate so far */
    int distance;                     /* 1 + that of `best`; 0: no candidate was near enough */
    char text[SUGGESTION_BYTES];
};

/* Compares a mistyped word with a candidate. A candidate is near enough if one change (two, if
 * the word has five characters or more) makes it the word: inserting, removing or replacing a
 * character, or exchanging two neighbours; or if the word is its beginning, of three characters
 * or more. Upper and lower case are the same. *s is zero before the first call. */
void limefile_suggest(struct limefile_suggestion *s, const char *word, const char *candidate);

/* Calls limefile_suggest() for each item of a list: "nersc, milc, openqcd". */
void limefile_suggest_from_list(struct limefile_suggestion *s, const char *word,
                                const char *list);

/* Returns "; did you mean 'check'?", or "" if no candidate was near enough. */
const char *limefile_suggest_text(struct limefile_suggestion *s);

/* Returns a hint like "; see lime --help", or "" if the message ends with a suggestion. */
const char *limefile_suggest_or(const char *message, const char *hint);

#endif
