/* complete.c - print the options and values that a word of a command line can become */
#include "complete.h"

#include <ctype.h>
#include <string.h>

enum { INDENT_LEAST = 8 }; /* spaces before the second line of a description */

bool limefile_complete_requested(int argc, char *const *argv)
{
    return argc > 2 && strcmp(argv[1], "--complete") == 0;
}

/* ---- descriptions ---- */

/* Returns the end of the option's name in a line like "  -t, --type TYPE  description". NULL:
 * no line of the help begins so. */
static const char *find_description_line(const char *help, const char *option)
{
    size_t len = strlen(option);
    for (const char *at = help; (at = strstr(at, option)); at += len) {
        const char *line = at;
        while (line > help && line[-1] != '\n')
            line--;
        line += strspn(line, " ");
        const char *gap = strstr(line, "  ");
        if (*line == '-' && (!gap || gap >= at) && !strchr("-_", at[len]) &&
            !islower((unsigned char)at[len]))
            return at + len;
    }
    return NULL;
}

/* Moves *at, at the end of a line, to the text of the next line if that goes on. */
static bool continues_on_next_line(const char **at)
{
    size_t indent = strspn(*at + 1, " ");
    if (indent < INDENT_LEAST || (*at)[1 + indent] == '-')
        return false;
    *at += 1 + indent;
    return true;
}

const char *limefile_complete_description(const char *help, const char *option,
                                          char text[DESCRIPTION_BYTES])
{
    size_t n = 0;
    const char *at = find_description_line(help, option);
    if (!at)
        return NULL;
    while (*at && *at != '\n' &&
           !(*at == ' ' && (at[1] == ' ' || islower((unsigned char)at[1]))))
        at++; /* over the name of the value */
    at += strspn(at, " ");
    for (; *at && !strchr(n > 0 ? ";(" : ";", *at) && n < DESCRIPTION_BYTES - 1; at++) {
        if (*at == '\n' && !continues_on_next_line(&at))
            break;
        if (at[-1] == ' ' && n > 0 && text[n - 1] != ' ')
            text[n++] = ' ';
        if (n < DESCRIPTION_BYTES - 1)
            text[n++] = *at;
    }
    if (n == DESCRIPTION_BYTES - 1) /* cut at a space */
        while (n > 0 && text[--n] != ' ')
            continue;
    while (n > 0 && text[n - 1] == ' ')
        n--;
    text[n] = '\0';
    return text;
}

/* ---- candidates ---- */

void limefile_complete_offer(const struct limefile_completion *c, const char *candidate,
                             const char *description)
{
    if (strncmp(candidate, c->word, strlen(c->word)) == 0)
        fprintf(c->out, "%.*s%s\t%s\n", (int)(c->word - c->argument), c->argument, candidate,
                description ? description : "");
}

void limefile_complete_list_item(struct limefile_completion *c)
{
    const char *comma = strrchr(c->word, ',');
    if (comma)
        c->word = comma + 1;
}

static void offer_words(struct limefile_completion *c)
{
    if (c->rule->count > 1)
        limefile_complete_list_item(c);
    for (int i = 0; c->rule->words[i]; i++)
        limefile_complete_offer(c, c->rule->words[i], NULL);
}

/* Offers "--name", and "-x" if the option has no name or the word is a dash with a letter.
 * Offers nothing if the help does not describe the option. */
static void offer_option(const struct limefile_completion *c, const char *name, char letter,
                         const char *help)
{
    char text[DESCRIPTION_BYTES], option[64];
    const char short_option[] = {'-', letter, '\0'};
    snprintf(option, sizeof option, "--%s", name ? name : "");
    if (!limefile_complete_description(help, name ? option : short_option, text))
        return;
    if (name)
        limefile_complete_offer(c, option, text);
    if (letter && (!name || c->word[1]))
        limefile_complete_offer(c, short_option, text);
}

static void offer_options(const struct limefile_completion *c, const struct option_rule *rules,
                          const char *help)
{
    bool has_h = false;
    for (const struct option_rule *rule = rules; rule && rule->kind; rule++) {
        offer_option(c, rule->name, rule->letter, help);
        has_h |= rule->letter == 'h';
    }
    offer_option(c, "help", has_h ? '\0' : 'h', help);
}

/* ---- the command line ---- */

static const struct option_rule *find_option(const struct option_rule *rules, const char *name,
                                             size_t len)
{
    const struct option_rule *found = NULL;
    for (const struct option_rule *rule = rules; rule && rule->kind; rule++)
        if (rule->name && strncmp(rule->name, name, len) == 0 && (!found || !rule->name[len]))
            found = rule;
    return found;
}

static const struct option_rule *find_letter(const struct option_rule *rules, char letter)
{
    for (const struct option_rule *rule = rules; rule && rule->kind; rule++)
        if (rule->letter == letter)
            return rule;
    return NULL;
}

/* Returns the option whose value is the argument after "--name" or "-x", or NULL. */
static const struct option_rule *find_awaited(const struct option_rule *rules,
                                              const char *argument)
{
    const struct option_rule *rule = NULL;
    if (strncmp(argument, "--", 2) == 0) {
        rule = strchr(argument, '=') ? NULL
                                     : find_option(rules, argument + 2, strlen(argument + 2));
        return rule && limefile_option_requires_value(rule) ? rule : NULL;
    }
    for (const char *letter = argument + 1; *letter; letter++) {
        rule = find_letter(rules, *letter);
        if (rule && limefile_option_requires_value(rule))
            return letter[1] ? NULL : rule; /* "-j4" has its value */
    }
    return NULL;
}

void limefile_complete(const struct option_rule *rules, const char *help, int count,
                       char *const *arguments, FILE *out, struct limefile_completion *c)
{
    const char *last = arguments[count - 1], *equals = strchr(last, '=');
    bool only_operands = false;
    *c = (struct limefile_completion){.out = out, .argument = last, .word = last};
    for (int i = 0; i < count - 1; i++) {
        const char *word = arguments[i];
        bool is_option = word[0] == '-' && word[1] && !only_operands;
        if (c->rule) {
            c->rule = NULL; /* the word is its value */
        } else if (is_option) {
            only_operands = strcmp(word, "--") == 0;
            c->rule = find_awaited(rules, word);
        } else if (c->operand_count++ == 0) {
            c->operand = word;
        }
    }
    if (!c->rule && !only_operands && strncmp(last, "--", 2) == 0 && equals) {
        c->rule = find_option(rules, last + 2, (size_t)(equals - last - 2));
        c->word = equals + 1;
        c->is_done = !c->rule;
    } else if (!c->rule && !only_operands && *last == '-') {
        offer_options(c, rules, help);
        c->is_done = true;
    }
    if (c->rule && c->rule->words) {
        offer_words(c);
        c->is_done = true;
    }
}
