/* packwords.h - records named on the command line of append and pack: -t TYPE PATH, with -m */
#ifndef PACKWORDS_H
#define PACKWORDS_H

#include "packlist.h"
#include "tool.h"

enum {
    PACKWORDS_OPERANDS = 2,
};

/* Zero to begin with, but for `most`. */
struct packwords {
    struct packlist list;
    const char
        *operands[PACKWORDS_OPERANDS]; /* words without a type before them; at most `most` */
    int operand_count, most;
    const char *type; /* of the next PATH; NULL: none given */
    bool new_message, help;
};

/* What getopt_long() has returned, 't', 'm', 'H', 1 for a word, or what is no option; and the
 * words after "--". An exit status. */
int packwords_take(struct packwords *, const struct command *, int opt, char **argv);
int packwords_rest(struct packwords *, const struct command *, int argc, char **argv);

/* TOOL_UNUSABLE, after a message, if a -t or -m has no record after it. */
int packwords_check(const struct packwords *, const struct command *);

#endif
