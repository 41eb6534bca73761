/* test_option.c - a command line by a table: kinds of values, their errors, the order */
#include "option.h"
#include "suggest.h"
#include "unit.h"

#include <stdint.h>
#include <string.h>

static const char *const words[] = {"all", "none", NULL};

static struct {
    bool flag, last;
    unsigned number;
    int64_t size, count, extents[3];
    double real, reals[3];
    int word;
    const char *text;
    char calls[64];
} got;

static int note(const void *context, const char *text)
{
    strcat(strcat(got.calls, text ? text : "-"), context);
    return strcmp(text ? text : "", "stop") == 0 ? 7 : 0;
}

static int record_operand(const void *context, char *text)
{
    return note(context, text);
}

static const struct option_rule rules[] = {
    {"flag", 'f', OPTION_FLAG, .value = &got.flag},
    {"last", 0, OPTION_STOP, .value = &got.last},
    {"number", 'n', OPTION_UNSIGNED, &got.number, 2, .most = 64},
    {"size", 0, OPTION_SIZE, &got.size, 1, .most = 0x1p40},
    {"count", 0, OPTION_COUNT, &got.count, 0, .most = 1e15},
    {"extents", 'e', OPTION_EXTENTS, got.extents, 1, 100, .count = 3},
    {"real", 0, OPTION_REAL, &got.real, -1, .most = 1e6},
    {"reals", 0, OPTION_REALS, got.reals, 0, 10, .count = 3},
    {"word", 0, OPTION_WORD, &got.word, .words = words},
    {"text", 't', OPTION_TEXT, .value = &got.text},
    {"call", 'c', OPTION_CALL_TEXT, .handle = record_operand},
    {"either", 0, OPTION_CALL_OPTIONAL, .handle = record_operand},
    {NULL},
};

/* Spaces separate the arguments of the line. */
static int read_line(const char *line, bool in_order, char why[OPTION_ERROR_BYTES])
{
    static char copy[256];
    char *argv[32] = {(char *)"program"}, *rest;
    int argc = 1;
    memset(&got, 0, sizeof got);
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    why[0] = '\0';
    return limefile_options_parse(rules, argc, argv, in_order ? note : NULL, ".", why);
}

TEST(test_values)
{
    char why[OPTION_ERROR_BYTES];
    assert_int_equal(read_line("-fn 64 --size=3M a --count 2k -e 2x3x4 --real -1e-1 --reals "
                               "0x1.5x2 --word none -t x b",
                               false, why),
                     0);
    assert_true(got.flag && got.number == 64 && got.size == 3 << 20 && got.count == 2000);
    assert_true(got.extents[0] == 2 && got.extents[1] == 3 && got.extents[2] == 4);
    assert_true(got.real == -0.1 && got.reals[0] == 0 && got.reals[1] == 1.5 &&
                got.reals[2] == 2 && got.word == 1);
    assert_string_equal(got.text, "x");
    assert_int_equal(read_line("--reals 2", false, why), 0);
    assert_true(got.reals[0] == 2 && got.reals[1] == 2 && got.reals[2] == 2);
}

TEST(test_refused)
{
    static const struct {
        const char *line, *why;
    } cases[] = {
        {"-n 1", "-n: invalid value '1' (a number from 2 to 64)"},
        {"-fn65", "-n: invalid value '65'"},
        {"--num 2k", "--number: invalid value '2k'"},
        {"--number=", "--number: invalid value ''"},
        {"--size 0", "--size: invalid value '0' (1 to 1T)"},
        {"--size 1x", "--size: invalid value '1x'"},
        {"--size 16777216T", "--size: invalid value"},
        {"--size 99999999999999999999", "--size: invalid value"},
        {"--size +1", "--size: invalid value '+1'"},
        {"--real nan", "--real: invalid value 'nan' (a number from -1 to 1000000)"},
        {"--real 0x10", "--real: invalid value '0x10'"},
        {"--real 1e999", "--real: invalid value '1e999'"},
        {"--reals 1x2", "--reals: invalid value '1x2' (a number, or 3, as in 4x4x8)"},
        {"-e 2x3x101", "-e: invalid value '2x3x101' (3 numbers, as in 4x4x8)"},
        {"-e 2x3x4x", "-e: invalid value '2x3x4x'"},
        {"--word a", "--word: unknown value 'a' (all, none)"},
        {"--flag=1", "option '--flag' takes no value"},
        {"-t", "option '-t' requires a value"},
        {"--x", "unknown option '--x'"},
    };
    char why[OPTION_ERROR_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_line(cases[i].line, false, why), OPTION_INVALID);
        if (strncmp(why, cases[i].why, strlen(cases[i].why)) != 0)
            fail_msg("%s: %s", cases[i].line, why);
    }
}

TEST(test_order)
{
    char why[OPTION_ERROR_BYTES];
    assert_int_equal(read_line("a -c b --either --either=d e -- -f", true, why), 0);
    assert_string_equal(got.calls, "a.b.-.d.e.-f.");
    assert_int_equal(read_line("-c stop -n 0", false, why), 7);
    assert_int_equal(read_line("--last -n 0", false, why), 0);
    assert_true(got.last);
    assert_int_equal(read_line("--help -n 0", false, why), OPTION_HELP);
}

TEST(test_suggestions)
{
    static const struct {
        const char *word, *candidates, *text;
    } cases[] = {
        {"chekc", "ls, check, checksum", "; did you mean 'check'?"},
        {"chck", "ls, check", "; did you mean 'check'?"},
        {"ckeck", "check", "; did you mean 'check'?"},
        {"ccheckk", "check", "; did you mean 'check'?"},
        {"ca_abc", "acabc", "; did you mean 'acabc'?"}, /* exchange, then remove */
        {"xcheckyz", "check", ""},
        {"NERSC", "nersx, nersc", "; did you mean 'nersc'?"},
        {"traj", "date, trajectory", "; did you mean 'trajectory'?"},
        {"tr", "trajectory", ""},
        {"sl", "rm, ls", "; did you mean 'ls'?"},
        {"xy", "rm, ls", ""},
        {"x", "a, b", ""},
        {"", "a", ""},
        {"rows", "rows", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct limefile_suggestion near = {0};
        limefile_suggest_from_list(&near, cases[i].word, cases[i].candidates);
        assert_string_equal(limefile_suggest_text(&near), cases[i].text);
    }
}
