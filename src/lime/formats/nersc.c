/* nersc.c - NERSC archive files: a header of text lines before the data */
#include "gauge.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    HEADER_MAX = 65536,   /* bytes; usual headers have less than 2000 */
    WRITTEN_MAX = 4096,   /* bytes of a header that is written */
    READ_BYTES = 1 << 20, /* bytes read at a time */
    SAMPLE_SITES = 16,    /* sites examined to find the byte order */
};

enum key {
    K_DATATYPE,
    K_DIMENSION_1,
    K_DIMENSION_2,
    K_DIMENSION_3,
    K_DIMENSION_4,
    K_LINK_TRACE,
    K_PLAQUETTE,
    K_CHECKSUM,
    K_ENSEMBLE_ID,
    K_ENSEMBLE_LABEL,
    K_SEQUENCE_NUMBER,
    K_CREATION_DATE,
    K_FLOATING_POINT,
    K_COUNT,
};

static const char *const keys[K_COUNT] = {
    "DATATYPE",        "DIMENSION_1",   "DIMENSION_2",    "DIMENSION_3", "DIMENSION_4",
    "LINK_TRACE",      "PLAQUETTE",     "CHECKSUM",       "ENSEMBLE_ID", "ENSEMBLE_LABEL",
    "SEQUENCE_NUMBER", "CREATION_DATE", "FLOATING_POINT",
};

struct values {
    char value[K_COUNT][LIMEFILE_GAUGE_WORD_MAX];
    bool present[K_COUNT];
};

/* ---- lines ---- */

static void trim_space(const char **text, size_t *n)
{
    while (*n && isspace((unsigned char)**text))
        (*text)++, (*n)--;
    while (*n && isspace((unsigned char)(*text)[*n - 1]))
        (*n)--;
}

/* Ignores unknown keys. A known key may occur once, and the length of its value is limited. */
static int parse_pair(const struct limefile_gauge *g, struct values *v, const char *line,
                      size_t n)
{
    const char *sign = memchr(line, '=', n), *name = line;
    trim_space(&line, &n);
    if (n == 0)
        return 0;
    if (!sign || memchr(line, '\0', n))
        return LIMEFILE_E_GAUGE_HEADER;
    size_t name_len = (size_t)(sign - name), len = (size_t)(line + n - sign) - 1;
    const char *value = sign + 1;
    trim_space(&name, &name_len);
    trim_space(&value, &len);
    for (int k = 0; k < K_COUNT; k++) {
        if (strlen(keys[k]) != name_len || memcmp(keys[k], name, name_len) != 0)
            continue;
        if (v->present[k])
            return gauge_fail(g, LIMEFILE_E_GAUGE_VALUE, "the header contains %s twice",
                              keys[k]);
        if (len >= LIMEFILE_GAUGE_WORD_MAX)
            return gauge_fail(g, LIMEFILE_E_GAUGE_VALUE, "%s has more than %d characters",
                              keys[k], LIMEFILE_GAUGE_WORD_MAX - 1);
        memcpy(v->value[k], value, len);
        v->present[k] = len > 0;
    }
    return 0;
}

/* Parses the lines from BEGIN_HEADER to END_HEADER. *end: offset of the data's first byte. */
static int parse_keys(const struct limefile_gauge *g, struct values *v, const char *text,
                      size_t n, size_t *end)
{
    static const char last[] = "END_HEADER";
    for (size_t at = 0, number = 0;; number++) {
        const char *line = text + at, *newline = memchr(line, '\n', n - at);
        if (!newline)
            return LIMEFILE_E_GAUGE_HEADER;
        size_t len = (size_t)(newline - line);
        at += len + 1;
        trim_space(&line, &len);
        if (len == sizeof last - 1 && memcmp(line, last, len) == 0) {
            *end = at;
            return 0;
        }
        int err = number      ? parse_pair(g, v, line, len)
                  : len == 12 ? 0
                              : LIMEFILE_E_GAUGE_HEADER;
        if (err)
            return err;
    }
}

/* ---- values ---- */

static bool parse_integer(const char *text, int base, uint64_t max, uint64_t *out)
{
    char *end;
    errno = 0;
    /* strtoull() would accept a sign and spaces. */
    if (!isxdigit((unsigned char)*text))
        return false;
    unsigned long long value = strtoull(text, &end, base);
    *out = value;
    return errno == 0 && *end == '\0' && value <= max;
}

static bool parse_real(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out);
}

/* Returns LIMEFILE_E_GAUGE_VALUE: the value is missing or not valid. `expected` completes the
 * message "KEY = VALUE: expected". */
static int fail_key(const struct limefile_gauge *g, const struct values *v, enum key k,
                    const char *expected)
{
    if (!v->present[k])
        return gauge_fail(g, LIMEFILE_E_GAUGE_VALUE, "the header has no %s", keys[k]);
    return gauge_fail(g, LIMEFILE_E_GAUGE_VALUE, "%s = %s: %s", keys[k], v->value[k], expected);
}

static int parse_nersc_lattice(struct limefile_gauge *g, const struct values *v)
{
    for (enum key k = K_DIMENSION_1; k <= K_DIMENSION_4; k++) {
        uint64_t *extent = &g->sites.extent[k - K_DIMENSION_1];
        if (!v->present[k] || !parse_integer(v->value[k], 10, INT64_MAX, extent))
            return fail_key(g, v, k, "not a number of sites");
    }
    if (gauge_count_sites(g->sites.extent))
        return 0;
    return gauge_fail(g, LIMEFILE_E_GAUGE_LATTICE,
                      "DIMENSION_1 to DIMENSION_4 = %s %s %s %s: not a valid lattice",
                      v->value[K_DIMENSION_1], v->value[K_DIMENSION_2], v->value[K_DIMENSION_3],
                      v->value[K_DIMENSION_4]);
}

static int parse_figures(struct limefile_gauge *g, const struct values *v)
{
    uint64_t sum;
    g->has_plaquette = v->present[K_PLAQUETTE];
    g->has_trace = v->present[K_LINK_TRACE];
    g->has_checksum = v->present[K_CHECKSUM];
    if (g->has_plaquette && !parse_real(v->value[K_PLAQUETTE], &g->plaquette))
        return fail_key(g, v, K_PLAQUETTE, "not a number");
    if (g->has_trace && !parse_real(v->value[K_LINK_TRACE], &g->link_trace))
        return fail_key(g, v, K_LINK_TRACE, "not a number");
    if (g->has_checksum && !parse_integer(v->value[K_CHECKSUM], 16, UINT32_MAX, &sum))
        return fail_key(g, v, K_CHECKSUM, "not a hexadecimal number of 32 bits");
    if (g->has_checksum)
        g->sums.nersc = (uint32_t)sum;
    g->has_sequence = parse_integer(v->value[K_SEQUENCE_NUMBER], 10, INT64_MAX, &g->sequence);
    memcpy(g->ensemble_id, v->value[K_ENSEMBLE_ID], sizeof g->ensemble_id);
    memcpy(g->ensemble_label, v->value[K_ENSEMBLE_LABEL], sizeof g->ensemble_label);
    memcpy(g->date, v->value[K_CREATION_DATE], sizeof g->date);
    return 0;
}

/* True for links of another group: "4D_SU2_GAUGE", "4D_SU4_GAUGE_4x4", "4D_U1_GAUGE". */
static bool is_other_group(const char *type)
{
    return strncmp(type, "4D_", 3) == 0 && strstr(type, "_GAUGE") != NULL &&
           strncmp(type, "4D_SU3_", 7) != 0;
}

/* Does what fail_key() does, but returns `code` if the value is present but not supported. */
static int fail_unsupported(const struct limefile_gauge *g, const struct values *v, enum key k,
                            const char *expected, int code)
{
    int err = fail_key(g, v, k, expected);
    return v->present[k] ? code : err;
}

/* *no_order: FLOATING_POINT does not state the byte order, and programs differ in it. */
static int parse_form(const struct limefile_gauge *g, struct links_form *form,
                      const struct values *v, bool *no_order)
{
    static const char other[] = "not SU(3); lime reads 4D_SU3_GAUGE and 4D_SU3_GAUGE_3x3";
    static const char unknown[] = "unknown; lime reads 4D_SU3_GAUGE and 4D_SU3_GAUGE_3x3";
    static const char numbers[] =
        "unknown; lime reads IEEE32 and IEEE64, with or without BIG, LITTLE or SMALL";
    const char *type = v->value[K_DATATYPE], *number = v->value[K_FLOATING_POINT];
    form->rows = strcmp(type, "4D_SU3_GAUGE_3x3") == 0 ? 3 : 2;
    if (form->rows == 2 && strcmp(type, "4D_SU3_GAUGE") != 0)
        return fail_unsupported(g, v, K_DATATYPE, is_other_group(type) ? other : unknown,
                                LIMEFILE_E_GAUGE_NONE);
    number = v->present[K_FLOATING_POINT] ? number : "IEEE32BIG";
    form->precision = strncmp(number, "IEEE64", 6) == 0 ? 64 : 32;
    if (form->precision == 32 && strncmp(number, "IEEE32", 6) != 0)
        return fail_unsupported(g, v, K_FLOATING_POINT, numbers, LIMEFILE_E_GAUGE_FORM);
    number += 6;
    *no_order = *number == '\0';
    form->little = strcmp(number, "LITTLE") == 0 || strcmp(number, "SMALL") == 0;
    bool known = *no_order || form->little || strcmp(number, "BIG") == 0;
    return known ? 0 : fail_unsupported(g, v, K_FLOATING_POINT, numbers, LIMEFILE_E_GAUGE_FORM);
}

/* ---- byte order that the header does not state ---- */

/* Returns true if all links of `count` sites, as they were read, are unitary. */
static bool is_unitary(const unsigned char *sites, unsigned precision, uint64_t count)
{
    double link[LIMEFILE_LINK_REALS], unitarity, determinant;
    for (uint64_t i = 0; i < 4 * count; i++) {
        links_reals(sites + i * LIMEFILE_LINK_REALS * (precision / 8), precision, link);
        if (limefile_physics_measure_link(link, &unitarity, &determinant) >= 0 ||
            unitarity > 0.01 || determinant > 0.01)
            return false;
    }
    return true;
}

/* Finds the byte order with which the data have the header's checksum. */
static int find_order_by_sum(struct limefile_gauge *g)
{
    unsigned char *raw = malloc(READ_BYTES);
    uint32_t big = 0, little = 0;
    int err = !g->has_checksum ? LIMEFILE_E_GAUGE_ORDER : raw ? 0 : -ENOMEM;
    for (uint64_t at = 0, n; !err && at < g->data_bytes; at += n) {
        n = g->data_bytes - at < READ_BYTES ? g->data_bytes - at : READ_BYTES;
        err = limefile_read_exact(g->priv->source, raw, (size_t)n, g->data_offset + at);
        if (!err) {
            big += links_sum(raw, (size_t)n / 4, false);
            little += links_sum(raw, (size_t)n / 4, true);
        }
    }
    free(raw);
    g->priv->form.little = little == g->sums.nersc;
    return err || little == g->sums.nersc || big == g->sums.nersc ? err
                                                                  : LIMEFILE_E_GAUGE_ORDER;
}

static int find_byte_order(struct limefile_gauge *g)
{
    unsigned char sites[SAMPLE_SITES * 576];
    uint64_t count = limefile_sites_count(&g->sites);
    bool fits[2];
    count = count < SAMPLE_SITES ? count : SAMPLE_SITES;
    for (int i = 0; i < 2; i++) {
        g->priv->form.little = i == 1;
        int err = gauge_read_plain(g, 0, count, sites);
        if (err)
            return err;
        fits[i] = is_unitary(sites, g->sites.precision, count);
    }
    if (fits[0] == fits[1])
        return g->priv->depth == GAUGE_ALL ? find_order_by_sum(g) : LIMEFILE_E_GAUGE_ORDER;
    g->priv->form.little = fits[1];
    return 0;
}

/* ---- the file ---- */

static int copy_header_text(struct limefile_gauge *g, const char *text, size_t n)
{
    g->text = malloc(n + 1);
    if (!g->text)
        return -ENOMEM;
    memcpy(g->text, text, n);
    g->text[n] = '\0';
    return 0;
}

static int parse_header(struct limefile_gauge *g, const char *text, size_t n, bool *no_order)
{
    struct values v = {0};
    struct links_form *form = &g->priv->form;
    size_t end;
    int err = parse_keys(g, &v, text, n, &end);
    if (!err)
        err = parse_nersc_lattice(g, &v);
    if (!err)
        err = parse_form(g, form, &v, no_order);
    if (!err)
        err = parse_figures(g, &v);
    if (err)
        return err;
    g->data_offset = end;
    g->data_bytes = gauge_data_bytes(g->sites.extent, form);
    return g->data_bytes ? copy_header_text(g, text, end) : LIMEFILE_E_GAUGE_LATTICE;
}

static bool matches_nersc(const unsigned char *head, size_t n, uint64_t size)
{
    static const char begin[] = "BEGIN_HEADER";
    (void)size;
    return n >= sizeof begin - 1 && memcmp(head, begin, sizeof begin - 1) == 0;
}

static int open_nersc(struct limefile_gauge *g, const unsigned char *head, uint64_t size)
{
    (void)head;
    bool no_order = false;
    char *text = malloc(HEADER_MAX);
    if (!text)
        return -ENOMEM;
    ssize_t n = limefile_read_full(g->priv->source, text, HEADER_MAX, 0);
    int err = n < 0 ? (int)n : parse_header(g, text, (size_t)n, &no_order);
    free(text);
    if (!err)
        err = gauge_check_size(g, size);
    if (err)
        return err;
    g->format = LIMEFILE_GAUGE_NERSC;
    g->rows = g->priv->form.rows;
    g->sites.precision = g->priv->form.precision;
    g->sites.read = gauge_read_plain;
    g->sites.context = g;
    err = no_order ? find_byte_order(g) : 0;
    g->little = g->priv->form.little;
    return err;
}

/* ---- writing ---- */

/* Always writes 18 characters, because the header's length must not depend on the values. */
static void format_real(char out[24], double value)
{
    char wide[64];
    snprintf(wide, sizeof wide, "%.17f", value);
    snprintf(out, 24, "%.18s", wide);
}

static const char *value_or(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static int make_nersc_header(struct limefile_gauge_image *image,
                             const struct limefile_gauge_totals *totals)
{
    static const struct limefile_gauge_totals none;
    const struct limefile_gauge_options *options = &image->options;
    const uint64_t *l = image->sites.extent;
    char text[WRITTEN_MAX], trace[24], plaquette[24];
    const char *date = value_or(options->date, "unknown");
    totals = totals ? totals : &none;
    format_real(trace, totals->physics.trace);
    format_real(plaquette, totals->physics.plaquette);
    int n = snprintf(
        text, sizeof text,
        "BEGIN_HEADER\nHDR_VERSION = 1.0\nDATATYPE = 4D_SU3_GAUGE%s\nSTORAGE_FORMAT = 1.0\n"
        "DIMENSION_1 = %llu\nDIMENSION_2 = %llu\nDIMENSION_3 = %llu\nDIMENSION_4 = %llu\n"
        "LINK_TRACE = %s\nPLAQUETTE = %s\nBOUNDARY_1 = PERIODIC\nBOUNDARY_2 = PERIODIC\n"
        "BOUNDARY_3 = PERIODIC\nBOUNDARY_4 = PERIODIC\nCHECKSUM = %08x\nENSEMBLE_ID = %s\n"
        "ENSEMBLE_LABEL = %s\nSEQUENCE_NUMBER = %llu\nCREATOR = %s\n"
        "CREATOR_HARDWARE = unknown\nCREATION_DATE = %s\nARCHIVE_DATE = %s\n"
        "FLOATING_POINT = IEEE%uBIG\nEND_HEADER\n",
        image->form.rows == 3 ? "_3x3" : "", (unsigned long long)l[0], (unsigned long long)l[1],
        (unsigned long long)l[2], (unsigned long long)l[3], trace, plaquette,
        totals->image.nersc, value_or(options->ensemble_id, "unknown"),
        value_or(options->ensemble_label, "unknown"), (unsigned long long)options->sequence,
        value_or(options->creator, "limefs"), date, date, image->form.precision);
    unsigned char *header = gauge_make_header(image, (size_t)n);
    if (!header)
        return -ENOMEM;
    memcpy(header, text, (size_t)n);
    return 0;
}

const struct gauge_format gauge_nersc = {
    .name = "nersc",
    .matches = matches_nersc,
    .open = open_nersc,
    .make_header = make_nersc_header,
    .rows_min = 2,
    .extent_max = UINT64_MAX,
};
