/* test_fieldpack.c - packed field descriptions are unpacked unchanged and take few bytes */
#include "fieldpack.h"
#include "unit.h"

#include <stdlib.h>

/* A random number of any number of bits, more often of few. */
static uint64_t any_number(void)
{
    uint64_t number = (uint64_t)random() << 33 ^ (uint64_t)random() << 16 ^ (uint64_t)random();
    return number >> random() % 64;
}

static void any_field(struct limefile_field *f)
{
    memset(f, 0, sizeof *f);
    f->kind = 1 + (enum limefile_fieldkind)(random() % 5);
    size_t name = (size_t)random() % LIMEFILE_WORD_MAX;
    for (size_t i = 0; i < name; i++)
        f->name[i] = (char)(1 + random() % 255);
    f->precision = random() % 2 ? 32 : 64;
    f->lattice.dims = (unsigned)random() % (LIMEFILE_DIMS_MAX + 1);
    f->is_checkerboard = random() % 2;
    f->is_box = random() % 2;
    f->descriptions_differ = random() % 2;
    for (unsigned i = 0; i < f->lattice.dims; i++) {
        f->lattice.extent[i] = any_number();
        f->lower[i] = f->is_box ? any_number() : 0;
        f->upper[i] = f->is_box ? any_number() : 0;
    }
    f->sites = any_number();
    f->site_bytes = any_number();
    f->expected = any_number();
    f->datacount = any_number();
    f->colors = (unsigned)any_number();
    f->spins = (unsigned)any_number();
}

static void assert_same(const struct limefile_field *f, const struct limefile_field *g)
{
    assert_int_equal(f->kind, g->kind);
    assert_string_equal(f->name, g->name);
    assert_int_equal(f->precision, g->precision);
    assert_int_equal(f->lattice.dims, g->lattice.dims);
    assert_memory_equal(f->lattice.extent, g->lattice.extent, sizeof f->lattice.extent);
    assert_true(f->is_checkerboard == g->is_checkerboard && f->is_box == g->is_box &&
                f->descriptions_differ == g->descriptions_differ);
    assert_memory_equal(f->lower, g->lower, sizeof f->lower);
    assert_memory_equal(f->upper, g->upper, sizeof f->upper);
    assert_true(f->sites == g->sites && f->site_bytes == g->site_bytes);
    assert_true(f->expected == g->expected && f->datacount == g->datacount);
    assert_true(f->colors == g->colors && f->spins == g->spins);
}

TEST(test_any)
{
    enum { FIELDS = 2000 };
    static struct limefile_field fields[FIELDS];
    static uint64_t where[FIELDS];
    struct fieldpack pack = {.bytes = NULL};
    for (size_t i = 0; i < FIELDS; i++) {
        any_field(&fields[i]);
        assert_int_equal(fieldpack_put(&pack, &fields[i], &where[i]), 0);
        assert_true(where[i] > 0);
    }
    for (size_t i = 0; i < FIELDS; i++) {
        struct limefile_field f = {.format_ordinal = 7};
        fieldpack_get(&pack, where[i], &f);
        assert_same(&f, &fields[i]);
        assert_int_equal(f.format_ordinal, 7);
    }
    free(pack.bytes);
}

TEST(test_neighbours_share)
{
    struct fieldpack pack = {.bytes = NULL};
    struct limefile_field f = {.kind = LIMEFILE_KIND_GAUGE, .name = "su3gauge", .sites = 512};
    struct limefile_field g = f;
    uint64_t first, again, other, last;
    g.sites = 513;
    assert_int_equal(fieldpack_put(&pack, &f, &first), 0);
    assert_int_equal(fieldpack_put(&pack, &f, &again), 0);
    assert_int_equal(fieldpack_put(&pack, &g, &other), 0);
    assert_int_equal(fieldpack_put(&pack, &g, &last), 0);
    assert_true(first == again && other == last && first != other);
    assert_true(pack.used < 50);
    free(pack.bytes);
}
