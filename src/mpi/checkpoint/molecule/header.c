/* header.c - read */
#include "header.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OLDEST = 20080701, /* version that MarDyn's reader takes */
    NUMBER_BYTES = 64,
    SHOWN_BYTES = 60, /* of a word, in a message */
    CENTRES_MAX = 1000,
    COMPONENTS_MAX = 10000,
};

struct cursor {
    const char *text;
    size_t at, n;
    int64_t line;
    const char *word; /* the last one that was taken */
    size_t bytes;
    char *reason;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct cursor *c, const char *format,
                                                       ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->reason, CHECKPOINT_REASON_BYTES, format, args);
    va_end(args);
    return false;
}

/* Blanks and comments; over line ends as well, or not. */
static void skip(struct cursor *c, bool lines)
{
    for (; c->at < c->n; c->at++) {
        char now = c->text[c->at];
        if (now == '#')
            while (c->at + 1 < c->n && c->text[c->at + 1] != '\n')
                c->at++;
        else if (now == '\n' && lines)
            c->line++;
        else if (!checkpoint_is_blank(now))
            return;
    }
}

static bool take_word(struct cursor *c)
{
    skip(c, true);
    size_t from = c->at;
    while (c->at < c->n && !checkpoint_is_blank(c->text[c->at]) && c->text[c->at] != '\n' &&
           c->text[c->at] != '\0')
        c->at++;
    c->word = c->text + from;
    c->bytes = c->at - from;
    if (c->bytes > 0)
        return true;
    if (c->at < c->n)
        return fail(c, "a byte 0");
    return fail(c, c->n >= CHECKPOINT_HEADER_MAX ? "the header is longer than 1 MiB"
                                                 : "the header ends before NumberOfMolecules");
}

static bool is_word(const struct cursor *c, const char *word)
{
    return c->bytes == strlen(word) && memcmp(c->word, word, c->bytes) == 0;
}

static int shown_bytes(const struct cursor *c)
{
    return c->bytes < SHOWN_BYTES ? (int)c->bytes : SHOWN_BYTES;
}

/* The next word, "" if it is too long for a number. */
static bool take_number(struct cursor *c, char text[NUMBER_BYTES])
{
    if (!take_word(c))
        return false;
    snprintf(text, NUMBER_BYTES, "%.*s", c->bytes < NUMBER_BYTES ? (int)c->bytes : 0, c->word);
    return true;
}

static bool take_real(struct cursor *c, double *value)
{
    char text[NUMBER_BYTES], *end;
    if (!take_number(c, text))
        return false;
    *value = strtod(text, &end);
    if (end == text || *end)
        return fail(c, "'%.*s' is not a number", shown_bytes(c), c->word);
    return true;
}

static bool take_count(struct cursor *c, int64_t most, int64_t *value)
{
    char text[NUMBER_BYTES], *end;
    if (!take_number(c, text))
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || number > most)
        return fail(c, "'%.*s' is not a number of 0 to %lld", shown_bytes(c), c->word,
                    (long long)most);
    *value = number;
    return true;
}

static bool take_reals(struct cursor *c, int64_t n)
{
    double value;
    for (int64_t i = 0; i < n; i++)
        if (!take_real(c, &value))
            return false;
    return true;
}

/* ---- keywords ---- */

static bool take_time(struct cursor *c, struct checkpoint_header *h)
{
    if (!take_real(c, &h->time))
        return false;
    if (!isfinite(h->time))
        return fail(c, "the time is not a finite number");
    h->time_at = (size_t)(c->word - c->text);
    h->time_bytes = c->bytes;
    return true;
}

static bool take_temperature(struct cursor *c, struct checkpoint_header *h)
{
    return take_real(c, &h->temperature);
}

static bool take_length(struct cursor *c, struct checkpoint_header *h)
{
    for (int d = 0; d < 3; d++) {
        if (!take_real(c, &h->length[d]))
            return false;
        if (!isfinite(h->length[d]) || !(h->length[d] > 0))
            return fail(c, "Length %.*s is not positive", shown_bytes(c), c->word);
    }
    return true;
}

/* Centres of each kind, with as many numbers each; three moments of inertia; two coefficients
 * for each pair of components; epsilon of the reaction field. */
static bool take_components(struct cursor *c, struct checkpoint_header *h)
{
    static const int numbers[5] = {8, 5, 7, 7,
                                   15}; /* LJ, charge, dipole, quadrupole, Tersoff */
    if (!take_count(c, COMPONENTS_MAX, &h->components))
        return false;
    for (int64_t i = 0; i < h->components; i++) {
        int64_t centres[5], all = 3;
        for (int k = 0; k < 5; k++) {
            if (!take_count(c, CENTRES_MAX, &centres[k]))
                return false;
            all += centres[k] * numbers[k];
        }
        if (!take_reals(c, all))
            return false;
    }
    int64_t pairs = h->components > 0 ? h->components * (h->components - 1) / 2 : 0;
    return take_reals(c, 2 * pairs + 1);
}

struct keyword {
    const char *names[3];
    int numbers; /* which are only passed over */
    bool (*take)(struct cursor *, struct checkpoint_header *);
};

static const struct keyword keywords[] = {
    {{"currentTime", "t", NULL}, 0, take_time},
    {{"Temperature", "T", NULL}, 0, take_temperature},
    {{"ThermostatTemperature", "ThT", "h"}, 2, NULL},
    {{"ComponentThermostat", "CT", "o"}, 2, NULL},
    {{"Undirected", "U", NULL}, 1, NULL},
    {{"Length", "L", NULL}, 0, take_length},
    {{"HeatCapacity", "cv", "I"}, 3, NULL},
    {{"NumberOfComponents", "C", NULL}, 0, take_components},
    {{"AssignCoset", "S", NULL}, 2, NULL},
    {{"Accelerate", "A", NULL}, 8, NULL},
};

static const struct keyword *find(const struct cursor *c)
{
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        for (int k = 0; k < 3 && keywords[i].names[k]; k++)
            if (is_word(c, keywords[i].names[k]))
                return &keywords[i];
    return NULL;
}

/* ---- from the first word to the last ---- */

static bool take_start(struct cursor *c, struct checkpoint_header *h)
{
    static const char *const names[] = {"mardyn",    "MOLDY",  "ls1r1",  "mrdyn",
                                        "MDProject", "MarDyn", "MARDYN", NULL};
    int i = 0;
    int64_t version;
    if (!take_word(c))
        return false;
    while (names[i] && !is_word(c, names[i]))
        i++;
    if (!names[i])
        return fail(c, "not a file of MarDyn: the first word is not 'mardyn'");
    if (!take_word(c))
        return false;
    if (!is_word(c, "trunk"))
        return fail(c, "not a file of MarDyn: the second word is not 'trunk'");
    if (!take_count(c, INT64_MAX, &version))
        return false;
    if (version < OLDEST)
        return fail(c, "version %lld is older than %d", (long long)version, OLDEST);
    h->time_at = c->at;
    return true;
}

static bool take_format(struct cursor *c, struct checkpoint_header *h)
{
    if (!take_word(c))
        return false;
    for (int i = 0; i < CHECKPOINT_FORMATS; i++)
        if (is_word(c, checkpoint_format_names[i])) {
            h->format = (enum checkpoint_format)i;
            return true;
        }
    return fail(c, "molecule format '%.*s': it must be ICRV, IRV or ICRVQD", shown_bytes(c),
                c->word);
}

static bool take_end(struct cursor *c, struct checkpoint_header *h)
{
    if (!take_count(c, INT64_MAX, &h->molecules))
        return false;
    h->molecules_at = (size_t)(c->word - c->text);
    h->molecules_bytes = c->bytes;
    h->format = CHECKPOINT_ICRVQD;
    struct cursor before = *c;
    skip(c, true);
    bool more = c->at < c->n && take_word(c);
    if (more && (is_word(c, "MoleculeFormat") || is_word(c, "M"))) {
        if (!take_format(c, h))
            return false;
    } else {
        *c = before;
    }
    skip(c, false);
    if (c->at < c->n && c->text[c->at] != '\n')
        return fail(c, "a molecule begins in a line of the header");
    h->bytes = c->at + (c->at < c->n);
    h->lines = c->line - (c->at == c->n);
    return true;
}

static bool take_all(struct cursor *c, struct checkpoint_header *h)
{
    if (!take_start(c, h))
        return false;
    for (;;) {
        if (!take_word(c))
            return false;
        if (is_word(c, "NumberOfMolecules") || is_word(c, "N"))
            break;
        const struct keyword *k = find(c);
        if (!k)
            return fail(c, "unknown keyword '%.*s'", shown_bytes(c), c->word);
        if (k->take ? !k->take(c, h) : !take_reals(c, k->numbers))
            return false;
    }
    if (!take_end(c, h))
        return false;
    if (memchr(c->text, 0, h->bytes))
        return fail(c, "a byte 0 in the header");
    if (!(h->length[0] > 0))
        return fail(c, "the header has no Length");
    if (h->components == 0)
        h->components = 1; /* which MarDyn makes then */
    return true;
}

bool checkpoint_header_parse(const char *text, size_t n, struct checkpoint_header *h,
                             char reason[CHECKPOINT_REASON_BYTES], int64_t *line)
{
    struct cursor c = {.text = text, .n = n, .line = 1, .reason = reason};
    *h = (struct checkpoint_header){0};
    bool good = take_all(&c, h);
    *line = c.line;
    return good;
}
