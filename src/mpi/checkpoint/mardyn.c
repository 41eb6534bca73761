/* mardyn.c - read and write MarDyn's old ASCII format */
#define _GNU_SOURCE
#include "mardyn.h"
#include "world.h"

#include <errno.h>
#include <math.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION_MIN = 20080701, /* oldest version that MarDyn's reader accepts */
    NUMBER_BYTES = 64,
    SHOWN_BYTES = 60, /* bytes of a word shown in a message */
    CENTRES_MAX = 1000,
    COMPONENTS_MAX = 10000,
    REAL_BYTES = 48,  /* bytes of a number as text, with its NUL */
    NUMBERS_MAX = 13, /* position, velocity, orientation, angular momentum */
};

/* Returns true if the character separates words in a line. */
static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* ---- read a header ---- */

struct cursor {
    const char *text;
    size_t at, n;
    int64_t line;
    const char *word; /* the word that was read most recently */
    size_t length;    /* of `word` */
    char *reason;     /* buffer of CHECKPOINT_REASON_BYTES for an error */
};

/* Sets c->reason. Always returns false, so that a parser can return the result. */
__attribute__((format(printf, 2, 3))) static bool set_error(struct cursor *c,
                                                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->reason, CHECKPOINT_REASON_BYTES, format, args);
    va_end(args);
    return false;
}

/* Skips blanks and comments; with `lines` also line ends. */
static void skip_blanks(struct cursor *c, bool lines)
{
    for (; c->at < c->n; c->at++) {
        char now = c->text[c->at];
        if (now == '#')
            while (c->at + 1 < c->n && c->text[c->at + 1] != '\n')
                c->at++;
        else if (now == '\n' && lines)
            c->line++;
        else if (!is_separator(now))
            return;
    }
}

/* Sets c->word to the next word. Calls set_error() and returns false at a NUL or at the end. */
static bool parse_word(struct cursor *c)
{
    skip_blanks(c, true);
    size_t from = c->at;
    while (c->at < c->n && !is_separator(c->text[c->at]) && c->text[c->at] != '\n' &&
           c->text[c->at] != '\0')
        c->at++;
    c->word = c->text + from;
    c->length = c->at - from;
    if (c->length > 0)
        return true;
    if (c->at < c->n)
        return set_error(c, "NUL byte");
    return set_error(c, c->n >= CHECKPOINT_HEADER_MAX ? "header longer than 1 MiB"
                                                      : "header ends before NumberOfMolecules");
}

static bool is_word(const struct cursor *c, const char *word)
{
    return c->length == strlen(word) && memcmp(c->word, word, c->length) == 0;
}

static int shown_bytes(const struct cursor *c)
{
    return c->length < SHOWN_BYTES ? (int)c->length : SHOWN_BYTES;
}

/* Copies the next word to text. If it is too long, text is "", which is not a number. */
static bool read_number_text(struct cursor *c, char text[NUMBER_BYTES])
{
    if (!parse_word(c))
        return false;
    snprintf(text, NUMBER_BYTES, "%.*s", c->length < NUMBER_BYTES ? (int)c->length : 0,
             c->word);
    return true;
}

static bool parse_real(struct cursor *c, double *value)
{
    char text[NUMBER_BYTES], *end;
    if (!read_number_text(c, text))
        return false;
    *value = strtod(text, &end);
    if (end == text || *end)
        return set_error(c, "'%.*s' is not a number", shown_bytes(c), c->word);
    return true;
}

static bool parse_count(struct cursor *c, int64_t max, int64_t *value)
{
    char text[NUMBER_BYTES], *end;
    if (!read_number_text(c, text))
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || number > max)
        return set_error(c, "'%.*s' is not a number of 0 to %lld", shown_bytes(c), c->word,
                         (long long)max);
    *value = number;
    return true;
}

static bool skip_reals(struct cursor *c, int64_t n)
{
    double value;
    for (int64_t i = 0; i < n; i++)
        if (!parse_real(c, &value))
            return false;
    return true;
}

/* ---- read the values of a keyword ---- */

static bool parse_time(struct cursor *c, struct checkpoint_header *h)
{
    if (!parse_real(c, &h->time))
        return false;
    if (!isfinite(h->time))
        return set_error(c, "the time is not a finite number");
    h->time_at = (size_t)(c->word - c->text);
    h->time_bytes = c->length;
    return true;
}

static bool parse_temperature(struct cursor *c, struct checkpoint_header *h)
{
    return parse_real(c, &h->temperature);
}

static bool parse_length(struct cursor *c, struct checkpoint_header *h)
{
    for (int d = 0; d < 3; d++) {
        if (!parse_real(c, &h->length[d]))
            return false;
        if (!isfinite(h->length[d]) || !(h->length[d] > 0))
            return set_error(c, "Length %.*s is not positive", shown_bytes(c), c->word);
    }
    return true;
}

/* Stores the number of components. Skips each component: five counts of centres, one for each
 * kind, numbers[kind] values for each centre, and three moments of inertia. Skips what follows:
 * two coefficients for each pair of components, and the epsilon of the reaction field. */
static bool parse_components(struct cursor *c, struct checkpoint_header *h)
{
    static const int numbers[5] = {8, 5, 7, 7,
                                   15}; /* LJ, charge, dipole, quadrupole, Tersoff */
    if (!parse_count(c, COMPONENTS_MAX, &h->components))
        return false;
    for (int64_t i = 0; i < h->components; i++) {
        int64_t centres[5], all = 3;
        for (int k = 0; k < 5; k++) {
            if (!parse_count(c, CENTRES_MAX, &centres[k]))
                return false;
            all += centres[k] * numbers[k];
        }
        if (!skip_reals(c, all))
            return false;
    }
    int64_t pairs = h->components > 0 ? h->components * (h->components - 1) / 2 : 0;
    return skip_reals(c, 2 * pairs + 1);
}

struct keyword {
    const char *names[3];
    int numbers; /* numbers to skip, if `parse` is NULL */
    bool (*parse)(struct cursor *, struct checkpoint_header *);
};

static const struct keyword keywords[] = {
    {{"currentTime", "t", NULL}, 0, parse_time},
    {{"Temperature", "T", NULL}, 0, parse_temperature},
    {{"ThermostatTemperature", "ThT", "h"}, 2, NULL},
    {{"ComponentThermostat", "CT", "o"}, 2, NULL},
    {{"Undirected", "U", NULL}, 1, NULL},
    {{"Length", "L", NULL}, 0, parse_length},
    {{"HeatCapacity", "cv", "I"}, 3, NULL},
    {{"NumberOfComponents", "C", NULL}, 0, parse_components},
    {{"AssignCoset", "S", NULL}, 2, NULL},
    {{"Accelerate", "A", NULL}, 8, NULL},
};

static const struct keyword *find_keyword(const struct cursor *c)
{
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        for (int k = 0; k < 3 && keywords[i].names[k]; k++)
            if (is_word(c, keywords[i].names[k]))
                return &keywords[i];
    return NULL;
}

/* ---- the whole header ---- */

static bool parse_magic(struct cursor *c, struct checkpoint_header *h)
{
    static const char *const names[] = {"mardyn",    "MOLDY",  "ls1r1",  "mrdyn",
                                        "MDProject", "MarDyn", "MARDYN", NULL};
    int i = 0;
    int64_t version;
    if (!parse_word(c))
        return false;
    while (names[i] && !is_word(c, names[i]))
        i++;
    if (!names[i])
        return set_error(c, "not a MarDyn file: the first word is not 'mardyn'");
    if (!parse_word(c))
        return false;
    if (!is_word(c, "trunk"))
        return set_error(c, "not a MarDyn file: the second word is not 'trunk'");
    if (!parse_count(c, INT64_MAX, &version))
        return false;
    if (version < VERSION_MIN)
        return set_error(c, "version %lld is older than %d", (long long)version, VERSION_MIN);
    h->time_at = c->at;
    return true;
}

static bool parse_format(struct cursor *c, struct checkpoint_header *h)
{
    if (!parse_word(c))
        return false;
    for (int i = 0; i < CHECKPOINT_FORMATS; i++)
        if (is_word(c, checkpoint_format_names[i])) {
            h->format = (enum checkpoint_format)i;
            return true;
        }
    return set_error(c, "unknown molecule format '%.*s' (ICRV, IRV, ICRVQD)", shown_bytes(c),
                     c->word);
}

/* Parses what follows the keyword NumberOfMolecules, up to the end of the header. */
static bool parse_end(struct cursor *c, struct checkpoint_header *h)
{
    if (!parse_count(c, INT64_MAX, &h->molecules))
        return false;
    h->molecules_at = (size_t)(c->word - c->text);
    h->molecules_bytes = c->length;
    h->format = CHECKPOINT_ICRVQD;
    struct cursor before = *c;
    skip_blanks(c, true);
    bool more = c->at < c->n && parse_word(c);
    if (more && (is_word(c, "MoleculeFormat") || is_word(c, "M"))) {
        if (!parse_format(c, h))
            return false;
    } else {
        *c = before;
    }
    skip_blanks(c, false);
    if (c->at < c->n && c->text[c->at] != '\n')
        return set_error(c, "a molecule begins in a line of the header");
    h->bytes = c->at + (c->at < c->n);
    h->lines = c->line - (c->at == c->n);
    return true;
}

static bool parse_header(struct cursor *c, struct checkpoint_header *h)
{
    if (!parse_magic(c, h))
        return false;
    for (;;) {
        if (!parse_word(c))
            return false;
        if (is_word(c, "NumberOfMolecules") || is_word(c, "N"))
            break;
        const struct keyword *k = find_keyword(c);
        if (!k)
            return set_error(c, "unknown keyword '%.*s'", shown_bytes(c), c->word);
        if (k->parse ? !k->parse(c, h) : !skip_reals(c, k->numbers))
            return false;
    }
    if (!parse_end(c, h))
        return false;
    if (memchr(c->text, 0, h->bytes))
        return set_error(c, "NUL byte in the header");
    if (!(h->length[0] > 0))
        return set_error(c, "the header has no Length");
    if (h->components == 0)
        h->components = 1; /* MarDyn's default */
    return true;
}

bool checkpoint_header_parse(const char *text, size_t n, struct checkpoint_header *h,
                             char reason[CHECKPOINT_REASON_BYTES], int64_t *line)
{
    struct cursor c = {.text = text, .n = n, .line = 1, .reason = reason};
    *h = (struct checkpoint_header){0};
    bool good = parse_header(&c, h);
    *line = c.line;
    return good;
}

/* ---- write a header ---- */

/* Formats a number with 15 digits, or with 17 if strtod() reads another value from the 15. */
static const char *real_text(double value, char text[REAL_BYTES])
{
    snprintf(text, REAL_BYTES, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, REAL_BYTES, "%.17g", value);
    return text;
}

/* Returns a copy of a header with the new texts time and molecules. The caller frees it. */
static char *replace_values(const char *text, const struct checkpoint_header *h,
                            const char *time, const char *molecules)
{
    size_t between = h->time_at + h->time_bytes, after = h->molecules_at + h->molecules_bytes;
    char *out;
    int n = asprintf(&out, "%.*s%s%.*s%s%.*s", (int)h->time_at, text, time,
                     (int)(h->molecules_at - between), text + between, molecules,
                     (int)(h->bytes - after), text + after);
    if (n < 0)
        checkpoint_abort("out of memory");
    return out;
}

char *checkpoint_header_update(const char *text, const struct checkpoint_header *h, double time,
                               int64_t molecules)
{
    char digits[REAL_BYTES], now[REAL_BYTES + 16], count[32];
    bool has_time = h->time_bytes > 0;
    if (memcmp(&h->time, &time, sizeof time) == 0) {
        snprintf(now, sizeof now, "%.*s", has_time ? (int)h->time_bytes : 0, text + h->time_at);
        if (h->time_bytes >= sizeof now) /* an unusually long number */
            snprintf(now, sizeof now, "%s", real_text(time, digits));
    } else {
        snprintf(now, sizeof now, "%s%s", has_time ? "" : "\ncurrentTime ",
                 real_text(time, digits));
    }
    snprintf(count, sizeof count, "%lld", (long long)molecules);
    return replace_values(text, h, now, count);
}

char *checkpoint_header_create(const LemonDomain *domain, double temperature,
                               int64_t components, int64_t molecules,
                               enum checkpoint_format format)
{
    char real[5][REAL_BYTES], *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        checkpoint_abort("out of memory");
    fprintf(to, "mardyn trunk 20090731\ncurrentTime\t%s\nTemperature\t%s\nLength\t%s %s %s\n",
            real_text(domain->time, real[0]), real_text(temperature, real[1]),
            real_text(domain->length[0], real[2]), real_text(domain->length[1], real[3]),
            real_text(domain->length[2], real[4]));
    fprintf(to, "NumberOfComponents\t%lld\n", (long long)components);
    for (int64_t i = 0; i < components; i++)
        fputs("1 0 0 0 0\n0 0 0 1 1 1 0 0\n0 0 0\n", to);
    for (int64_t i = 0; i < components * (components - 1) / 2; i++)
        fputs("1 1\n", to);
    fprintf(to, "1e+10\nNumberOfMolecules\t%lld\nMoleculeFormat\t%s\n", (long long)molecules,
            checkpoint_format_names[format]);
    bool failed = ferror(to);
    if (fclose(to) != 0 || failed)
        checkpoint_abort("out of memory");
    return text;
}

/* ---- read and write a molecule's line ---- */

static int numbers_per_molecule(enum checkpoint_format format)
{
    return format == CHECKPOINT_ICRVQD ? NUMBERS_MAX : 6;
}

static const char *after_blanks(const char *at)
{
    while (is_separator(*at))
        at++;
    return at;
}

/* Parses an unsigned integer and sets *at to its end. Returns false if it is invalid. */
static bool parse_id(const char **at, uint64_t *value)
{
    char *end;
    *at = after_blanks(*at);
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *value = strtoull(*at, &end, 10);
    bool good = errno == 0 && (!*end || is_separator(*end) || *end == '#');
    *at = end;
    return good;
}

/* Parses a double and sets *at to its end. Returns false if it is invalid or out of range. */
static bool parse_value(const char **at, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(*at, &end);
    bool good = end != *at && (!*end || is_separator(*end) || *end == '#') &&
                !(errno == ERANGE && isinf(*value));
    *at = end;
    return good;
}

/* Sets reason for a line in which, after `number` valid values, the value at `at` is invalid or
 * missing. Returns -1. */
static int report_value(const char *at, int number, const struct checkpoint_header *h,
                        char reason[CHECKPOINT_REASON_BYTES])
{
    int all = numbers_per_molecule(h->format) + (h->format == CHECKPOINT_IRV ? 1 : 2);
    at = after_blanks(at);
    if (!*at || *at == '#')
        snprintf(reason, CHECKPOINT_REASON_BYTES, "%d value%s where %s has %d", number,
                 number == 1 ? "" : "s", checkpoint_format_names[h->format], all);
    else
        snprintf(reason, CHECKPOINT_REASON_BYTES, "value %d is invalid", number + 1);
    return -1;
}

/* Returns 1 if the position is in the domain; otherwise sets reason and returns -1. */
static int check_inside(const struct checkpoint_molecule *m, const struct checkpoint_header *h,
                        char reason[CHECKPOINT_REASON_BYTES])
{
    const double *x = m->position;
    for (int d = 0; d < 3; d++)
        if (!(x[d] >= 0 && x[d] <= h->length[d])) {
            snprintf(reason, CHECKPOINT_REASON_BYTES,
                     "molecule %llu: position (%g, %g, %g) is outside the domain",
                     (unsigned long long)m->id, x[0], x[1], x[2]);
            return -1;
        }
    return 1;
}

/* The values of a line that were read so far. */
struct values {
    const char *at; /* the text after them */
    int count;
    uint64_t id, component;
    double numbers[NUMBERS_MAX];
};

/* Reads the values of the format. At an invalid value, returns false; v->at then points before
 * that value. */
static bool read_values(struct values *v, enum checkpoint_format format)
{
    const char *at = v->at;
    if (!parse_id(&at, &v->id))
        return false;
    v->count++;
    v->at = at;
    if (format != CHECKPOINT_IRV) {
        if (!parse_id(&at, &v->component))
            return false;
        v->count++;
        v->at = at;
    }
    for (int i = 0; i < numbers_per_molecule(format); i++) {
        if (!parse_value(&at, &v->numbers[i]))
            return false;
        v->count++;
        v->at = at;
    }
    return true;
}

int checkpoint_line_parse(const char *line, size_t n, const struct checkpoint_header *h,
                          struct checkpoint_molecule *m, char reason[CHECKPOINT_REASON_BYTES])
{
    struct values v = {.at = after_blanks(line), .component = 1};
    if (strlen(line) != n) {
        snprintf(reason, CHECKPOINT_REASON_BYTES, "NUL byte");
        return -1;
    }
    if (!*v.at || *v.at == '#')
        return 0;
    if (!read_values(&v, h->format))
        return report_value(v.at, v.count, h, reason);
    v.at = after_blanks(v.at);
    if (*v.at && *v.at != '#') {
        snprintf(reason, CHECKPOINT_REASON_BYTES, "more than the %d values of %s", v.count,
                 checkpoint_format_names[h->format]);
        return -1;
    }
    if (v.component < 1 || v.component > (uint64_t)h->components) {
        snprintf(reason, CHECKPOINT_REASON_BYTES,
                 "molecule %llu: component %llu is not 1 to %lld", (unsigned long long)v.id,
                 (unsigned long long)v.component, (long long)h->components);
        return -1;
    }
    *m = (struct checkpoint_molecule){
        .id = v.id, .component = h->format == CHECKPOINT_IRV ? 0 : (uint32_t)v.component};
    memcpy((char *)m + offsetof(struct checkpoint_molecule, position), v.numbers,
           (size_t)numbers_per_molecule(h->format) * sizeof(double));
    return check_inside(m, h, reason);
}

void checkpoint_line_print(const struct checkpoint_molecule *m, enum checkpoint_format format,
                           FILE *to)
{
    char real[REAL_BYTES];
    double numbers[NUMBERS_MAX];
    memcpy(numbers, (const char *)m + offsetof(struct checkpoint_molecule, position),
           (size_t)numbers_per_molecule(format) * sizeof(double));
    fprintf(to, "%" PRIu64, m->id);
    if (format != CHECKPOINT_IRV)
        fprintf(to, " %" PRIu32, m->component);
    for (int i = 0; i < numbers_per_molecule(format); i++)
        fprintf(to, " %s", real_text(numbers[i], real));
    putc('\n', to);
}
