/* option.c - parse command line options by a table */
#define _GNU_SOURCE
#include "option.h"
#include "suggest.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RULES_MAX = 40,
    HELP = 256, /* results of getopt_long() for --help and the first rule */
    FIRST_RULE,
};

/* ---- values ---- */

static bool is_within(const struct option_rule *rule, double value)
{
    return isfinite(value) && value >= rule->least && value <= rule->most;
}

/* parse_int() and parse_real() move *text to the end of the number. */
static bool parse_int(const struct option_rule *rule, const char **text, int64_t *value)
{
    static const char units[] = "kKmMgGtT";
    bool has_units = rule->kind == OPTION_COUNT || rule->kind == OPTION_SIZE;
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *value = strtoll(*text, &end, 10);
    const char *unit = has_units && *end ? strchr(units, *end) : NULL;
    for (long i = unit ? (unit - units) / 2 : -1; i >= 0; i--)
        if (__builtin_mul_overflow(*value, rule->kind == OPTION_SIZE ? 1024 : 1000, value))
            return false;
    *text = end + (unit != NULL);
    return errno == 0 && is_within(rule, (double)*value);
}

static bool parse_real(const struct option_rule *rule, const char **text, double *value)
{
    char *end = (char *)*text + 1;
    if (!**text || !strchr("0123456789.-", **text))
        return false;
    /* strtod() would parse "0x1" in "0x1x2" as a hexadecimal number. */
    *value = strncmp(*text, "0x", 2) == 0 ? 0 : strtod(*text, &end);
    *text = end;
    return is_within(rule, *value);
}

static bool parse_list(const struct option_rule *rule, const char *text)
{
    int64_t *numbers = rule->value;
    double *reals = rule->kind == OPTION_REALS ? rule->value : NULL;
    for (int i = 0; i < rule->count; i++) {
        if (i > 0 && *text++ != 'x')
            return false;
        if (!(reals ? parse_real(rule, &text, &reals[i]) : parse_int(rule, &text, &numbers[i])))
            return false;
        for (int k = 1; i == 0 && reals && !*text && k < rule->count; k++)
            reals[k] = reals[0];
        if (reals && i == 0 && !*text)
            return true;
    }
    return !*text;
}

static bool parse_word(const struct option_rule *rule, const char *text)
{
    int i = 0;
    while (rule->words[i] && strcmp(rule->words[i], text) != 0)
        i++;
    if (rule->words[i])
        *(int *)rule->value = i;
    return rule->words[i];
}

static bool parse_value(const struct option_rule *rule, const char *text)
{
    int64_t number;
    switch (rule->kind) {
    case OPTION_TEXT:
        *(const char **)rule->value = text;
        return true;
    case OPTION_UNSIGNED:
        if (!parse_int(rule, &text, &number) || *text)
            return false;
        *(unsigned *)rule->value = (unsigned)number;
        return true;
    case OPTION_REAL:
        return parse_real(rule, &text, rule->value) && !*text;
    case OPTION_REALS:
    case OPTION_EXTENTS:
        return parse_list(rule, text);
    case OPTION_WORD:
        return parse_word(rule, text);
    default:
        return parse_int(rule, &text, rule->value) && !*text;
    }
}

/* Formats a size as "4K". */
static const char *format_size(double bytes, char text[32])
{
    int unit = 0;
    for (; unit < 4 && bytes >= 1024 && fmod(bytes, 1024) == 0; unit++)
        bytes /= 1024;
    snprintf(text, 32, "%.15g%.*s", bytes, unit > 0, &" KMGT"[unit]);
    return text;
}

static const char *valid_values(const struct option_rule *rule, char text[256])
{
    char least[32], most[32];
    size_t n = 0;
    if (rule->expected)
        return rule->expected;
    text[0] = '\0';
    for (int i = 0; rule->kind == OPTION_WORD && rule->words[i] && n < 256; i++)
        n += (size_t)snprintf(text + n, 256 - n, "%s%s", i ? ", " : "", rule->words[i]);
    if (rule->kind == OPTION_EXTENTS || rule->kind == OPTION_REALS)
        snprintf(text, 256,
                 rule->kind == OPTION_REALS ? "a number, or %d, as in %s"
                                            : "%d numbers, as in %s",
                 rule->count, rule->count == 3 ? "4x4x8" : "16x16x16x32");
    else if (rule->kind == OPTION_SIZE)
        snprintf(text, 256, "%s to %s", format_size(rule->least, least),
                 format_size(rule->most, most));
    else if (rule->kind != OPTION_WORD)
        snprintf(text, 256, "a number from %.15g to %.15g", rule->least, rule->most);
    return text;
}

bool limefile_option_parse(const struct option_rule *rule, const char *given, const char *text,
                           char why[OPTION_ERROR_BYTES])
{
    char values[256];
    struct limefile_suggestion near = {0};
    if (parse_value(rule, text))
        return true;
    for (int i = 0; rule->kind == OPTION_WORD && rule->words[i]; i++)
        limefile_suggest(&near, text, rule->words[i]);
    snprintf(why, OPTION_ERROR_BYTES, "%s: %s value '%.200s' (%s)%s", given,
             rule->kind == OPTION_WORD ? "unknown" : "invalid", text,
             valid_values(rule, values), limefile_suggest_text(&near));
    return false;
}

/* ---- errors of getopt_long() ---- */

/* Returns true if `word` ("--name" or "--name=value") is the option or an abbreviation. */
static bool matches_name(const char *word, const struct option *option)
{
    size_t len = strcspn(word + 2, "=");
    return strncmp(word + 2, option->name, len) == 0;
}

static void describe_nearest(char *text, size_t bytes, const char *word,
                             const struct option *longs)
{
    struct limefile_suggestion near = {0};
    char name[128], candidate[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (const struct option *o = longs; o->name; o++) {
        snprintf(candidate, sizeof candidate, "--%s", o->name);
        limefile_suggest(&near, name, candidate);
    }
    snprintf(text, bytes, "unknown option '%.*s'%s", (int)strcspn(word, "="), word,
             limefile_suggest_text(&near));
}

/* Describes an unknown or ambiguous long option, for which getopt_long() sets optopt to 0. */
static void describe_unknown(char *text, size_t bytes, const char *word,
                             const struct option *longs)
{
    int found = 0;
    size_t n = (size_t)snprintf(text, bytes, "option '%.100s' is ambiguous (", word);
    for (const struct option *o = longs; o->name; o++)
        if (matches_name(word, o) && n < bytes)
            n += (size_t)snprintf(text + n, bytes - n, "%s--%s", found++ ? ", " : "", o->name);
    if (found > 1 && n < bytes)
        snprintf(text + n, bytes - n, ")");
    if (found < 2)
        describe_nearest(text, bytes, word, longs);
}

/* Describes the wrong letter, optopt: a word of argv can have several letters. */
static void describe_letter(char *text, size_t bytes, const char *shorts)
{
    const char *found = optopt == ':' ? NULL : strchr(shorts, optopt);
    if (found && found[1] == ':')
        snprintf(text, bytes, "option '-%c' requires a value", optopt);
    else
        snprintf(text, bytes, "unknown option '-%c'", optopt);
}

void limefile_option_error(char *text, size_t bytes, char *const *argv, const char *shorts,
                           const struct option *longs)
{
    const char *word = argv[optind - 1];
    bool is_long = strncmp(word, "--", 2) == 0;
    if (optopt == 0) {
        describe_unknown(text, bytes, word, longs);
        return;
    }
    for (const struct option *o = longs; is_long && o->name; o++)
        if (o->val == optopt && matches_name(word, o)) {
            snprintf(text, bytes, "option '--%s' %s", o->name,
                     o->has_arg == no_argument ? "takes no value" : "requires a value");
            return;
        }
    describe_letter(text, bytes, shorts);
}

/* ---- the command line ---- */

static int has_value(const struct option_rule *rule)
{
    if (rule->kind == OPTION_CALL_OPTIONAL)
        return optional_argument;
    return rule->kind >= OPTION_TEXT && rule->kind != OPTION_CALL ? required_argument
                                                                  : no_argument;
}

bool limefile_option_requires_value(const struct option_rule *rule)
{
    return has_value(rule) == required_argument;
}

/* Returns the rule for a result of getopt_long(), or NULL if no rule has it. */
static const struct option_rule *find_result(const struct option_rule *rules, int found)
{
    for (const struct option_rule *rule = rules; rule && rule->kind; rule++)
        if (rule->letter == found || FIRST_RULE + (rule - rules) == found)
            return rule;
    return NULL;
}

/* Fills getopt_long()'s tables. in_order: getopt_long() returns operands among the options. */
static void fill_tables(const struct option_rule *rules, bool in_order,
                        struct option longs[RULES_MAX + 2], char shorts[2 * RULES_MAX + 3])
{
    size_t n = 0;
    if (in_order)
        *shorts++ = '-'; /* getopt_long() returns 1 for each operand */
    for (const struct option_rule *rule = rules; rule && rule->kind; rule++) {
        int found = rule->letter ? rule->letter : FIRST_RULE + (int)(rule - rules);
        if (rule->name)
            longs[n++] = (struct option){rule->name, has_value(rule), NULL, found};
        if (rule->letter)
            *shorts++ = rule->letter;
        if (rule->letter && has_value(rule))
            *shorts++ = ':';
    }
    longs[n++] = (struct option){"help", no_argument, NULL, HELP};
    longs[n] = (struct option){0};
    if (!find_result(rules, 'h'))
        *shorts++ = 'h';
    *shorts = '\0';
}

/* Formats the option as the user gave it, "-j" or "--threads". */
static const char *given_name(const struct option_rule *rule, char *const *argv, char text[64])
{
    const char *word = argv[optind - (optarg == argv[optind - 1] ? 2 : 1)];
    if (strncmp(word, "--", 2) == 0 || !rule->letter)
        snprintf(text, 64, "--%s", rule->name);
    else
        snprintf(text, 64, "-%c", rule->letter);
    return text;
}

static int apply_option(const struct option_rule *rule, char *const *argv, const void *context,
                        char why[OPTION_ERROR_BYTES])
{
    char text[64];
    if (rule->kind >= OPTION_CALL)
        return rule->handle(context, optarg);
    if (has_value(rule))
        return limefile_option_parse(rule, given_name(rule, argv, text), optarg, why)
                   ? 0
                   : OPTION_INVALID;
    *(bool *)rule->value = rule->kind != OPTION_FLAG_OFF;
    return 0;
}

int limefile_options_parse(const struct option_rule *rules, int argc, char **argv,
                           int (*operand)(const void *context, const char *word),
                           const void *context, char why[OPTION_ERROR_BYTES])
{
    struct option longs[RULES_MAX + 2];
    char shorts[2 * RULES_MAX + 3];
    int status = 0;
    fill_tables(rules, operand, longs, shorts);
    opterr = 0; /* getopt_long() prints nothing: limefile_option_error() has the messages */
    optind = 0; /* restarts getopt_long() */
    for (int found; !status && (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        const struct option_rule *rule = find_result(rules, found);
        if (found == '?') {
            limefile_option_error(why, OPTION_ERROR_BYTES, argv, shorts, longs);
            return OPTION_INVALID;
        }
        if (found != 1 && !rule)
            return OPTION_HELP; /* --help, or -h without a rule */
        status = found == 1 ? operand(context, optarg) : apply_option(rule, argv, context, why);
        if (found != 1 && rule->kind == OPTION_STOP)
            return 0;
    }
    for (; !status && operand && optind < argc; optind++) /* operands after "--" */
        status = operand(context, argv[optind]);
    return status;
}
