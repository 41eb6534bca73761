/* values.c - parse and validate the values of limefs's -o options */
#define _GNU_SOURCE
#include "values.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

enum kind {
    KIND_SIZE,    /* uint64_t: bytes, with K, M or G */
    KIND_NUMBER,  /* unsigned */
    KIND_SECONDS, /* double */
    KIND_OTHER,
};

#define NOWHERE   SIZE_MAX
#define AT(field) offsetof(struct limefs_options, field)

/* In the order of enum limefs_value. */
static const struct value {
    const char *name;
    enum kind kind;
    size_t where;
    double least, most;
    const char *expected;
} values[] = {
    {"readahead", KIND_SIZE, AT(readahead), 0, 1 << 30, "0, or 4K to 1G"},
    {"window", KIND_SIZE, AT(window), 2 << 20, 0x1p40, "2M to 1024G"},
    {"extent", KIND_SIZE, AT(extent), 1 << 20, 1 << 30, "1M to 1G, a multiple of 4K"},
    {"forward_from", KIND_SIZE, AT(forward_from), 0, 0x1p40, "0 to 1024G"},
    {"stripe", KIND_SIZE, AT(stripe), 1, 1 << 30, "1 to 1G"},
    {"ranks", KIND_NUMBER, AT(ranks), 1, LIMEFS_RANKS_MAX, "a number from 1 to 4096"},
    {"max_open", KIND_NUMBER, AT(max_open), 0, 1000000, "a number from 0 to 1000000"},
    {"max_read", KIND_NUMBER, AT(max_read), 4096, 1 << 20, "bytes, 4096 to 1048576"},
    {"max_threads", KIND_NUMBER, NOWHERE, 1, 100000, "a number from 1 to 100000"},
    {"max_idle_threads", KIND_NUMBER, NOWHERE, 0, 100000, "a number from 0 to 100000"},
    {"attr_timeout", KIND_SECONDS, AT(attr_timeout), 0, 1e9, "seconds, from 0"},
    {"entry_timeout", KIND_SECONDS, AT(entry_timeout), 0, 1e9, "seconds, from 0"},
    {"job_timeout", KIND_SECONDS, AT(job_timeout), 0.1, 86400, "seconds, 0.1 to 86400"},
    {"verify", KIND_OTHER, NOWHERE, 0, 0, "open, stream, off"},
    {"mkdir", KIND_OTHER, NOWHERE, 0, 0, "container, folder"},
    {"job", KIND_OTHER, NOWHERE, 0, 0, "the path of a socket"},
    {"mpirun", KIND_OTHER, NOWHERE, 0, 0, "a command"},
};

_Static_assert(sizeof values / sizeof *values == LIMEFS_VALUES, "a row for each value");

__attribute__((format(printf, 2, 3))) static int refuse(char wrong[LIMEFS_WRONG_MAX],
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(wrong, LIMEFS_WRONG_MAX, format, args);
    va_end(args);
    return -1;
}

/* ---- numbers ---- */

static bool parse_size(const char *text, double *number)
{
    static const char units[] = "kmgKMG";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    *number = (double)value;
    if (unit)
        *number *= (double)(UINT64_C(1) << 10 * ((unit - units) % 3 + 1));
    return errno == 0 && end[unit ? 1 : 0] == '\0';
}

/* At most 15 digits, so that a double holds the number exactly. */
static bool parse_number(const char *text, double *number)
{
    size_t len = strlen(text);
    *number = strtod(text, NULL);
    return strspn(text, "0123456789") == len && len <= 15;
}

/* No inf, nan or hexadecimal numbers. */
static bool parse_seconds(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return strspn(text, "0123456789.eE+-") == strlen(text) && *end == '\0';
}

static int read_number(const struct value *value, const char *text,
                       struct limefs_options *options, char wrong[LIMEFS_WRONG_MAX])
{
    double number;
    bool good = (*text >= '0' && *text <= '9') || *text == '.';
    if (good)
        good = value->kind == KIND_SIZE     ? parse_size(text, &number)
               : value->kind == KIND_NUMBER ? parse_number(text, &number)
                                            : parse_seconds(text, &number);
    if (!good || !(number >= value->least && number <= value->most))
        return refuse(wrong, "%s: invalid value '%.100s' (%s)", value->name, text,
                      value->expected);
    if (value->where == NOWHERE)
        return 0;
    void *at = (char *)options + value->where;
    if (value->kind == KIND_SIZE)
        *(uint64_t *)at = (uint64_t)number;
    else if (value->kind == KIND_NUMBER)
        *(unsigned *)at = (unsigned)number;
    else
        *(double *)at = number;
    return 0;
}

/* ---- others ---- */

/* Returns the index of text among the words, which end with NULL, or -1. */
static int read_word(const struct value *value, const char *text, const char *const *words,
                     char wrong[LIMEFS_WRONG_MAX])
{
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    return refuse(wrong, "%s: unknown value '%.100s' (%s)", value->name, text, value->expected);
}

/* Moves or copies the text to *path. The daemon works in another directory, so the path becomes
 * absolute. */
static int read_path(const struct value *value, char **text, char **path,
                     char wrong[LIMEFS_WRONG_MAX])
{
    char cwd[PATH_MAX];
    if (!**text)
        return refuse(wrong, "option '%s' requires a value (%s)", value->name, value->expected);
    if (**text != '/') {
        if (!getcwd(cwd, sizeof cwd) || asprintf(path, "%s/%s", cwd, *text) < 0) {
            *path = NULL;
            return refuse(wrong, "%s: %s", value->name, strerror(errno));
        }
        return 0;
    }
    *path = *text;
    *text = NULL;
    return 0;
}

static int read_job(struct limefs_values *given, struct limefs_options *options,
                    char wrong[LIMEFS_WRONG_MAX])
{
    const struct value *job = &values[LIMEFS_VALUE_JOB];
    if (read_path(job, &given->text[LIMEFS_VALUE_JOB], &options->job, wrong) != 0)
        return -1;
    if (strlen(options->job) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return refuse(wrong, "job: %.100s...: the path of a socket has at most 107 bytes",
                      options->job);
    return 0;
}

/* A program is found by PATH unless its name has a slash. */
static int read_mpirun(struct limefs_values *given, struct limefs_options *options,
                       char wrong[LIMEFS_WRONG_MAX])
{
    const struct value *mpirun = &values[LIMEFS_VALUE_MPIRUN];
    char **text = &given->text[LIMEFS_VALUE_MPIRUN];
    memmove(*text, *text + strspn(*text, " "), strlen(*text + strspn(*text, " ")) + 1);
    char *slash = strchr(*text, '/');
    if (!**text || (slash && slash < *text + strcspn(*text, " ")))
        return read_path(mpirun, text, &options->mpirun, wrong);
    options->mpirun = *text;
    *text = NULL;
    return 0;
}

static int read_others(struct limefs_values *given, struct limefs_options *options,
                       char wrong[LIMEFS_WRONG_MAX])
{
    static const char *const when[] = {
        [LIMEFS_VERIFY_OFF] = "off",
        [LIMEFS_VERIFY_OPEN] = "open",
        [LIMEFS_VERIFY_STREAM] = "stream",
        NULL,
    };
    static const char *const made[] = {"folder", "container", NULL};
    const char *verify = given->text[LIMEFS_VALUE_VERIFY];
    const char *mkdir = given->text[LIMEFS_VALUE_MKDIR];
    int word;
    if (verify) {
        if ((word = read_word(&values[LIMEFS_VALUE_VERIFY], verify, when, wrong)) < 0)
            return -1;
        options->verify = (enum limefs_verify)word;
    }
    if (mkdir) {
        if ((word = read_word(&values[LIMEFS_VALUE_MKDIR], mkdir, made, wrong)) < 0)
            return -1;
        options->mkdir_container = word;
    }
    if (given->text[LIMEFS_VALUE_JOB] && read_job(given, options, wrong) != 0)
        return -1;
    return given->text[LIMEFS_VALUE_MPIRUN] ? read_mpirun(given, options, wrong) : 0;
}

/* ---- all together ---- */

static int check_together(const struct limefs_options *options, char wrong[LIMEFS_WRONG_MAX])
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN), most = processors * LIMEFS_RANKS_EACH;
    if (options->readahead && options->readahead < 4096)
        return refuse(wrong, "readahead: invalid value '%llu' (0, or 4K to 1G)",
                      (unsigned long long)options->readahead);
    if (options->ranks && options->job)
        return refuse(wrong, "ranks= starts a job, job= uses another: give one of them");
    if (options->ranks && !options->mpirun && options->ranks > (unsigned long)most)
        return refuse(wrong,
                      "ranks: %u ranks for %ld processors of this host; at most %ld, unless "
                      "mpirun= starts them on other hosts, too",
                      options->ranks, processors, most);
    if (options->extent % 4096)
        return refuse(wrong, "extent: invalid value '%llu' (1M to 1G, a multiple of 4K)",
                      (unsigned long long)options->extent);
    if (options->window < 2 * options->extent)
        return refuse(wrong, "window: it must hold two extents, %lluK",
                      (unsigned long long)options->extent / 512);
    return 0;
}

/* Warns of options that concern a job if the mount has no job. */
static void warn_of_no_effect(const struct limefs_values *given,
                              const struct limefs_options *options)
{
    static const struct {
        enum limefs_value value;
        bool needs_ranks; /* has an effect only on a job that the mount starts */
    } of_job[] = {
        {LIMEFS_VALUE_WINDOW, false},
        {LIMEFS_VALUE_EXTENT, false},
        {LIMEFS_VALUE_JOB_TIMEOUT, false},
        {LIMEFS_VALUE_STRIPE, true},
    };
    for (size_t i = 0; i < sizeof of_job / sizeof *of_job; i++)
        if (given->text[of_job[i].value] && !options->ranks &&
            (of_job[i].needs_ranks || !options->job))
            limefs_log(LOG_WARNING, "%s: no effect without ranks=%s",
                       values[of_job[i].value].name, of_job[i].needs_ranks ? "" : " or job=");
    if (options->mpirun && !options->ranks)
        limefs_log(LOG_WARNING, "mpirun: no effect without ranks=");
}

int limefs_values_read(struct limefs_values *given, struct limefs_options *options,
                       char wrong[LIMEFS_WRONG_MAX])
{
    for (int i = 0; i < LIMEFS_VALUES; i++)
        if (given->text[i] && values[i].kind != KIND_OTHER &&
            read_number(&values[i], given->text[i], options, wrong) != 0)
            return -1;
    if (read_others(given, options, wrong) != 0 || check_together(options, wrong) != 0)
        return -1;
    warn_of_no_effect(given, options);
    return 0;
}

bool limefs_values_misused(const char *arg, char wrong[LIMEFS_WRONG_MAX])
{
    static const char *const flags[] = {"faces", "formats",     "direct_io",
                                        "ino32", "allow_other", "allow_root",
                                        "rw",    "ro",          "writable"};
    size_t len = strcspn(arg, "=");
    for (size_t i = 0; i < LIMEFS_VALUES && !arg[len]; i++)
        if (strcmp(arg, values[i].name) == 0) {
            refuse(wrong, "option '%s' requires a value (%s)", arg, values[i].expected);
            return true;
        }
    for (size_t i = 0; i < sizeof flags / sizeof *flags && arg[len]; i++)
        if (strlen(flags[i]) == len && strncmp(arg, flags[i], len) == 0) {
            refuse(wrong, "option '%s' takes no value", flags[i]);
            return true;
        }
    return false;
}

void limefs_values_release(struct limefs_values *given)
{
    for (int i = 0; i < LIMEFS_VALUES; i++)
        free(given->text[i]);
    *given = (struct limefs_values){{NULL}};
}
