/* agree.c - does a checkpoint's text say the same as its index? */
#include "agree.h"
#include "limefile.h"
#include "xmlread.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- values ---- */

static bool is_double(const char *text, const char **end, double want)
{
    char *after;
    double have = strtod(text, &after);
    bool same = after != text && (have == want || (isnan(have) && isnan(want)));
    *end = after;
    return same;
}

static bool is_unsigned(const char *text, const char **end, uint64_t want)
{
    char *after;
    bool digit = *text >= '0' && *text <= '9';
    unsigned long long have = strtoull(text, &after, 10);
    *end = after;
    return digit && have == want;
}

/* Three numbers, separated by white space, and nothing else. */
static bool are_doubles(const char *text, const double *want)
{
    bool same = true;
    for (int d = 0; same && d < LIMECELLS_DIMS; d++)
        same = is_double(text, &text, want[d]);
    return same && *text == '\0';
}

static bool are_unsigned(const char *text, const uint64_t *want)
{
    bool same = true;
    for (int d = 0; same && d < LIMECELLS_DIMS; d++)
        same = is_unsigned(text + strspn(text, " "), &text, want[d]);
    return same && *text == '\0';
}

static bool is_one(const char *text, uint64_t want)
{
    const char *end;
    return is_unsigned(text, &end, want) && *end == '\0';
}

static bool is_step(const char *text, int64_t want)
{
    char *end;
    return *text && strtoll(text, &end, 10) == want && *end == '\0';
}

static bool is_time(const char *text, double want)
{
    const char *end;
    return is_double(text, &end, want) && *end == '\0';
}

enum { V_STEP, V_TIME, V_PARTICLES, V_ORIGIN, V_LENGTH, V_PERIODIC, V_CELLS, V_ORDER, VALUES };

static const char *compare_values(const struct limecells *c, const struct xmlread_value *v)
{
    uint64_t periodic[LIMECELLS_DIMS];
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        periodic[d] = c->periodic[d];
    for (int i = 0; i < VALUES; i++)
        if (!v[i].found || v[i].bad)
            return "an element is missing or there twice";
    if (!is_step(v[V_STEP].text, c->step))
        return "another time step";
    if (!is_time(v[V_TIME].text, c->time))
        return "another time";
    if (!is_one(v[V_PARTICLES].text, c->particles))
        return "another number of particles";
    if (!are_doubles(v[V_ORIGIN].text, c->origin) || !are_doubles(v[V_LENGTH].text, c->length))
        return "another domain";
    if (!are_unsigned(v[V_PERIODIC].text, periodic))
        return "other periodic dimensions";
    if (!are_unsigned(v[V_CELLS].text, c->cells))
        return "other cells";
    if (strcmp(v[V_ORDER].text, c->big_endian ? "big" : "little") != 0)
        return "another byte order";
    return NULL;
}

/* ---- fields, which are in attributes ---- */

struct table {
    const struct limecells *is;
    uint32_t fields;
    bool differs, has_bytes;
};

static const char *attribute(const char *const *attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return "";
}

static void compare_element(void *context, const char *name, const char *const *attributes)
{
    struct table *t = context;
    if (strcmp(name, "particle") == 0) {
        t->has_bytes = true;
        t->differs |= !is_one(attribute(attributes, "bytes"), t->is->particle_bytes);
    }
    if (strcmp(name, "field") != 0)
        return;
    if (t->fields == t->is->fields) {
        t->differs = true;
        return;
    }
    const struct limecells_field *f = &t->is->field[t->fields++];
    t->differs |=
        strcmp(attribute(attributes, "name"), f->name) != 0 ||
        strcmp(attribute(attributes, "type"), limefile_cells_type_word(f->type)) != 0 ||
        !is_one(attribute(attributes, "count"), f->count) ||
        !is_one(attribute(attributes, "offset"), f->offset);
}

int agree_text(const struct limecells *c, const char *xml, size_t n, const char **why)
{
    struct xmlread_value v[VALUES] = {
        [V_STEP].name = "step",           [V_TIME].name = "time",
        [V_PARTICLES].name = "particles", [V_ORIGIN].name = "origin",
        [V_LENGTH].name = "length",       [V_PERIODIC].name = "periodic",
        [V_CELLS].name = "cells",         [V_ORDER].name = "byteOrder",
    };
    static const char *const elements[] = {"lemonCells", NULL};
    struct table table = {.is = c};
    int err = xmlread_values(xml, n, elements, v, COUNT(v));
    *why = err ? "malformed XML" : compare_values(c, v);
    if (!*why) {
        err = xmlread_elements(xml, n, compare_element, &table);
        if (table.differs || !table.has_bytes || table.fields != c->fields)
            *why = "other fields";
    }
    return err == LIMEFILE_E_XML ? 0 : err;
}
