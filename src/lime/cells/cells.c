/* cells.c - validate a checkpoint's description, compute record sizes and the cell of a
 * coordinate, and write the text for users */
#include "limecells.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    size_t bytes;
} type_info[] = {
    [LIMECELLS_INT32] = {"int32", 4},     [LIMECELLS_UINT32] = {"uint32", 4},
    [LIMECELLS_INT64] = {"int64", 8},     [LIMECELLS_UINT64] = {"uint64", 8},
    [LIMECELLS_FLOAT32] = {"float32", 4}, [LIMECELLS_FLOAT64] = {"float64", 8},
};

static bool is_type(enum limecells_type type)
{
    return (unsigned)type >= LIMECELLS_INT32 && (unsigned)type <= LIMECELLS_FLOAT64;
}

size_t limefile_cells_type_bytes(enum limecells_type type)
{
    return is_type(type) ? type_info[type].bytes : 0;
}

const char *limefile_cells_type_word(enum limecells_type type)
{
    return is_type(type) ? type_info[type].word : NULL;
}

static bool is_float(enum limecells_type type)
{
    return type == LIMECELLS_FLOAT32 || type == LIMECELLS_FLOAT64;
}

/* ---- validation ---- */

static const char *check_name(const char *name)
{
    size_t n = strnlen(name, LIMECELLS_NAME_MAX + 1);
    if (n == 0 || n > LIMECELLS_NAME_MAX)
        return "a field's name must have 1 to 63 bytes";
    if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != n)
        return "a field's name may contain only letters, digits, - and _";
    return NULL;
}

static uint64_t field_bytes(const struct limecells_field *f)
{
    return f->count * (uint64_t)limefile_cells_type_bytes(f->type);
}

static bool fields_overlap(const struct limecells_field *a, const struct limecells_field *b)
{
    return a->offset < b->offset + field_bytes(b) && b->offset < a->offset + field_bytes(a);
}

/* Returns why field i is not valid, or NULL. The fields before it must be valid. */
static const char *check_field(const struct limecells *c, uint32_t i)
{
    const struct limecells_field *f = &c->field[i];
    const char *why = check_name(f->name);
    if (why)
        return why;
    if (!is_type(f->type))
        return "a field has an unknown type";
    if (f->count == 0 || f->count > LIMECELLS_PARTICLE_MAX)
        return "a field has no numbers, or too many";
    if (f->offset > c->particle_bytes || field_bytes(f) > c->particle_bytes - f->offset)
        return "a field reaches beyond the particle";
    for (uint32_t j = 0; j < i; j++) {
        if (strcmp(c->field[j].name, f->name) == 0)
            return "two fields have the same name";
        if (fields_overlap(&c->field[j], f))
            return "two fields overlap";
    }
    return NULL;
}

static const char *check_fields(const struct limecells *c)
{
    if (c->fields == 0 || c->fields > LIMECELLS_FIELDS_MAX)
        return "a particle has 1 to 64 fields";
    for (uint32_t i = 0; i < c->fields; i++) {
        const char *why = check_field(c, i);
        if (why)
            return why;
    }
    const struct limecells_field *position = limefile_cells_field(c, "position");
    if (!position || !is_float(position->type) || position->count != LIMECELLS_DIMS)
        return "a particle needs a position: three floating-point numbers";
    const struct limecells_field *id = limefile_cells_field(c, "id");
    if (id && (is_float(id->type) || id->count != 1))
        return "an id must be one integer";
    return NULL;
}

/* Returns true if so few floating-point numbers lie between a cell's edges that a position
 * might not determine its cell. limefile_cells_locate() relies on wider cells. */
static bool is_too_narrow(const struct limecells *c, int d)
{
    double width = c->length[d] / (double)c->cells[d];
    double low = fabs(c->origin[d]), high = fabs(c->origin[d] + c->length[d]);
    return !(width >= DBL_MIN && width >= (low > high ? low : high) * 0x1p-40);
}

static const char *check_domain(const struct limecells *c)
{
    uint64_t cells = 1;
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        if (!isfinite(c->origin[d]) || !isfinite(2 * c->length[d]) ||
            !isfinite(c->origin[d] + c->length[d]))
            return "the domain is not finite";
        if (!(c->length[d] > 0) || !(c->origin[d] + c->length[d] > c->origin[d]))
            return "the domain has no volume";
        if (c->cells[d] == 0 || c->cells[d] > LIMECELLS_CELLS_MAX / cells)
            return "the number of cells must be 1 to 2^40";
        if (is_too_narrow(c, d))
            return "the cells are too narrow for numbers of 64 bits";
        cells *= c->cells[d];
    }
    return NULL;
}

const char *limefile_cells_check(const struct limecells *c)
{
    if (c->particle_bytes == 0 || c->particle_bytes > LIMECELLS_PARTICLE_MAX)
        return "a particle must have 1 byte to 1 MiB";
    if (c->particles > INT64_MAX / c->particle_bytes)
        return "there are more particles than a file can hold";
    const char *why = check_fields(c);
    return why ? why : check_domain(c);
}

/* ---- sizes ---- */

uint64_t limefile_cells_count(const struct limecells *c)
{
    return c->cells[0] * c->cells[1] * c->cells[2];
}

uint64_t limefile_cells_header_bytes(const struct limecells *c)
{
    return LIMECELLS_FIXED_BYTES + (uint64_t)c->fields * LIMECELLS_FIELD_BYTES;
}

uint64_t limefile_cells_index_bytes(const struct limecells *c)
{
    return limefile_cells_header_bytes(c) + limefile_cells_count(c) * LIMECELLS_ENTRY_BYTES;
}

uint64_t limefile_cells_data_bytes(const struct limecells *c)
{
    return c->particles * c->particle_bytes;
}

const struct limecells_field *limefile_cells_field(const struct limecells *c, const char *name)
{
    for (uint32_t i = 0; i < c->fields; i++)
        if (strcmp(c->field[i].name, name) == 0)
            return &c->field[i];
    return NULL;
}

void limefile_cells_xyz(const struct limecells *c, uint64_t number, uint64_t at[LIMECELLS_DIMS])
{
    at[2] = number % c->cells[2];
    at[1] = number / c->cells[2] % c->cells[1];
    at[0] = number / c->cells[2] / c->cells[1];
}

/* ---- which cell a coordinate is in ---- */

double limefile_cells_edge(const struct limecells *c, int d, uint64_t i)
{
    return c->origin[d] + c->length[d] * ((double)i / (double)c->cells[d]);
}

double limefile_cells_canonical(const struct limecells *c, int d, double x)
{
    return c->periodic[d] && x == c->origin[d] + c->length[d] ? c->origin[d] : x;
}

/* Returns the cell whose edges enclose x. `i` is that cell, except for a rounding error. */
static int64_t correct_by_edges(const struct limecells *c, int d, double x, int64_t i)
{
    while (i > 0 && x < limefile_cells_edge(c, d, (uint64_t)i))
        i--;
    while (i + 1 < (int64_t)c->cells[d] && x >= limefile_cells_edge(c, d, (uint64_t)i + 1))
        i++;
    return i;
}

int64_t limefile_cells_locate(const struct limecells *c, int d, double x)
{
    /* Far above the error of `scaled`, because limefile_cells_check() rejects narrow cells. */
    const double near_edge = 0x1p-7;
    double end = c->origin[d] + c->length[d];
    if (!(x >= c->origin[d] && x <= end))
        return -1;
    x = limefile_cells_canonical(c, d, x);
    double scaled = (x - c->origin[d]) / c->length[d] * (double)c->cells[d];
    int64_t i = (int64_t)scaled;
    if (i >= (int64_t)c->cells[d])
        i = (int64_t)c->cells[d] - 1;
    double fraction = scaled - (double)i;
    return fraction > near_edge && fraction < 1 - near_edge ? i : correct_by_edges(c, d, x, i);
}

/* ---- the text ---- */

struct xml_text {
    char *text;
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void print_xml(struct xml_text *out,
                                                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out->text + out->n, LIMECELLS_TEXT_MAX - out->n, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < LIMECELLS_TEXT_MAX - out->n)
        out->n += (size_t)n;
}

static void print_field(struct xml_text *out, const struct limecells_field *f)
{
    print_xml(out, "    <field name=\"%s\" type=\"%s\" count=\"%u\" offset=\"%" PRIu64 "\"/>\n",
              f->name, limefile_cells_type_word(f->type), f->count, f->offset);
}

size_t limefile_cells_format_text(const struct limecells *c, char text[LIMECELLS_TEXT_MAX])
{
    struct xml_text out = {text, 0};
    print_xml(&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<lemonCells>\n"
                    "  <version>1.0</version>\n");
    print_xml(&out, "  <step>%" PRId64 "</step>\n  <time>%.17g</time>\n", c->step, c->time);
    print_xml(&out, "  <particles>%" PRIu64 "</particles>\n", c->particles);
    print_xml(&out, "  <origin>%.17g %.17g %.17g</origin>\n", c->origin[0], c->origin[1],
              c->origin[2]);
    print_xml(&out, "  <length>%.17g %.17g %.17g</length>\n", c->length[0], c->length[1],
              c->length[2]);
    print_xml(&out, "  <periodic>%d %d %d</periodic>\n", c->periodic[0], c->periodic[1],
              c->periodic[2]);
    print_xml(&out, "  <cells>%" PRIu64 " %" PRIu64 " %" PRIu64 "</cells>\n", c->cells[0],
              c->cells[1], c->cells[2]);
    print_xml(&out, "  <byteOrder>%s</byteOrder>\n", c->big_endian ? "big" : "little");
    print_xml(&out, "  <particle bytes=\"%" PRIu64 "\">\n", c->particle_bytes);
    for (uint32_t i = 0; i < c->fields; i++)
        print_field(&out, &c->field[i]);
    print_xml(&out, "  </particle>\n</lemonCells>\n");
    return out.n;
}
