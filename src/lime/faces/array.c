/*
 * array.c - the array that a field is: the lattice's dimensions, then those of a site
 *
 * What a site is made of is known from the field's name: ILDG's gauge fields, tmLQCD's spinors,
 * the types of QDP, QUDA and Grid. Of others only that they are real numbers, or bytes.
 */
#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    COLOURS = 3,
    SPINS = 4,
    SITE_DIMS = 5,
    TENSOR_MAX = 100, /* an extent in a name; a larger one is none */
};

/* One site. */
struct tensor {
    unsigned dims;
    uint64_t extent[SITE_DIMS];
    const char *name[SITE_DIMS];
    bool complex;
};

static bool tensor_add(struct tensor *t, uint64_t extent, const char *name)
{
    if (t->dims == SITE_DIMS)
        return false;
    t->extent[t->dims] = extent;
    t->name[t->dims++] = name;
    return true;
}

static uint64_t tensor_size(const struct tensor *t)
{
    uint64_t size = 1; /* five extents of at most TENSOR_MAX */
    for (unsigned i = 0; i < t->dims; i++)
        size *= t->extent[i];
    return size;
}

/* ---- names ---- */

/* Digits at *text, which moves behind them; 0 if there are none, or too many. */
static uint64_t take_number(const char **text)
{
    char *end;
    if (**text < '0' || **text > '9')
        return 0;
    unsigned long n = strtoul(*text, &end, 10);
    *text = end;
    return n <= TENSOR_MAX ? n : 0;
}

/* "su3gauge": (links, 3, 3). */
static bool of_gauge(const char *field, uint64_t values, struct tensor *t)
{
    size_t letters = strcspn(field, "0123456789");
    const char *rest = field + letters;
    if (letters == 0 || letters > 2)
        return false;
    uint64_t n = take_number(&rest);
    if (n == 0 || strncasecmp(rest, "gauge", 5) != 0 || values % (n * n) != 0)
        return false;
    *t = (struct tensor){.complex = true};
    return tensor_add(t, values / (n * n), "mu") && tensor_add(t, n, "a") &&
           tensor_add(t, n, "b");
}

/* The words at the end of QIO's names of types, and what they are: c colour, s spin, h one half
 * of them, l direction. */
static const struct {
    const char *word, *dims;
} words[] = {
    {"Real", ""},           {"Complex", ""},        {"ColorVector", "c"},
    {"ColorMatrix", "cc"},  {"HalfFermion", "hc"},  {"DiracFermion", "sc"},
    {"GaugeField", "lcc"},  {"LorentzVector", "l"}, {"LorentzMatrix", "ll"},
    {"SpinVector", "s"},    {"SpinMatrix", "ss"},   {"ColourVector", "c"},
    {"ColourMatrix", "cc"},
};

static const char *dims_of(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == len && strncmp(words[i].word, word, len) == 0)
            return words[i].dims;
    return NULL;
}

static bool add_dims(struct tensor *t, const char *dims, uint64_t colours, uint64_t number)
{
    bool good = true;
    for (size_t i = 0; dims[i]; i++) {
        bool first = i == 0 || dims[i - 1] != dims[i];
        bool twice = !first || dims[i + 1] == dims[i];
        uint64_t extent = number ? number : dims[i] == 'c' ? colours : dims[i] == 'h' ? 2 : 4;
        const char *name = dims[i] == 'c'   ? (!twice  ? "colour"
                                               : first ? "a"
                                                       : "b")
                           : dims[i] == 'l' ? (first ? "mu" : "nu")
                                            : (first ? "spin" : "spin2");
        good = good && tensor_add(t, extent, name);
    }
    return good;
}

/* The colours in "F3", "D3", "DNs4Nc3"; 3 if it does not tell. */
static uint64_t colours_of(const char *word)
{
    const char *at = strstr(word, "Nc");
    at = at ? at + 2 : *word ? word + 1 : word;
    uint64_t n = take_number(&at);
    return n ? n : COLOURS;
}

/* QDP and QLA have the colour of a fermion before its spin, others the spin before. */
static void turn(struct tensor *t)
{
    for (unsigned i = 1; i < t->dims; i++)
        if (strcmp(t->name[i], "colour") == 0 && strcmp(t->name[i - 1], "spin") == 0) {
            uint64_t extent = t->extent[i];
            t->name[i] = "spin";
            t->name[i - 1] = "colour";
            t->extent[i] = t->extent[i - 1];
            t->extent[i - 1] = extent;
        }
}

/* "QDP_F3_ColorMatrix", "QUDA_DNc3_GaugeField", "GRID_D_LorentzVector4_ColourMatrix3". */
static bool of_qio(const char *name, struct tensor *t)
{
    const char *at = strchr(name, '_'), *precision = at ? at + 1 : "";
    uint64_t colours = colours_of(precision);
    bool known = false;
    *t = (struct tensor){.complex = true};
    for (at = strchr(precision, '_'); at; at = strchr(at, '_')) {
        size_t len = strcspn(++at, "_0123456789");
        const char *dims = dims_of(at, len), *digits = at + len;
        if (!dims || !add_dims(t, dims, colours, take_number(&digits)))
            return false;
        if (strncmp(at, "Real", len) == 0)
            t->complex = false;
        known = true;
    }
    if (strncmp(name, "QDP_", 4) == 0 || strncmp(name, "QLA_", 4) == 0)
        turn(t);
    return known;
}

/* Complex numbers of a site that tmLQCD or cvc has written. */
static bool of_etmc(const struct limefile_field *f, uint64_t values, struct tensor *t)
{
    *t = (struct tensor){.complex = true};
    if (values == SPINS * COLOURS && f->kind != LIMEFILE_KIND_SCIDAC)
        return tensor_add(t, SPINS, "spin") && tensor_add(t, COLOURS, "colour");
    return tensor_add(t, values, "component");
}

/* The cvc formats stand with scidac-binary-data; an ildg-format of something else does not say
 * what its numbers are. */
static bool is_of_etmc(const struct limefile_field *f)
{
    return f->by_format &&
           (f->kind == LIMEFILE_KIND_PROPAGATOR || f->kind == LIMEFILE_KIND_SOURCE ||
            (f->kind == LIMEFILE_KIND_SCIDAC &&
             strcmp(f->record.type, "scidac-binary-data") == 0));
}

/* ---- one site ---- */

/* Several data make one dimension more, before the others. */
static bool fill(struct tensor *t, uint64_t values)
{
    uint64_t size = tensor_size(t);
    if (size == 0 || values % size != 0 || (values != size && t->dims == SITE_DIMS))
        return false;
    if (values == size)
        return true;
    memmove(t->extent + 1, t->extent, t->dims * sizeof *t->extent);
    memmove(t->name + 1, t->name, t->dims * sizeof *t->name);
    t->extent[0] = values / size;
    t->name[0] = "datum";
    t->dims++;
    return true;
}

/* *precision: 0 if they are bytes. */
static void site_of(const struct limefile_field *f, struct tensor *t, unsigned *precision)
{
    unsigned size = f->precision / 8;
    *precision = 0;
    if ((f->precision == 32 || f->precision == 64) && f->site_bytes % size == 0) {
        uint64_t reals = f->site_bytes / size;
        bool pairs = reals % 2 == 0;
        *precision = f->precision;
        if (pairs && of_gauge(f->name, reals / 2, t))
            return;
        if (pairs && is_of_etmc(f) && of_etmc(f, reals / 2, t))
            return;
        if (of_qio(f->name, t) && (pairs || !t->complex) &&
            fill(t, t->complex ? reals / 2 : reals))
            return;
        *t = (struct tensor){0};
        tensor_add(t, reals, "component");
        return;
    }
    *t = (struct tensor){0};
    tensor_add(t, f->site_bytes, "byte");
}

/* ---- the lattice ---- */

static const char *lattice_name(unsigned dims, unsigned i)
{
    static const char *const four[] = {"x", "y", "z", "t"};
    static const char *const five[] = {"s", "x", "y", "z", "t"}; /* Grid's */
    static const char *const any[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    return dims == 4 ? four[i] : dims == 5 ? five[i] : any[i];
}

/* False if it has no dimensions that make up the sites. */
static bool add_lattice(const struct limefile_field *f, struct face_layout *out)
{
    uint64_t sites = 1;
    unsigned dims = f->lattice.dims;
    if (dims == 0 || dims > LIMEFILE_DIMS_MAX || f->halved)
        return false;
    for (unsigned i = 0; i < dims; i++) {
        unsigned d = dims - 1 - i;
        uint64_t extent = f->boxed ? f->upper[d] - f->lower[d] + 1 : f->lattice.extent[d];
        if (extent == 0 || __builtin_mul_overflow(sites, extent, &sites))
            return false;
        out->array.shape[i] = extent;
        out->name[i] = lattice_name(dims, d);
        out->origin ^= f->boxed ? f->lower[d] & 1 : 0;
    }
    out->array.dims = out->array.lattice = dims;
    return sites == f->sites;
}

int face_layout_of(const struct limefile_field *f, struct face_layout *out)
{
    uint64_t bytes;
    struct tensor site;
    if (f->sites == 0 || f->site_bytes == 0 ||
        __builtin_mul_overflow(f->sites, f->site_bytes, &bytes) || bytes != f->record.bytes ||
        bytes > LIMEFILE_BYTES_MAX)
        return LIMEFILE_E_STATE;
    *out = (struct face_layout){.origin = 0};
    if (f->kind == LIMEFILE_KIND_GLOBAL && f->sites == 1) {
        out->array.lattice = 0;
    } else if (!add_lattice(f, out)) {
        *out = (struct face_layout){.array = {.dims = 1, .lattice = 1}};
        out->array.shape[0] = f->sites;
        out->name[0] = "site";
    }
    site_of(f, &site, &out->array.precision);
    for (unsigned i = 0; i < site.dims; i++) {
        out->name[out->array.dims] = site.name[i];
        out->array.shape[out->array.dims++] = site.extent[i];
    }
    if (out->array.dims == 0) {
        out->name[0] = "component";
        out->array.shape[out->array.dims++] = 1;
    }
    out->array.complex = site.complex && out->array.precision != 0;
    out->array.bytes = bytes;
    return 0;
}

int limefile_array_of(const struct limefile_field *f, struct limefile_array *out)
{
    struct face_layout layout;
    int err = face_layout_of(f, &layout);
    if (!err)
        *out = layout.array;
    return err;
}

/* ---- elements ---- */

void face_layout_dtype(const struct limefile_array *a, unsigned precision, bool little,
                       char out[FACE_DTYPE_MAX])
{
    if (precision == 0)
        snprintf(out, FACE_DTYPE_MAX, "|u1");
    else
        snprintf(out, FACE_DTYPE_MAX, "%c%c%u", little ? '<' : '>', a->complex ? 'c' : 'f',
                 (a->complex ? 2 : 1) * precision / 8 % 100);
}
