/* complete.h - answer a shell that completes a command line. A program that is called as
 * "PROGRAM --complete WORD..." prints what the last WORD, at the cursor, can become: a line for
 * each candidate, with a TAB and a short description. Without output, the shell completes file
 * names. scripts/completion has the shells' side. */
#ifndef LIMEFILE_COMPLETE_H
#define LIMEFILE_COMPLETE_H

#include "option.h"

#include <stdio.h>

struct limefile_completion {
    FILE *out;
    const char *argument; /* the last argument */
    const char *word;     /* its part to complete: behind "--name=", or behind a comma */
    const struct option_rule *rule; /* the option whose value the word is; NULL: an operand */
    const char *operand;            /* the first of the operands before the word, or NULL */
    int operand_count;              /* how many are before the word */
    bool is_done;                   /* the word is an option, or the rule has `words` */
};

/* Returns true if the first argument is --complete, and there is a word. */
bool limefile_complete_requested(int argc, char *const *argv);

/* Parses `count` arguments, of which the last is the one at the cursor, and prints to `out` the
 * candidates that the rules have: options, with their descriptions from the help text, or words
 * of an option. Unless c->is_done, the caller may know candidates for c->rule, or operands.
 * `rules` may be NULL. count > 0. */
void limefile_complete(const struct option_rule *rules, const char *help, int count,
                       char *const *arguments, FILE *out, struct limefile_completion *c);

/* Prints a candidate if it begins with c->word. `description` may be NULL. */
void limefile_complete_offer(const struct limefile_completion *c, const char *candidate,
                             const char *description);

/* Lets c->word begin behind its last comma. */
void limefile_complete_list_item(struct limefile_completion *c);

enum { DESCRIPTION_BYTES = 80 };

/* Fills `text` with the description of an option like "--to" or "-o ranks" in a help text, up
 * to a semicolon or parenthesis, and returns it. NULL: no line of the help begins with it. */
const char *limefile_complete_description(const char *help, const char *option,
                                          char text[DESCRIPTION_BYTES]);

#endif
