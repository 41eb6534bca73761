/* line.c - a molecule as a line of text */
#include "line.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBERS_MAX = 13, /* position, velocity, orientation, angular momentum */
};

static int numbers_in(enum checkpoint_format format)
{
    return format == CHECKPOINT_ICRVQD ? NUMBERS_MAX : 6;
}

static const char *after_blanks(const char *at)
{
    while (checkpoint_is_blank(*at))
        at++;
    return at;
}

/* ---- numbers ---- */

/* What strtod() makes of "nan(0x...)" are these bits again, but for the one that makes it
 * quiet. */
static void nan_text(double value, char text[CHECKPOINT_REAL_BYTES])
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned long long payload = bits & ((UINT64_C(1) << 51) - 1);
    if (payload)
        snprintf(text, CHECKPOINT_REAL_BYTES, "%snan(0x%llx)", bits >> 63 ? "-" : "", payload);
    else
        snprintf(text, CHECKPOINT_REAL_BYTES, "%snan", bits >> 63 ? "-" : "");
}

const char *checkpoint_real_text(double value, char text[CHECKPOINT_REAL_BYTES])
{
    if (isnan(value)) {
        nan_text(value, text);
        return text;
    }
    snprintf(text, CHECKPOINT_REAL_BYTES, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, CHECKPOINT_REAL_BYTES, "%.17g", value);
    return text;
}

/* ---- read ---- */

static bool take_whole(const char **at, uint64_t *value)
{
    char *end;
    *at = after_blanks(*at);
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *value = strtoull(*at, &end, 10);
    bool good = errno == 0 && (!*end || checkpoint_is_blank(*end) || *end == '#');
    *at = end;
    return good;
}

/* Too large a number is none: infinity would be another one. */
static bool take_real(const char **at, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(*at, &end);
    bool good = end != *at && (!*end || checkpoint_is_blank(*end) || *end == '#') &&
                !(errno == ERANGE && isinf(*value));
    *at = end;
    return good;
}

static int refuse_value(const char *at, int number, const struct checkpoint_header *h,
                        char reason[CHECKPOINT_REASON_BYTES])
{
    int all = numbers_in(h->format) + (h->format == CHECKPOINT_IRV ? 1 : 2);
    at = after_blanks(at);
    if (!*at || *at == '#')
        snprintf(reason, CHECKPOINT_REASON_BYTES, "%d value%s where %s has %d", number,
                 number == 1 ? "" : "s", checkpoint_format_names[h->format], all);
    else
        snprintf(reason, CHECKPOINT_REASON_BYTES, "value %d is wrong", number + 1);
    return -1;
}

static int check(const struct checkpoint_molecule *m, const struct checkpoint_header *h,
                 char reason[CHECKPOINT_REASON_BYTES])
{
    const double *x = m->position;
    for (int d = 0; d < 3; d++)
        if (!(x[d] >= 0 && x[d] <= h->length[d])) {
            snprintf(reason, CHECKPOINT_REASON_BYTES,
                     "molecule %llu: position (%g, %g, %g) is outside of the domain",
                     (unsigned long long)m->id, x[0], x[1], x[2]);
            return -1;
        }
    return 1;
}

/* Values in the order of the format, and how many have been taken. */
struct values {
    const char *at;
    int taken;
    uint64_t id, component;
    double numbers[NUMBERS_MAX];
};

static bool take_values(struct values *v, enum checkpoint_format format)
{
    const char *at = v->at;
    if (!take_whole(&at, &v->id))
        return false;
    v->taken++;
    v->at = at;
    if (format != CHECKPOINT_IRV) {
        if (!take_whole(&at, &v->component))
            return false;
        v->taken++;
        v->at = at;
    }
    for (int i = 0; i < numbers_in(format); i++) {
        if (!take_real(&at, &v->numbers[i]))
            return false;
        v->taken++;
        v->at = at;
    }
    return true;
}

int checkpoint_line_parse(const char *line, size_t n, const struct checkpoint_header *h,
                          struct checkpoint_molecule *m, char reason[CHECKPOINT_REASON_BYTES])
{
    struct values v = {.at = after_blanks(line), .component = 1};
    if (strlen(line) != n) {
        snprintf(reason, CHECKPOINT_REASON_BYTES, "a byte 0");
        return -1;
    }
    if (!*v.at || *v.at == '#')
        return 0;
    if (!take_values(&v, h->format))
        return refuse_value(v.at, v.taken, h, reason);
    v.at = after_blanks(v.at);
    if (*v.at && *v.at != '#') {
        snprintf(reason, CHECKPOINT_REASON_BYTES, "more than the %d values of %s", v.taken,
                 checkpoint_format_names[h->format]);
        return -1;
    }
    if (v.component < 1 || v.component > (uint64_t)h->components) {
        snprintf(reason, CHECKPOINT_REASON_BYTES, "molecule %llu: component %llu of %lld",
                 (unsigned long long)v.id, (unsigned long long)v.component,
                 (long long)h->components);
        return -1;
    }
    *m = (struct checkpoint_molecule){
        .id = v.id, .component = h->format == CHECKPOINT_IRV ? 0 : (uint32_t)v.component};
    memcpy((char *)m + offsetof(struct checkpoint_molecule, position), v.numbers,
           (size_t)numbers_in(h->format) * sizeof(double));
    return check(m, h, reason);
}

/* ---- write ---- */

size_t checkpoint_line_print(const struct checkpoint_molecule *m, enum checkpoint_format format,
                             char line[CHECKPOINT_LINE_BYTES])
{
    char real[CHECKPOINT_REAL_BYTES];
    double numbers[NUMBERS_MAX];
    memcpy(numbers, (const char *)m + offsetof(struct checkpoint_molecule, position),
           (size_t)numbers_in(format) * sizeof(double));
    int n = format == CHECKPOINT_IRV
                ? snprintf(line, CHECKPOINT_LINE_BYTES, "%llu", (unsigned long long)m->id)
                : snprintf(line, CHECKPOINT_LINE_BYTES, "%llu %lu", (unsigned long long)m->id,
                           (unsigned long)m->component);
    for (int i = 0; i < numbers_in(format); i++)
        n += snprintf(line + n, CHECKPOINT_LINE_BYTES - (size_t)n, " %s",
                      checkpoint_real_text(numbers[i], real));
    line[n++] = '\n';
    return (size_t)n;
}
