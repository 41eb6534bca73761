/* packwords.c - records named on a command line */
#include "packwords.h"

#include <getopt.h>
#include <string.h>

static int take_word(struct packwords *words, const struct command *command, const char *word)
{
    if (!words->type) {
        if (words->operand_count == words->most)
            return usage_error(command, "%s: no type (-t) before it", word);
        words->operands[words->operand_count++] = word;
        return TOOL_GOOD;
    }
    size_t len = strlen(words->type);
    if (packlist_type_is_bad(word, words->type, len))
        return TOOL_UNUSABLE;
    bool added = packlist_add(&words->list, word, words->type, len, words->new_message, false);
    words->type = NULL;
    words->new_message = false;
    return added ? TOOL_GOOD : TOOL_BAD;
}

int packwords_take(struct packwords *words, const struct command *command, int opt, char **argv)
{
    switch (opt) {
    case 't':
        if (words->type)
            return usage_error(command, "-t %s: no PATH after it", words->type);
        words->type = optarg;
        return TOOL_GOOD;
    case 'm':
        words->new_message = true;
        return TOOL_GOOD;
    case 'H':
        words->help = true;
        return TOOL_GOOD;
    case 1:
        return take_word(words, command, optarg);
    default:
        return option_error(command, argv);
    }
}

int packwords_rest(struct packwords *words, const struct command *command, int argc,
                   char **argv)
{
    int status = TOOL_GOOD;
    for (; !status && optind < argc; optind++)
        status = take_word(words, command, argv[optind]);
    return status;
}

int packwords_check(const struct packwords *words, const struct command *command)
{
    if (words->type)
        return usage_error(command, "-t %s: no PATH after it", words->type);
    if (words->new_message)
        return usage_error(command, "-m: no record after it");
    return TOOL_GOOD;
}
