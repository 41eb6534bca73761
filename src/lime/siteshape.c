/*
 * siteshape.c - find the array of numbers that one site of a field holds
 *
 * The shape follows from the field's name: ILDG's gauge fields, tmLQCD's spinors, and the
 * datatypes of QIO programs (QDP, QLA, USQCD, QUDA, Grid). If a datatype has no known word, the
 * shape follows from the sizes in the private record.
 */
#define _GNU_SOURCE
#include "limeildg.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    COLOURS = 3,
    SPINS = 4,
    DIRECTIONS = 4,
    EXTENT_MAX = 100, /* largest valid extent in a name */
};

/* Adds a dimension. Returns false if there are too many, or one has this name already. */
static bool add_dim(struct limefile_siteshape *s, uint64_t extent, const char *name)
{
    if (s->dims == LIMEFILE_SITE_DIMS_MAX)
        return false;
    for (unsigned i = 0; i < s->dims; i++)
        if (strcmp(s->name[i], name) == 0)
            return false;
    s->extent[s->dims] = extent;
    s->name[s->dims++] = name;
    return true;
}

static uint64_t count_numbers(const struct limefile_siteshape *s)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < s->dims; i++)
        if (__builtin_mul_overflow(count, s->extent[i], &count))
            return 0;
    return count;
}

/* Adds a dimension for each letter: c colour, s spin, h half of the spins, l direction. Returns
 * false if there are too many dimensions. */
static bool add_letters(struct limefile_siteshape *s, const char *letters, uint64_t colours,
                        uint64_t spins)
{
    static const struct {
        char letter;
        const char *alone, *first, *second;
    } names[] = {
        {'c', "colour", "a", "b"},
        {'s', "spin", "spin", "spin2"},
        {'h', "spin", "spin", "spin2"},
        {'l', "mu", "mu", "nu"},
    };
    bool good = true;
    for (const char *at = letters; *at; at++) {
        size_t i = 0;
        while (names[i].letter != *at)
            i++;
        uint64_t extent = *at == 'c'   ? colours
                          : *at == 's' ? spins
                          : *at == 'h' ? SPINS / 2
                                       : DIRECTIONS;
        const char *name = strchr(letters, *at) != at    ? names[i].second
                           : strchr(at + 1, *at) != NULL ? names[i].first
                                                         : names[i].alone;
        good = good && add_dim(s, extent, name);
    }
    return good;
}

/* Changes the shape of a datum to that of a site of `values` numbers: if a site has several
 * data, adds a first dimension ("mu" for four matrices). Returns false if `values` is not a
 * whole number of data, or if there are too many dimensions. */
static bool prepend_dim(struct limefile_siteshape *s, uint64_t values)
{
    uint64_t size = count_numbers(s);
    if (size == 0 || values == 0 || values % size != 0)
        return false;
    if (values == size)
        return true;
    if (s->dims == LIMEFILE_SITE_DIMS_MAX)
        return false;
    memmove(s->extent + 1, s->extent, s->dims * sizeof *s->extent);
    memmove(s->name + 1, s->name, s->dims * sizeof *s->name);
    s->extent[0] = values / size;
    bool links = s->dims == 2 && s->name[2][0] == 'b' && s->extent[0] == DIRECTIONS;
    s->name[0] = links ? "mu" : "datum";
    s->dims++;
    return true;
}

/* ---- shape by the name of an ILDG field ---- */

static uint64_t parse_extent(const char *digits)
{
    unsigned long n = *digits >= '0' && *digits <= '9' ? strtoul(digits, NULL, 10) : 0;
    return n <= EXTENT_MAX ? n : 0;
}

/* Sets (4, 3, 3) for "su3gauge"; returns false for a name of another form. */
static bool shape_by_gauge_name(const char *field, uint64_t numbers,
                                struct limefile_siteshape *s)
{
    size_t letters = strcspn(field, "0123456789"), digits;
    uint64_t n = letters == 1 || letters == 2 ? parse_extent(field + letters) : 0;
    digits = strspn(field + letters, "0123456789");
    if (n == 0 || strncasecmp(field + letters + digits, "gauge", 5) != 0 ||
        numbers % (n * n) != 0)
        return false;
    return add_dim(s, numbers / (n * n), "mu") && add_dim(s, n, "a") && add_dim(s, n, "b");
}

/* Returns true if an ETMC or cvc format describes the field. Among fields of KIND_SCIDAC, those
 * in scidac-binary-data have cvc's format; those in ildg-binary-data have an ildg-format, which
 * states no shape. */
static bool is_etmc(const struct limefile_field *f)
{
    return f->format_ordinal &&
           (f->kind == LIMEFILE_KIND_PROPAGATOR || f->kind == LIMEFILE_KIND_SOURCE ||
            (f->kind == LIMEFILE_KIND_SCIDAC &&
             strcmp(f->record.type, "scidac-binary-data") == 0));
}

static bool shape_by_etmc(const struct limefile_field *f, uint64_t numbers,
                          struct limefile_siteshape *s)
{
    if (numbers == SPINS * COLOURS && f->kind != LIMEFILE_KIND_SCIDAC)
        return add_letters(s, "sc", COLOURS, SPINS);
    return add_dim(s, numbers, "component");
}

/* ---- shape by QIO's datatype: "QDP_F3_ColorMatrix", "QUDA_DNs4Nc3_ColorSpinorField",
 * "GRID_D_LorentzVector4_ColourMatrix3" ---- */

/* QDP and QLA store the colour of a fermion before its spin; other programs the spin first. */
static const struct {
    const char *word, *letters, *qla_letters;
} words[] = {
    {"Real", "", ""},
    {"Complex", "", ""},
    {"ColorVector", "c", "c"},
    {"ColourVector", "c", "c"},
    {"ColorMatrix", "cc", "cc"},
    {"ColourMatrix", "cc", "cc"},
    {"GaugeField", "lcc", "lcc"},
    {"HalfFermion", "hc", "ch"},
    {"DiracFermion", "sc", "cs"},
    {"ColorSpinorField", "sc", "sc"},
    {"DiracPropagator", "sscc", "cscs"},
    {"SpinVector", "s", "s"},
    {"SpinMatrix", "ss", "ss"},
    {"LorentzVector", "l", "l"},
    {"LorentzMatrix", "ll", "ll"},
};

/* Returns the subscript of the word at `at`, or -1. The word ends before a digit or '_'. */
static int find_word(const char *at)
{
    size_t len = strcspn(at, "_0123456789");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == len && strncmp(words[i].word, at, len) == 0)
            return (int)i;
    return -1;
}

/* Returns the text after the next '_', or NULL. */
static const char *next_part(const char *at)
{
    const char *line = strchr(at, '_');
    return line ? line + 1 : NULL;
}

/* Returns the first part of `name` that is one of words[], or NULL. *before is the preceding
 * part, or "". */
static const char *first_word(const char *name, const char **before)
{
    const char *at = name;
    *before = "";
    while (at && find_word(at) < 0) {
        *before = at;
        at = next_part(at);
    }
    return at;
}

/* Returns true for a part like "F", "D3", "DNs4Nc3". */
static bool is_precision(const char *part)
{
    return (*part == 'F' || *part == 'D') && part[1] && strchr("_N0123456789", part[1]);
}

static bool has_prefix(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 && name[n] == '_';
}

/* Returns the number after "Nc" or "Ns" in "DNs4Nc3", or 0. */
static uint64_t number_after(const char *part, const char *letters)
{
    size_t len = strcspn(part, "_");
    const char *at = memmem(part, len, letters, strlen(letters));
    return at ? parse_extent(at + strlen(letters)) : 0;
}

/* Adds the dimensions of the word at `at` of a datatype. A number after the word, as in
 * "ColourMatrix3", is the extent. qla: use the order of QDP and QLA. Returns false for an
 * unknown word or too many dimensions. */
static bool add_word(struct limefile_siteshape *s, const char *at, bool qla, uint64_t colours,
                     uint64_t spins)
{
    int i = find_word(at);
    if (i < 0)
        return false;
    uint64_t number = parse_extent(at + strlen(words[i].word));
    const char *letters = qla ? words[i].qla_letters : words[i].letters;
    unsigned first = s->dims;
    if (spins == 1 && strcmp(letters, "sc") == 0)
        letters = "c"; /* staggered */
    if (!add_letters(s, letters, colours, spins))
        return false;
    for (unsigned d = first; number && d < s->dims; d++)
        s->extent[d] = number;
    if (strcmp(words[i].word, "Real") == 0)
        s->complex = false;
    return true;
}

/* Sets the shape by the words of the datatype, from the first known word on. Returns false if
 * no word is known, or if a later word is unknown. */
static bool shape_by_words(const struct limefile_field *f, struct limefile_siteshape *s)
{
    const char *before, *at = first_word(f->name, &before);
    bool qla = has_prefix(f->name, "QDP") || has_prefix(f->name, "QLA");
    uint64_t colours = number_after(before, "Nc"), spins = number_after(before, "Ns");
    if (!colours && *before)
        colours = parse_extent(before + 1); /* the number in "F3" */
    if (!colours)
        colours = f->colors ? f->colors : COLOURS;
    bool known = at != NULL;
    for (; known && at; at = next_part(at))
        known = add_word(s, at, qla, colours, spins ? spins : SPINS);
    return known;
}

/* ---- shape by the sizes in a private record ---- */

/* Returns the letters for a datum of `numbers` complex numbers, or NULL. */
static const char *letters_by_size(uint64_t numbers, uint64_t colours, uint64_t spins)
{
    uint64_t matrix = colours * colours;
    return numbers == 1                        ? ""
           : numbers == colours                ? "c"
           : numbers == matrix                 ? "cc"
           : numbers == spins * colours        ? "sc"
           : numbers == spins * spins * matrix ? "sscc"
           : numbers == DIRECTIONS * matrix    ? "lcc"
                                               : NULL;
}

static bool shape_by_sizes(const struct limefile_field *f, uint64_t numbers,
                           struct limefile_siteshape *s)
{
    uint64_t colours = f->colors ? f->colors : COLOURS, spins = f->spins ? f->spins : SPINS;
    if (f->datacount == 0 || numbers % f->datacount || colours > EXTENT_MAX ||
        spins > EXTENT_MAX)
        return false;
    const char *letters = letters_by_size(numbers / f->datacount, colours, spins);
    return letters && add_letters(s, letters, colours, spins);
}

/* ---- shape of any field ---- */

/* Finds the shape of a site of `reals` real numbers. Returns false if it is unknown. */
static bool shape_numbers(const struct limefile_field *f, uint64_t reals,
                          struct limefile_siteshape *s)
{
    const struct limefile_siteshape none = {.precision = s->precision, .complex = true};
    bool pairs = reals % 2 == 0;
    *s = none;
    if (pairs && shape_by_gauge_name(f->name, reals / 2, s))
        return true;
    *s = none;
    if (pairs && is_etmc(f))
        return shape_by_etmc(f, reals / 2, s);
    if (shape_by_words(f, s) && (pairs || !s->complex) &&
        prepend_dim(s, s->complex ? reals / 2 : reals))
        return true;
    *s = none;
    return pairs && shape_by_sizes(f, reals / 2, s) && prepend_dim(s, reals / 2);
}

void limefile_siteshape_derive(const struct limefile_field *f, struct limefile_siteshape *s)
{
    unsigned size = f->precision / 8;
    *s = (struct limefile_siteshape){.precision = 0};
    if ((f->precision == 32 || f->precision == 64) && f->site_bytes % size == 0) {
        s->precision = f->precision;
        s->known = shape_numbers(f, f->site_bytes / size, s);
        if (s->known)
            return;
        *s = (struct limefile_siteshape){.precision = f->precision};
        add_dim(s, f->site_bytes / size, "component");
        return;
    }
    add_dim(s, f->site_bytes, "byte");
}

bool limefile_siteshape_is_links(const struct limefile_siteshape *s)
{
    return s->known && s->complex && s->dims == 3 && s->extent[0] == DIRECTIONS &&
           strcmp(s->name[1], "a") == 0 && strcmp(s->name[2], "b") == 0 &&
           s->extent[1] == s->extent[2];
}

unsigned limefile_datatype_precision(const char *datatype)
{
    const char *before;
    if (!first_word(datatype, &before) || !is_precision(before))
        return 0;
    return *before == 'F' ? 32 : 64;
}

bool limefile_datatype_is_known(const char *datatype)
{
    static const char *const prefixes[] = {"QDP", "QLA",  "USQCD", "QUDA",
                                           "QIO", "MILC", "GRID"};
    bool known = !next_part(datatype) || find_word(datatype) >= 0 || is_precision(datatype);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        known = known || has_prefix(datatype, prefixes[i]);
    return known;
}
