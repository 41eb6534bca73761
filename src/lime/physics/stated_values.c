/* stated_values.c - read plaquettes and link traces in metadata, compare them with the data */
#define _GNU_SOURCE
#include "limephysics.h"
#include "text.h"
#include "xmlread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_BYTES_MAX = 64 * 1024, /* only the first so many bytes of a record are read */
    NUMBER_MAX = 64,            /* maximum of characters in a number */
};

static size_t count_digits(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* Parses a decimal number and sets *digit to one unit of the last written digit: 1e-5 for
 * "-1.25e-03". Returns false for any other text, including inf, nan and hexadecimal. */
static bool parse_decimal(const char *text, size_t len, double *value, double *digit)
{
    char copy[NUMBER_MAX + 1];
    size_t at = len && (*text == '-' || *text == '+'), whole, decimals = 0;
    long exponent = 0;
    if (len > NUMBER_MAX)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    whole = count_digits(text + at, len - at);
    at += whole;
    if (at < len && text[at] == '.') {
        decimals = count_digits(text + at + 1, len - at - 1);
        at += 1 + decimals;
    }
    if (whole + decimals == 0)
        return false;
    if (at < len && (text[at] == 'e' || text[at] == 'E')) {
        size_t sign = at + 1 < len && (text[at + 1] == '-' || text[at + 1] == '+');
        size_t n = count_digits(text + at + 1 + sign, len - at - 1 - sign);
        exponent = n && n < 6 ? strtol(copy + at + 1, NULL, 10) : 0;
        at = n && n < 6 ? at + 1 + sign + n : at;
    }
    *value = strtod(copy, NULL);
    *digit = pow(10, (double)exponent - (double)decimals);
    return at == len && isfinite(*value) && isfinite(*digit);
}

/* Copies a text, truncated to the buffer, with '?' instead of bytes outside printable ASCII. */
static void copy_printable(char *out, size_t cap, const char *text, size_t len)
{
    size_t n = len < cap - 1 ? len : cap - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    out[n] = '\0';
}

void limefile_physics_parse(struct limefile_physics_stated *out,
                            enum limefile_physics_quantity quantity, double largest,
                            const char *name, const char *text, size_t len)
{
    memset(out, 0, sizeof *out);
    limefile_text_trim(&text, &len);
    out->quantity = quantity;
    copy_printable(out->name, sizeof out->name, name, strlen(name));
    copy_printable(out->text, sizeof out->text, text, len);
    out->is_number = parse_decimal(text, len, &out->value, &out->digit);
    if (!out->is_number)
        out->value = out->digit = 0;
    out->value /= largest;
    out->digit /= largest;
}

double limefile_physics_value(const struct limefile_physics *p,
                              enum limefile_physics_quantity quantity)
{
    const double values[] = {p->plaquette, p->space, p->time, p->trace};
    return values[quantity];
}

const char *limefile_physics_quantity_name(enum limefile_physics_quantity quantity)
{
    static const char *const names[] = {"plaquette", "space plaquette", "time plaquette",
                                        "link trace"};
    return names[quantity];
}

bool limefile_physics_agrees(const struct limefile_physics *p,
                             const struct limefile_physics_stated *s, unsigned precision)
{
    double digit =
        s->digit < LIMEFILE_PHYSICS_DIGIT_MAX ? s->digit : LIMEFILE_PHYSICS_DIGIT_MAX;
    double allowed = s->tolerance > 0  ? s->tolerance
                     : precision == 32 ? LIMEFILE_PHYSICS_TOLERANCE_SINGLE
                                       : LIMEFILE_PHYSICS_TOLERANCE_DOUBLE;
    double difference = fabs(limefile_physics_value(p, s->quantity) - s->value);
    return s->is_number && difference <= (digit > allowed ? digit : allowed);
}

/* ---- the records of a container ---- */

/* The names of known values. If a record has a name twice, its first value counts. */
static const struct {
    const char *name;
    enum limefile_physics_quantity quantity;
    double largest;
} known_names[] = {
    {"plaquette", LIMEFILE_PHYSICS_PLAQUETTE, 1},      /* tmLQCD; NERSC in capitals */
    {"plaq", LIMEFILE_PHYSICS_PLAQUETTE, 1},           /* USQCD */
    {"avePlaquette", LIMEFILE_PHYSICS_PLAQUETTE, 1},   /* QCDml */
    {"linktr", LIMEFILE_PHYSICS_TRACE, 1},             /* USQCD */
    {"link_trace", LIMEFILE_PHYSICS_TRACE, 1},         /* NERSC */
    {"gauge.ssplaq", LIMEFILE_PHYSICS_SPACE, 3},       /* MILC */
    {"gauge.stplaq", LIMEFILE_PHYSICS_TIME, 3},        /* MILC */
    {"gauge.nersc_linktr", LIMEFILE_PHYSICS_TRACE, 1}, /* MILC */
};

struct value_list {
    struct limefile_physics_stated *out;
    int count;
    const struct limefile_record *record; /* the record that is being read */
    const char *source;                   /* as in struct limefile_physics_stated */
    double scale; /* factor for `largest` of the names: 3 in openQCD's header, else 1 */
};

/* Adds a value unless its name is unknown, the record had this name before, or the list is
 * full. */
static void put_value(struct value_list *list, const char *name, size_t name_len,
                      const char *text, size_t len)
{
    limefile_text_trim(&name, &name_len);
    for (size_t i = 0; i < sizeof known_names / sizeof known_names[0]; i++) {
        if (strlen(known_names[i].name) != name_len ||
            strncasecmp(known_names[i].name, name, name_len) != 0)
            continue;
        for (int k = 0; k < list->count; k++)
            if (list->out[k].ordinal == list->record->ordinal &&
                strcmp(list->out[k].name, known_names[i].name) == 0)
                return;
        if (list->count == LIMEFILE_PHYSICS_STATED_MAX)
            return;
        struct limefile_physics_stated *s = &list->out[list->count++];
        limefile_physics_parse(s, known_names[i].quantity, known_names[i].largest * list->scale,
                               known_names[i].name, text, len);
        s->ordinal = list->record->ordinal;
        s->source = list->source;
        return;
    }
}

/* Adds each "name = value" of a text in which newlines or commas separate them. */
static void parse_lines(struct value_list *list, const char *text, size_t n)
{
    while (n) {
        size_t len = 0;
        while (len < n && text[len] != '\n' && text[len] != ',')
            len++;
        const char *sign = memchr(text, '=', len);
        if (sign)
            put_value(list, text, (size_t)(sign - text), sign + 1,
                      len - (size_t)(sign + 1 - text));
        len += len < n;
        text += len;
        n -= len;
    }
}

/* The text of an element may be one value or, for example in <info>, lines "name = value". */
static void parse_xml_fact(void *context, const char *name, size_t depth, const char *text)
{
    (void)depth;
    put_value(context, name, strlen(name), text, strlen(text));
    parse_lines(context, text, strlen(text));
}

static int parse_values(struct value_list *list, struct limefile_source *source, bool xml)
{
    const struct limefile_record *record = list->record;
    size_t n = record->bytes < TEXT_BYTES_MAX ? (size_t)record->bytes : TEXT_BYTES_MAX;
    char *text;
    int err = limefile_record_read_text(source, record, n, &text);
    if (!err) {
        /* Records that C programs write may contain the terminating NUL. */
        n = strlen(text);
        if (xml)
            err = xmlread_facts(text, n, parse_xml_fact, list);
        else
            parse_lines(list, text, n);
    }
    free(text);
    return err == LIMEFILE_E_XML ? 0 : err;
}

/* Types of metadata records; their case is ignored, because writers differ in it. */
static const struct {
    const char *type;
    bool xml, same_message; /* same_message: the record must be in the field's message */
    double scale;           /* as in struct value_list */
    double tolerance;       /* for `tolerance` of struct limefile_physics_stated, but only if
                             * the data have double precision */
} types[] = {
    {"xlf-info", false, false, 1, 0},
    {"scidac-record-xml", true, true, 1, 0},
    {"qcdml", true, true, 1, 0},
    {"ildg-qcdml", true, true, 1, 0},
    /* Each contains the header of the file from which the field was converted (limegauge.h). */
    {"nersc-header", false, false, 1, 0},
    {"openqcd-header", false, false, 3, LIMEFILE_PHYSICS_TOLERANCE_OPENQCD},
};

/* Returns true if the record is in another message than `data` and, in its own message, a data
 * record precedes it. */
static bool follows_other_data(const struct limefile_index *index,
                               const struct limefile_record *record,
                               const struct limefile_record *data)
{
    struct limefile_record before;
    for (uint64_t at = record->ordinal - 1; at > 0 && record->message != data->message; at--) {
        if (limefile_index_get(index, at, &before) != 0 || before.message != record->message)
            break;
        if (limefile_record_is_data(&before))
            return true;
    }
    return false;
}

/* Finds the record of a type that belongs to `data`, by the rule of
 * limefile_physics_stated_read(). same_message: only in its message. Returns false if none. */
static bool find_last(const struct limefile_index *index, const struct limefile_record *data,
                      const char *type, bool same_message, struct limefile_record *out)
{
    for (uint64_t at = data->ordinal - 1; at > 0; at--) {
        if (limefile_index_get(index, at, out) != 0 || limefile_record_is_data(out) ||
            (same_message && out->message != data->message))
            break;
        if (strcasecmp(out->type, type) == 0 && !follows_other_data(index, out, data))
            return true;
    }
    for (uint64_t at = data->ordinal + 1; limefile_index_get(index, at, out) == 0; at++) {
        if (limefile_record_is_data(out) || out->message != data->message)
            break;
        if (strcasecmp(out->type, type) == 0)
            return true;
    }
    return false;
}

bool limefile_physics_find_text(const struct limefile_index *index,
                                const struct limefile_field *field, const char *type,
                                struct limefile_record *out)
{
    return find_last(index, &field->record, type, false, out);
}

int limefile_physics_stated_read(
    struct limefile_source *source, const struct limefile_index *index,
    const struct limefile_field *field,
    struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX])
{
    struct limefile_record record;
    struct value_list list = {.out = out, .record = &record, .scale = 1};
    int err = 0;
    for (size_t i = 0; !err && i < sizeof types / sizeof types[0]; i++) {
        list.source = types[i].type;
        list.scale = types[i].scale;
        int before = list.count;
        if (find_last(index, &field->record, list.source, types[i].same_message, &record))
            err = parse_values(&list, source, types[i].xml);
        for (int k = before; field->precision == 64 && k < list.count; k++)
            out[k].tolerance = types[i].tolerance;
    }
    return err ? err : list.count;
}

int limefile_physics_stated_parse(
    const char *text, size_t n, double scale, const char *source,
    struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX])
{
    const struct limefile_record none = {.ordinal = 0};
    struct value_list list = {.out = out, .record = &none, .source = source, .scale = scale};
    parse_lines(&list, text, n);
    return list.count;
}

int limefile_physics_read_plaquette(struct limefile_source *source,
                                    const struct limefile_index *index,
                                    const struct limefile_field *field,
                                    struct limefile_physics_stated *out)
{
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX];
    int count = limefile_physics_stated_read(source, index, field, stated);
    for (int i = 0; i < count; i++)
        if (stated[i].quantity == LIMEFILE_PHYSICS_PLAQUETTE && stated[i].is_number) {
            *out = stated[i];
            return 1;
        }
    return count < 0 ? count : 0;
}
