/* ildgxml.c - parse the XML of one metadata record: ILDG, ETMC and SciDAC (QIO) */
#define _GNU_SOURCE
#include "limeildg.h"
#include "xmlread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- values; the texts are already trimmed ---- */

/* Parses digits, perhaps after a '+', and moves *text behind them. False: no digit, or
 * overflow. */
static bool parse_digits(const char **text, uint64_t *out)
{
    const char *p = *text;
    uint64_t value = 0;
    if (*p == '+')
        p++;
    const char *digits = p;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    *out = value;
    *text = p;
    return p > digits;
}

/* Returns true if the value was found and is a number in [least, most]. */
static bool parse_count(const struct xmlread_value *value, uint64_t least, uint64_t most,
                        uint64_t *out)
{
    const char *text = value->text;
    return value->found && !value->bad && parse_digits(&text, out) && *text == '\0' &&
           *out >= least && *out <= most;
}

/* Reads an optional number in [least, most] into *out. Without a valid number, *out does not
 * change; if the element exists and *ignored is NULL, *ignored becomes the element's name. */
static void parse_optional(const struct xmlread_value *value, uint64_t least, uint64_t most,
                           uint64_t *out, const char **ignored)
{
    uint64_t read;
    if (parse_count(value, least, most, &read))
        *out = read;
    else if (value->found && !*ignored)
        *ignored = value->name;
}

/* Parses numbers like "4 4 4 8 ", also with commas. Returns their count; 0 if invalid. */
static unsigned parse_numbers(const struct xmlread_value *value, uint64_t least,
                              uint64_t out[LIMEFILE_DIMS_MAX])
{
    const char *text = value->text;
    unsigned n = 0;
    if (!value->found || value->bad)
        return 0;
    while (*text) {
        if (n == LIMEFILE_DIMS_MAX || !parse_digits(&text, &out[n]) || out[n] < least)
            return 0;
        n++;
        size_t gap = strspn(text, " ,");
        if (gap == 0 && *text)
            return 0;
        text += gap;
    }
    return n;
}

/* Copies the text, or its first cap - 1 bytes without a character that is cut there (UTF-8). */
static void copy_word(const struct xmlread_value *value, char *out, size_t cap)
{
    size_t n = strnlen(value->text, cap - 1);
    while (n && n == cap - 1 && ((unsigned char)value->text[n] & 0xc0) == 0x80)
        n--;
    memcpy(out, value->text, n);
    out[n] = '\0';
}

/* Returns 32, 64, or 0 if unknown. */
static unsigned parse_precision(const struct xmlread_value *value)
{
    static const struct {
        const char *word;
        unsigned bits;
    } words[] = {
        {"32", 32},      {"f", 32},         {"single", 32},    {"float", 32},
        {"float32", 32}, {"ieee32big", 32}, {"64", 64},        {"d", 64},
        {"double", 64},  {"float64", 64},   {"ieee64big", 64},
    };
    for (size_t i = 0; value->found && !value->bad && i < COUNT(words); i++)
        if (strcasecmp(value->text, words[i].word) == 0)
            return words[i].bits;
    return 0;
}

static bool parse_hex(const struct xmlread_value *value, uint32_t *out)
{
    const char *text = value->text;
    uint32_t sum = 0;
    if (!value->found || value->bad)
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    if (*text == '\0')
        return false;
    for (; *text; text++) {
        const char *digit = strchr("0123456789abcdef", *text | 0x20);
        if (!digit || sum >> 28)
            return false;
        sum = sum << 4 | (uint32_t)(digit - "0123456789abcdef");
    }
    *out = sum;
    return true;
}

/* ---- lattices ---- */

uint64_t limefile_lattice_sites(const struct limefile_lattice *lattice)
{
    uint64_t sites = lattice->dims ? 1 : 0;
    for (unsigned i = 0; i < lattice->dims; i++)
        if (__builtin_mul_overflow(sites, lattice->extent[i], &sites))
            return 0;
    return sites;
}

static bool lattice_is_valid(const struct limefile_lattice *lattice)
{
    uint64_t sites = limefile_lattice_sites(lattice);
    return sites > 0 && sites <= INT64_MAX;
}

/* ---- ILDG and ETMC ---- */

/* Reads lx, ly, lz and lt or, if all four are missing, dims (written by SIMULATeQCD). */
static bool parse_extents(const struct xmlread_value *v, struct limefile_lattice *out)
{
    bool is_valid = true;
    out->dims = 4;
    if (v[4].found && !v[0].found && !v[1].found && !v[2].found && !v[3].found)
        return parse_numbers(&v[4], 1, out->extent) == 4;
    for (unsigned i = 0; i < 4; i++)
        is_valid = is_valid && parse_count(&v[i], 1, INT64_MAX, &out->extent[i]);
    return is_valid;
}

static int parse_ildg_values(const struct xmlread_value *v, struct limefile_ildg *out)
{
    uint64_t flavours = 1;
    copy_word(&v[0], out->version, sizeof out->version);
    copy_word(&v[1], out->field, sizeof out->field);
    out->precision = parse_precision(&v[2]);
    parse_optional(&v[3], 1, 1000, &flavours, &out->ignored);
    out->flavours = (unsigned)flavours;
    if (!parse_extents(&v[4], &out->lattice))
        return LIMEFILE_E_XML_VALUE;
    bool valid =
        out->field[0] && !v[1].bad && out->precision && lattice_is_valid(&out->lattice);
    return valid ? 0 : LIMEFILE_E_XML_VALUE;
}

int limefile_ildg_parse(const void *xml, size_t n, struct limefile_ildg *out)
{
    struct xmlread_value v[] = {
        {.name = "version"},  {.name = "field"}, {.name = "precision"},
        {.name = "flavours"}, {.name = "lx"},    {.name = "ly"},
        {.name = "lz"},       {.name = "lt"},    {.name = "dims"},
    };
    static const char *const elements[] = {"ildgFormat", "etmcFormat", "etmcSourceFormat",
                                           NULL};
    struct limefile_ildg ildg = {.precision = 0};
    int err = xmlread_values(xml, n, elements, v, COUNT(v));
    if (!err)
        err = parse_ildg_values(v, &ildg);
    if (!err)
        *out = ildg;
    return err;
}

/* ---- cvc ---- */

int limefile_cvc_parse(const void *xml, size_t n, struct limefile_ildg *out)
{
    struct xmlread_value v[] = {
        {.name = "type"}, {.name = "precision"}, {.name = "components"}, {.name = "lx"},
        {.name = "ly"},   {.name = "lz"},        {.name = "lt"},
    };
    static const char *const elements[] = {"cvcFormat", NULL};
    struct limefile_ildg cvc = {.flavours = 1, .components = 12, .lattice.dims = 4};
    const char *end = n ? memrchr(xml, '>', n) : NULL; /* a date can follow the document */
    int err = xmlread_values(xml, end ? (size_t)(end + 1 - (const char *)xml) : n, elements, v,
                             COUNT(v));
    if (err)
        return err;
    copy_word(&v[0], cvc.field, sizeof cvc.field);
    cvc.precision = parse_precision(&v[1]);
    bool is_valid = cvc.precision != 0;
    if (v[2].found) /* required to be valid: it determines the size of a site */
        is_valid = is_valid && parse_count(&v[2], 1, UINT32_MAX, &cvc.components);
    for (unsigned i = 0; i < 4; i++)
        is_valid = is_valid && parse_count(&v[3 + i], 1, INT64_MAX, &cvc.lattice.extent[i]);
    if (!is_valid || !lattice_is_valid(&cvc.lattice))
        return LIMEFILE_E_XML_VALUE;
    *out = cvc;
    return 0;
}

/* ---- SciDAC ---- */

int limefile_scidac_file_parse(const void *xml, size_t n, struct limefile_scidac_file *out)
{
    struct xmlread_value v[] = {{.name = "spacetime"}, {.name = "dims"}, {.name = "volfmt"}};
    static const char *const elements[] = {"scidacFile", NULL};
    struct limefile_scidac_file file = {.volfmt = 0};
    uint64_t spacetime, volfmt = 0;
    int err = xmlread_values(xml, n, elements, v, COUNT(v));
    if (err)
        return err;
    file.lattice.dims = parse_numbers(&v[1], 1, file.lattice.extent);
    if (!lattice_is_valid(&file.lattice))
        return LIMEFILE_E_XML_VALUE;
    spacetime = file.lattice.dims;
    parse_optional(&v[0], 1, UINT32_MAX, &spacetime, &file.ignored);
    parse_optional(&v[2], 0, UINT32_MAX, &volfmt, &file.ignored);
    if (spacetime != file.lattice.dims)
        return LIMEFILE_E_XML_VALUE;
    file.volfmt = (unsigned)volfmt;
    *out = file;
    return 0;
}

/* Subscripts of the values of a scidacRecord. */
enum {
    V_RECORDTYPE,
    V_GLOBALDATA, /* in version 1.0, instead of recordtype */
    V_DATATYPE,
    V_DATE,
    V_PRECISION,
    V_COLORS,
    V_SPINS,
    V_TYPESIZE,
    V_DATACOUNT,
    V_SPACETIME,
    V_LOWER,
    V_UPPER,
    V_COUNT
};

static bool parse_box(const struct xmlread_value *v, struct limefile_scidac_record *out)
{
    uint64_t spacetime, sites = 1;
    out->box_dims = parse_numbers(&v[V_LOWER], 0, out->lower);
    if (out->box_dims == 0 || parse_numbers(&v[V_UPPER], 0, out->upper) != out->box_dims)
        return false;
    for (unsigned i = 0; i < out->box_dims; i++)
        if (out->upper[i] < out->lower[i] || out->upper[i] > INT64_MAX ||
            __builtin_mul_overflow(sites, out->upper[i] - out->lower[i] + 1, &sites) ||
            sites > INT64_MAX)
            return false;
    spacetime = out->box_dims;
    parse_optional(&v[V_SPACETIME], 1, UINT32_MAX, &spacetime, &out->ignored);
    return spacetime == out->box_dims;
}

static int parse_record(const struct xmlread_value *v, struct limefile_scidac_record *out)
{
    uint64_t type = 0, colors = 0, spins = 0, site;
    const struct xmlread_value *kind = &v[v[V_RECORDTYPE].found ? V_RECORDTYPE : V_GLOBALDATA];
    parse_optional(kind, 0, UINT64_MAX, &type, &out->ignored);
    if (type > (kind == &v[V_RECORDTYPE] ? LIMEFILE_HYPERCUBE : LIMEFILE_GLOBAL))
        return LIMEFILE_E_XML_VALUE; /* unknown kind of record */
    out->recordtype = (enum limefile_recordtype)type;
    copy_word(&v[V_DATATYPE], out->datatype, sizeof out->datatype);
    copy_word(&v[V_DATE], out->date, sizeof out->date);
    out->precision = parse_precision(&v[V_PRECISION]);
    if (!parse_count(&v[V_TYPESIZE], 1, INT64_MAX, &out->typesize) ||
        !parse_count(&v[V_DATACOUNT], 1, INT64_MAX, &out->datacount) ||
        __builtin_mul_overflow(out->typesize, out->datacount, &site) || site > INT64_MAX)
        return LIMEFILE_E_XML_VALUE;
    parse_optional(&v[V_COLORS], 0, UINT32_MAX, &colors, &out->ignored);
    parse_optional(&v[V_SPINS], 0, UINT32_MAX, &spins, &out->ignored);
    out->colors = (unsigned)colors;
    out->spins = (unsigned)spins;
    if (out->recordtype == LIMEFILE_HYPERCUBE && !parse_box(v, out))
        return LIMEFILE_E_XML_VALUE;
    return 0;
}

int limefile_scidac_record_parse(const void *xml, size_t n, struct limefile_scidac_record *out)
{
    struct xmlread_value v[V_COUNT] = {
        [V_RECORDTYPE] = {.name = "recordtype"}, [V_GLOBALDATA] = {.name = "globaldata"},
        [V_DATATYPE] = {.name = "datatype"},     [V_DATE] = {.name = "date"},
        [V_PRECISION] = {.name = "precision"},   [V_COLORS] = {.name = "colors"},
        [V_SPINS] = {.name = "spins"},           [V_TYPESIZE] = {.name = "typesize"},
        [V_DATACOUNT] = {.name = "datacount"},   [V_SPACETIME] = {.name = "spacetime"},
        [V_LOWER] = {.name = "hyperlower"},      [V_UPPER] = {.name = "hyperupper"},
    };
    static const char *const elements[] = {"scidacRecord", NULL};
    struct limefile_scidac_record record = {.recordtype = LIMEFILE_FIELD};
    int err = xmlread_values(xml, n, elements, v, COUNT(v));
    if (!err)
        err = parse_record(v, &record);
    if (!err)
        *out = record;
    return err;
}

/* ---- Grid ---- */

int limefile_grid_parse(const void *xml, size_t n, struct limefile_lattice *out)
{
    struct xmlread_value v[] = {{.name = "dimension"}}; /* contains a list of elements */
    static const char *const elements[] = {"FieldMetaData", NULL};
    struct limefile_lattice lattice;
    int err = xmlread_values(xml, n, elements, v, COUNT(v));
    if (err)
        return err;
    lattice.dims = parse_numbers(&v[0], 1, lattice.extent);
    if (!lattice_is_valid(&lattice))
        return LIMEFILE_E_XML_VALUE;
    *out = lattice;
    return 0;
}

/* ---- checksums ---- */

int limefile_checksum_parse(const void *xml, size_t n, struct limefile_checksum *out)
{
    struct xmlread_value v[] = {{.name = "suma"}, {.name = "sumb"}};
    static const char *const elements[] = {"scidacChecksum", NULL};
    struct limefile_checksum sum = {0};
    int err = xmlread_values(xml, n, elements, v, COUNT(v));
    if (!err && !(parse_hex(&v[0], &sum.suma) && parse_hex(&v[1], &sum.sumb)))
        err = LIMEFILE_E_XML_VALUE;
    if (!err)
        *out = sum;
    return err;
}

size_t limefile_checksum_xml(const struct limefile_checksum *sum,
                             char out[LIMEFILE_CHECKSUM_XML_MAX])
{
    return (size_t)snprintf(out, LIMEFILE_CHECKSUM_XML_MAX,
                            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacChecksum>"
                            "<version>1.0</version><suma>%x</suma><sumb>%x</sumb>"
                            "</scidacChecksum>",
                            (unsigned)sum->suma, (unsigned)sum->sumb);
}

/* ---- logical file names ---- */

static bool is_lfn_space(char c)
{
    return c == '\0' || c == ' ' || (c >= '\t' && c <= '\r');
}

int limefile_lfn_parse(const void *data, size_t n, char out[LIMEFILE_LFN_MAX])
{
    const char *text = data;
    while (n && is_lfn_space(text[n - 1]))
        n--;
    while (n && is_lfn_space(*text))
        text++, n--;
    if (n == 0 || n >= LIMEFILE_LFN_MAX)
        return LIMEFILE_E_XML_VALUE;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return LIMEFILE_E_XML_VALUE;
    memcpy(out, text, n);
    out[n] = '\0';
    return 0;
}

int limefile_record_lfn(struct limefile_source *source, const struct limefile_record *record,
                        char lfn[LIMEFILE_LFN_MAX])
{
    char *text;
    size_t n = (size_t)record->bytes;
    if (record->bytes > LIMEFILE_XML_BYTES_MAX)
        return 0;
    int err = limefile_record_read_text(source, record, n, &text);
    int result = err ? err : limefile_lfn_parse(text, n, lfn) == 0;
    free(text);
    return result;
}
