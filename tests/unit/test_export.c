/* test_export.c - export formats: arrays, every range of a .npy file, hostile metadata */
#include "unit.h"

#include "limeexport.h"

#include <inttypes.h>
#include <math.h>

/* ---- fields made by hand ---- */

static struct limefile_field field_of(enum limefile_fieldkind kind, const char *name,
                                      unsigned precision, uint64_t site_bytes, unsigned dims,
                                      const uint64_t *extent)
{
    struct limefile_field f = {.kind = kind, .precision = precision, .site_bytes = site_bytes};
    f.record.type = kind == LIMEFILE_KIND_GAUGE ? "ildg-binary-data" : "scidac-binary-data";
    f.record.type_len = (uint8_t)strlen(f.record.type);
    f.record.ordinal = 7;
    snprintf(f.name, sizeof f.name, "%s", name);
    f.lattice.dims = dims;
    f.sites = 1;
    for (unsigned i = 0; i < dims; i++) {
        f.lattice.extent[i] = extent[i];
        f.sites *= extent[i];
    }
    f.record.bytes = f.expected = f.sites * site_bytes;
    f.format_ordinal = kind == LIMEFILE_KIND_GAUGE || kind == LIMEFILE_KIND_PROPAGATOR ? 5 : 0;
    return f;
}

static const uint64_t box_2345[] = {2, 3, 4, 5};

static void assert_array(const struct limefile_field *f, unsigned lattice, unsigned precision,
                         bool complex, unsigned dims, const uint64_t *shape)
{
    struct limefile_array a;
    assert_int_equal(limefile_array_from_field(f, &a), 0);
    assert_int_equal(a.lattice, lattice);
    assert_int_equal(a.precision, precision);
    assert_int_equal(a.complex, complex);
    assert_int_equal(a.dims, dims);
    for (unsigned i = 0; i < dims; i++)
        assert_int_equal(a.shape[i], shape[i]);
    assert_int_equal(a.bytes, f->record.bytes);
}

TEST(test_arrays_without_a_lattice)
{
    struct limefile_array a;
    struct limefile_field f = field_of(LIMEFILE_KIND_GLOBAL, "QLA_F_Real", 32, 12, 0, NULL);
    assert_array(&f, 0, 32, false, 1, (uint64_t[]){3});
    f = field_of(LIMEFILE_KIND_GLOBAL, "QLA_F_Real", 32, 4, 0, NULL);
    assert_array(&f, 0, 32, false, 1, (uint64_t[]){1});
    f = field_of(LIMEFILE_KIND_SCIDAC, "QDP_F_Real", 32, 4, 0, NULL);
    f.sites = 10;
    f.record.bytes = 40;
    assert_array(&f, 1, 32, false, 1, (uint64_t[]){10});
    f = field_of(LIMEFILE_KIND_SCIDAC, "QDP_F_Real", 32, 4, 4, box_2345);
    f.is_checkerboard = f.is_box = true;
    f.sites = 60;
    f.record.bytes = 240;
    assert_array(&f, 1, 32, false, 1, (uint64_t[]){60});
    f.is_checkerboard = false; /* a box: x 1, y 0..2, z 1..2, t 0..4 */
    memcpy(f.lower, (uint64_t[]){1, 0, 1, 0}, 4 * sizeof *f.lower);
    memcpy(f.upper, (uint64_t[]){1, 2, 2, 4}, 4 * sizeof *f.upper);
    f.sites = 30;
    f.record.bytes = 120;
    assert_array(&f, 4, 32, false, 4, (uint64_t[]){5, 2, 3, 1});
    f.record.bytes = 121; /* and another length */
    assert_int_equal(limefile_array_from_field(&f, &a), LIMEFILE_E_STATE);
    f = (struct limefile_field){.record = {.bytes = 100, .type = "ildg-binary-data"}};
    assert_int_equal(limefile_array_from_field(&f, &a), LIMEFILE_E_STATE);
}

TEST(test_listed)
{
    struct limefile_field f = field_of(LIMEFILE_KIND_GAUGE, "su3gauge", 64, 576, 4, box_2345);
    struct limefile_array a;
    struct limefile_export_spec name;
    struct limefile_export *export;
    unsigned i, listed = 0;
    assert_int_equal(limefile_array_from_field(&f, &a), 0);
    for (i = 0; limefile_export_get_listed(&a, i, &name); i++) {
        assert_int_equal(limefile_export_open(&f, &name, &export), 0);
        limefile_export_close(export);
        listed++;
    }
    assert_in_range(listed, 8, 9); /* HDF5 may be missing; openQCD needs even extents */
    assert_false(limefile_export_get_listed(&a, UINT32_MAX, &name));
    f = field_of(LIMEFILE_KIND_SCIDAC, "QDP_Int", 0, 4, 1, box_2345); /* bytes, no lattice */
    assert_int_equal(limefile_array_from_field(&f, &a), 0);
    for (i = 0; limefile_export_get_listed(&a, i, &name); i++)
        assert_true(!name.little && !name.even_odd && name.precision == 0 &&
                    name.kind != LIMEFILE_EXPORT_SLICES);
    name = (struct limefile_export_spec){.kind = LIMEFILE_EXPORT_NPY, .little = true};
    assert_int_equal(limefile_export_open(&f, &name, &export), LIMEFILE_E_STATE);
    assert_null(export);
}

/* ---- reading ---- */

/* A record of random bytes. */
struct store {
    unsigned char *at;
    uint64_t bytes;
    int fail;
};

static ssize_t store_read(void *context, void *buf, size_t n, uint64_t offset,
                          const void **data)
{
    struct store *s = context;
    *data = buf;
    if (s->fail)
        return s->fail;
    if (offset >= s->bytes)
        return 0;
    if (n > s->bytes - offset)
        n = (size_t)(s->bytes - offset);
    memcpy(buf, s->at + offset, n);
    return (ssize_t)n;
}

static struct store store_of(const struct limefile_field *f)
{
    struct store s = {.bytes = f->record.bytes};
    uint64_t x = 88172645463325252u;
    s.at = malloc(s.bytes + 1);
    assert_non_null(s.at);
    for (uint64_t i = 0; i < s.bytes; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        s.at[i] = (unsigned char)(x >> 32);
    }
    return s;
}

/* Converts a big-endian number of `from` bytes to `to` bytes, without the library. */
static void number_as(const unsigned char *in, unsigned from, unsigned char *out, unsigned to,
                      bool little)
{
    uint64_t bits = 0;
    uint32_t half;
    double d;
    float f;
    for (unsigned i = 0; i < from; i++)
        bits = bits << 8 | in[i];
    half = (uint32_t)bits;
    memcpy(&d, &bits, sizeof d);
    memcpy(&f, &half, sizeof f);
    if (from < to) {
        d = f;
        memcpy(&bits, &d, sizeof bits);
    } else if (from > to) {
        f = (float)d;
        memcpy(&half, &f, sizeof half);
        bits = half;
    }
    for (unsigned i = 0; i < to; i++)
        out[i] = (unsigned char)(bits >> 8 * (little ? i : to - 1 - i));
}

/* Orders the sites of a lattice by counting coordinates, even sites first. */
static void order_of(const struct limefile_field *f, bool even_odd, uint64_t *order)
{
    uint64_t n = 0;
    for (unsigned parity = 0; parity < 2; parity++)
        for (uint64_t site = 0; site < f->sites; site++) {
            uint64_t rest = site, sum = 0;
            for (unsigned d = 0; d < f->lattice.dims; d++) {
                uint64_t low = f->is_box ? f->lower[d] : 0;
                uint64_t extent = f->is_box ? f->upper[d] - low + 1 : f->lattice.extent[d];
                sum += low + rest % extent;
                rest /= extent;
            }
            if (!even_odd ? parity == 0 : sum % 2 == parity)
                order[n++] = site;
        }
    assert_int_equal(n, f->sites);
}

/* Returns the expected data of a numpy file; *n: their length. */
static unsigned char *expected_of(const struct limefile_field *f, const struct store *s,
                                  const struct limefile_export_spec *spec, size_t *n)
{
    unsigned from = f->precision ? f->precision / 8 : 1;
    unsigned to = spec->precision ? spec->precision / 8 : from;
    uint64_t numbers = f->site_bytes / from, *order = calloc(f->sites, sizeof *order);
    unsigned char *out = malloc(f->sites * numbers * to + 1), *at = out;
    assert_true(order && out);
    order_of(f, spec->even_odd, order);
    for (uint64_t i = 0; i < f->sites; i++)
        for (uint64_t k = 0; k < numbers; k++, at += to)
            number_as(s->at + order[i] * f->site_bytes + k * from, from, at, to, spec->little);
    free(order);
    *n = (size_t)(at - out);
    return out;
}

static size_t header_bytes(const unsigned char *file)
{
    assert_memory_equal(file, "\x93NUMPY\x01\0", 8);
    size_t n = 10 + file[8] + 256u * file[9];
    assert_int_equal(n % 64, 0);
    assert_int_equal(file[n - 1], '\n');
    return n;
}

/* Checks every range of one file of an export; `whole` is the expected content. */
static void assert_ranges(const struct limefile_export *export, uint64_t number,
                          struct store *s, const unsigned char *whole, size_t n)
{
    unsigned char *buf = malloc(n + 3);
    assert_non_null(buf);
    for (size_t offset = 0; offset <= n + 1; offset++)
        for (size_t len = 0; len <= n + 2; len++) {
            size_t want = offset >= n ? 0 : len < n - offset ? len : n - offset;
            memset(buf, 0xee, n + 3);
            ssize_t got = limefile_export_read(export, number, buf, len, offset, store_read, s);
            if (got != (ssize_t)want || memcmp(buf, whole + offset, want) != 0 ||
                buf[want] != 0xee)
                fail_msg("%zu bytes at %zu of %zu: %zd", len, offset, n, got);
        }
    free(buf);
}

static void assert_pieces(const struct limefile_export *export, uint64_t number,
                          const struct store *s, const unsigned char *whole, size_t n)
{
    struct limefile_export_range piece;
    for (size_t at = 0; at < n; at++) {
        limefile_export_range(export, number, at, &piece);
        assert_in_range(piece.bytes, 1, n - at);
        if (piece.source == LIMEFILE_EXPORT_OWN)
            assert_memory_equal(piece.own, whole + at, (size_t)piece.bytes);
        else if (piece.source == LIMEFILE_EXPORT_STORED)
            assert_memory_equal(s->at + piece.at, whole + at, (size_t)piece.bytes);
    }
    limefile_export_range(export, number, n, &piece);
    assert_int_equal(piece.bytes, 0);
    limefile_export_range(export, number, UINT64_MAX, &piece);
    assert_int_equal(piece.bytes, 0);
}

static size_t size_of(const struct limefile_export *export, uint64_t number)
{
    struct limefile_export_entry entry;
    limefile_export_entry(export, number, &entry);
    return (size_t)entry.bytes;
}

static void assert_npy(const struct limefile_field *f, const struct limefile_export_spec *spec,
                       bool all)
{
    struct limefile_export *export;
    struct store s = store_of(f);
    size_t n, data;
    assert_int_equal(limefile_export_open(f, spec, &export), 0);
    assert_int_equal(limefile_export_entry_count(export), 1);
    n = size_of(export, 0);
    unsigned char *whole = malloc(n);
    assert_non_null(whole);
    assert_int_equal(limefile_export_read(export, 0, whole, n, 0, store_read, &s), n);
    unsigned char *expected = expected_of(f, &s, spec, &data);
    assert_int_equal(n, header_bytes(whole) + data);
    assert_memory_equal(whole + n - data, expected, data);
    if (all) {
        assert_ranges(export, 0, &s, whole, n);
        assert_pieces(export, 0, &s, whole, n);
    }
    s.fail = -EIO;
    assert_int_equal(limefile_export_read(export, 0, whole, 1, n - 1, store_read, &s), -EIO);
    s.fail = 0;
    s.bytes--;
    assert_int_equal(limefile_export_read(export, 0, whole, n, 0, store_read, &s),
                     LIMEFILE_E_SHRUNK);
    free(expected);
    free(whole);
    free(s.at);
    limefile_export_close(export);
}

static void assert_all_npy(const struct limefile_field *f, bool all)
{
    for (unsigned i = 0; i < 12; i++) {
        struct limefile_export_spec name = {.kind = LIMEFILE_EXPORT_NPY,
                                            .even_odd = i % 2,
                                            .little = i / 2 % 2,
                                            .precision = i / 4 * 32};
        if (f->precision == 0 && (name.little || name.precision))
            continue;
        assert_npy(f, &name, all);
    }
}

TEST(test_every_range)
{
    static const struct {
        unsigned precision;
        uint64_t site_bytes, extent[4];
        unsigned dims;
    } fields[] = {
        {32, 8, {2, 2, 2, 2}, 4}, {64, 16, {3, 1, 3}, 3}, {64, 8, {2, 3}, 2},
        {0, 3, {3, 2, 2}, 3},     {32, 4, {1, 1}, 2},
    };
    for (size_t i = 0; i < COUNT(fields); i++) {
        struct limefile_field f =
            field_of(LIMEFILE_KIND_SCIDAC, "Lattice", fields[i].precision, fields[i].site_bytes,
                     fields[i].dims, fields[i].extent);
        assert_all_npy(&f, true);
    }
}

/* Sites that are larger than the buffer, fill it, or almost fill it. */
TEST(test_large_sites)
{
    for (uint64_t site = 32768 - 8; site <= 32768 + 8; site += 8) {
        struct limefile_field f =
            field_of(LIMEFILE_KIND_SCIDAC, "Lattice", 64, site, 2, (uint64_t[]){3, 2});
        assert_all_npy(&f, false);
    }
    struct limefile_field f =
        field_of(LIMEFILE_KIND_SCIDAC, "Lattice", 32, 200004, 2, (uint64_t[]){3, 3});
    assert_all_npy(&f, false);
    f = field_of(LIMEFILE_KIND_SCIDAC, "Lattice", 64, 24, 4, (uint64_t[]){12, 7, 9, 11});
    assert_all_npy(&f, false);
    f = field_of(LIMEFILE_KIND_GAUGE, "su3gauge", 64, 576, 4, (uint64_t[]){4, 4, 4, 8});
    assert_all_npy(&f, false);
}

/* All small lattices, also odd ones, and boxes that begin at an odd site. */
TEST(test_even_odd)
{
    const struct limefile_export_spec name = {.kind = LIMEFILE_EXPORT_NPY, .even_odd = true};
    for (unsigned dims = 2; dims <= 4; dims++) {
        unsigned lattices = dims == 4 ? 625 : dims == 3 ? 125 : 25;
        for (unsigned i = 0; i < lattices; i++) {
            uint64_t extent[4] = {1 + i % 5, 1 + i / 5 % 5, 1 + i / 25 % 5, 1 + i / 125};
            struct limefile_field f =
                field_of(LIMEFILE_KIND_SCIDAC, "QDP_F_Real", 32, 4, dims, extent);
            assert_npy(&f, &name, false);
            f.is_box = true;
            for (unsigned d = 0; d < dims; d++) {
                f.lower[d] = d == 0 ? 1 : 2;
                f.upper[d] = f.lower[d] + extent[d] - 1;
                f.lattice.extent[d] = extent[d] + 3;
            }
            assert_npy(&f, &name, false);
        }
    }
}

TEST(test_even_odd_shape)
{
    const struct limefile_export_spec name = {.kind = LIMEFILE_EXPORT_NPY, .even_odd = true};
    struct limefile_field f = field_of(LIMEFILE_KIND_GAUGE, "su3gauge", 64, 576, 4, box_2345);
    struct limefile_export *export;
    char text[129] = "";
    assert_int_equal(limefile_export_open(&f, &name, &export), 0);
    limefile_export_read(export, 0, text, 128, 0, store_read, NULL);
    assert_non_null(strstr(text + 10, "{'descr': '>c16', 'fortran_order': False, "
                                      "'shape': (2, 60, 4, 3, 3), }"));
    limefile_export_close(export);
    f = field_of(LIMEFILE_KIND_SCIDAC, "QDP_F_Real", 32, 4, 3, (uint64_t[]){3, 3, 5});
    assert_int_equal(limefile_export_open(&f, &name, &export), 0);
    limefile_export_read(export, 0, text, 128, 0, store_read, NULL);
    assert_non_null(strstr(text + 10, "'shape': (45,), }"));
    limefile_export_close(export);
    f = field_of(LIMEFILE_KIND_SCIDAC, "GRID_F_Complex", 32, 8, 5,
                 (uint64_t[]){8, 2, 2, 2, 2}); /* five dimensions: parity is undefined */
    assert_int_equal(limefile_export_open(&f, &name, &export), LIMEFILE_E_STATE);
}

/* Infinities, NaN, denormal and inexact numbers. */
TEST(test_numbers)
{
    static const double in[] = {
        0.0,       -0.0,     1.0,    1e308,    -1e308,           INFINITY,
        -INFINITY, NAN,      1e-320, -1e-45,   3.5e38,           3.4e38,
        0x1p-149,  0x1p-150, 1e-60,  16777217, 0x1.fffffefffp127};
    struct limefile_field f =
        field_of(LIMEFILE_KIND_SCIDAC, "Lattice", 64, 8, 1, (uint64_t[]){COUNT(in)});
    struct limefile_export_spec name = {.kind = LIMEFILE_EXPORT_NPY,
                                        .precision = 32,
                                        .little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__};
    unsigned char raw[sizeof in];
    struct store s = {.at = raw, .bytes = sizeof raw};
    struct limefile_export *export;
    float out[COUNT(in)];
    for (size_t i = 0; i < sizeof raw; i++) {
        uint64_t bits;
        memcpy(&bits, &in[i / 8], sizeof bits);
        raw[i] = (unsigned char)(bits >> 8 * (7 - i % 8));
    }
    assert_int_equal(limefile_export_open(&f, &name, &export), 0);
    size_t n = size_of(export, 0);
    assert_int_equal(
        limefile_export_read(export, 0, out, sizeof out, n - sizeof out, store_read, &s),
        sizeof out);
    for (size_t i = 0; i < COUNT(in); i++) {
        float want = (float)in[i];
        assert_true(isnan(want) ? isnan(out[i]) : memcmp(&want, &out[i], 4) == 0);
    }
    assert_true(isinf(out[3]) && signbit(out[4]) && isinf(out[4]) && isinf(out[10]));
    limefile_export_close(export);
}

/* ---- directories ---- */

TEST(test_names_of_chunks)
{
    struct limefile_field f = field_of(LIMEFILE_KIND_GAUGE, "su3gauge", 64, 576, 4, box_2345);
    const struct limefile_export_spec name = {.kind = LIMEFILE_EXPORT_ZARR};
    struct limefile_export *export;
    uint64_t number, directory;
    assert_int_equal(limefile_export_open(&f, &name, &export), 0);
    assert_true(limefile_export_find(export, 0, "field", &directory));
    assert_true(limefile_export_find(export, directory + 1, "4.0.0.0.0.0.0", &number));
    static const char *const none[] = {"5.0.0.0.0.0.0", "04.0.0.0.0.0.0", "4.0.0.0.0.0",
                                       "4.0.0.0.0.0.1", ".0.0.0.0.0.0",   "4.0.0.0.0.0.0.0"};
    for (size_t i = 0; i < COUNT(none); i++)
        assert_false(limefile_export_find(export, directory + 1, none[i], &number));
    limefile_export_close(export);
}

/* ---- hostile metadata ---- */

static void try_all_faces(const struct limefile_field *f)
{
    struct limefile_export *export;
    struct limefile_export_entry entry;
    struct limefile_export_range piece;
    struct store none = {.bytes = 0};
    char buf[300];
    for (unsigned i = 0; i < 24; i++) {
        struct limefile_export_spec name = {.kind = i < 12 ? LIMEFILE_EXPORT_NPY : i % 4,
                                            .even_odd = i % 2,
                                            .little = i / 2 % 2,
                                            .precision = i / 4 % 3 * 32};
        int err = limefile_export_open(f, &name, &export);
        if (err) {
            assert_null(export);
            continue;
        }
        uint64_t n = limefile_export_entry_count(export);
        for (uint64_t k = n > 4 ? n - 4 : 0; k < n; k++) {
            limefile_export_entry(export, k, &entry);
            limefile_export_range(export, k, entry.bytes / 2, &piece);
            limefile_export_read(export, k, buf, sizeof buf, entry.bytes - entry.bytes / 3,
                                 store_read, &none);
        }
        limefile_export_entry(export, UINT64_MAX, &entry);
        assert_int_equal(limefile_export_read(export, UINT64_MAX, buf, 1, 0, store_read, &none),
                         0);
        limefile_export_close(export);
    }
}

TEST(test_hostile)
{
    static const uint64_t huge[][8] = {
        {UINT64_C(1) << 62},
        {1, 1, 1, (UINT64_C(1) << 62)},
        {1, 1, 1, (UINT64_C(1) << 63) - 1},
        {(UINT64_C(1) << 62), 1, 1, 1},
        {1 << 15, 1 << 15, 1 << 15, 1 << 15},
        {128, 128, 128, 128, 128, 128, 128, 128},
        {UINT64_MAX, UINT64_MAX, 3, 3},
        {UINT64_MAX, 2, 2, 2},
    };
    static const unsigned dims[] = {1, 4, 4, 4, 4, 8, 4, 4};
    static const char *const names[] = {"",
                                        "su0gauge",
                                        "su99gauge",
                                        "QDP_F3_ColorMatrix",
                                        "GRID_D_SpinMatrix99_ColourMatrix99",
                                        "_",
                                        "__"};
    for (size_t i = 0; i < COUNT(huge); i++)
        for (unsigned k = 0; k < 24; k++)
            for (size_t j = 0; j < COUNT(names); j++) {
                static const uint64_t sizes[] = {1, 2, 4, 8, 16, UINT64_C(1) << 62};
                struct limefile_field f = field_of(LIMEFILE_KIND_SCIDAC, names[j], k % 3 * 32,
                                                   sizes[k % 6], dims[i], huge[i]);
                f.is_box = k >= 12;
                f.upper[0] = UINT64_MAX;
                try_all_faces(&f);
            }
}

/* lime finds one of 2^62 slices by its number, without a search. */
TEST(test_many_slices)
{
    struct limefile_field f =
        field_of(LIMEFILE_KIND_SCIDAC, "", 0, 1, 4, (uint64_t[]){1, 1, 1, UINT64_C(1) << 62});
    struct limefile_export_entry entry;
    struct limefile_export *export;
    uint64_t number;
    assert_int_equal(
        limefile_export_open(&f, &(struct limefile_export_spec){.kind = LIMEFILE_EXPORT_SLICES},
                             &export),
        0);
    assert_int_equal(limefile_export_entry_count(export), UINT64_C(1) << 62);
    limefile_export_entry(export, 5, &entry);
    assert_string_equal(entry.name, "0000000000000000005");
    assert_true(limefile_export_find(export, 0, "4611686018427387903", &number));
    assert_int_equal(number, (UINT64_C(1) << 62) - 1);
    assert_false(limefile_export_find(export, 0, "4611686018427387904", &number));
    assert_false(limefile_export_find(export, 0, "99999999999999999999", &number));
    limefile_export_close(export);
}
