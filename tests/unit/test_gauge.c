/* test_gauge.c - images of configurations read in ranges, and passes over them in blocks: all
 * that is made is the same however it is cut and whoever does it */
#include "unit.h"

#include <math.h>

#include "limegauge.h"

enum { SITE = 576 };

static const uint64_t extents[4] = {6, 4, 8, 6};

/* ---- sites in memory ---- */

struct memory {
    struct limefile_sites sites;
    unsigned char *data;
    uint64_t fail_at; /* site whose reading fails; UINT64_MAX: none */
};

static int read_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct memory *m = context;
    size_t site = limefile_sites_bytes(&m->sites);
    if (m->fail_at >= first && m->fail_at - first < count)
        return -EIO;
    assert_true(first + count <= limefile_sites_count(&m->sites));
    memcpy(out, m->data + first * site, (size_t)count * site);
    return 0;
}

static void put_real(unsigned char *at, double value, unsigned precision)
{
    float narrow = (float)value;
    uint64_t bits = 0;
    uint32_t narrow_bits;
    memcpy(&bits, &value, 8);
    memcpy(&narrow_bits, &narrow, 4);
    for (unsigned i = 0; i < precision / 8; i++)
        at[i] = (unsigned char)(precision == 64 ? bits >> (56 - 8 * i)
                                                : narrow_bits >> (24 - 8 * i));
}

/* diag(e^ia, e^ib, e^-i(a+b)), another one for each link. */
static void put_link(unsigned char *at, uint64_t number, unsigned precision)
{
    double angle[3] = {sin((double)number), cos(1.7 * (double)number), 0};
    angle[2] = -angle[0] - angle[1];
    memset(at, 0, 18 * precision / 8);
    for (unsigned i = 0; i < 3; i++) {
        put_real(at + (size_t)8 * i * (precision / 8), cos(angle[i]), precision);
        put_real(at + (size_t)(8 * i + 1) * (precision / 8), sin(angle[i]), precision);
    }
}

static void make(struct memory *m, const uint64_t extent[4], unsigned precision)
{
    *m = (struct memory){.sites = {.precision = precision, .read = read_sites},
                         .fail_at = UINT64_MAX};
    memcpy(m->sites.extent, extent, sizeof m->sites.extent);
    m->sites.context = m;
    uint64_t links = 4 * limefile_sites_count(&m->sites);
    m->data = malloc(links * SITE / 4);
    assert_non_null(m->data);
    for (uint64_t i = 0; i < links; i++)
        put_link(m->data + i * 18 * (precision / 8), i, precision);
}

/* ---- what a pass writes ---- */

struct written {
    unsigned char *at, *marks;
    uint64_t size;
    uint64_t sites;
};

static int keep(void *context, const void *data, size_t n, uint64_t offset)
{
    struct written *w = context;
    assert_true(offset <= w->size && n <= w->size - offset);
    memcpy(w->at + offset, data, n);
    for (size_t i = 0; i < n; i++)
        w->marks[offset + i]++;
    return 0;
}

static bool count(void *context, uint64_t more)
{
    ((struct written *)context)->sites += more;
    return true;
}

static void same_figures(const struct limefile_gauge_totals *a,
                         const struct limefile_gauge_totals *b)
{
    assert_memory_equal(&a->physics.plaquette, &b->physics.plaquette, 4 * sizeof(double));
    assert_memory_equal(&a->physics.unitarity, &b->physics.unitarity, 2 * sizeof(double));
    assert_true(a->physics.bad_links == b->physics.bad_links);
    assert_true(a->physics.first.site == b->physics.first.site);
    assert_memory_equal(&a->image, &b->image, sizeof a->image);
}

/* The file by a pass in blocks of few planes, by some threads. */
static void run_pass(const struct memory *m, struct limefile_gauge_image *image,
                     struct written *w, unsigned threads, size_t memory,
                     struct limefile_gauge_totals *totals)
{
    struct limefile_gauge_pass pass = {
        .sites = &m->sites,
        .image = image,
        .write = keep,
        .progress = count,
        .context = w,
        .threads = threads,
        .memory = memory,
    };
    uint64_t from = limefile_gauge_image_data_offset(image);
    uint64_t bytes = limefile_gauge_image_data_bytes(image);
    *w = (struct written){.size = from + bytes};
    w->at = calloc(1, w->size);
    w->marks = calloc(1, w->size);
    assert_non_null(w->at);
    assert_non_null(w->marks);
    assert_int_equal(limefile_gauge_run(&pass, totals), 0);
    assert_int_equal(w->sites, limefile_sites_count(&m->sites));
    for (uint64_t i = 0; i < w->size; i++)
        assert_int_equal(w->marks[i], i >= from);
}

static void check_ranges(const struct limefile_gauge_image *image, const struct written *w)
{
    uint64_t size = limefile_gauge_image_size(image), seed = 1;
    uint64_t from = limefile_gauge_image_data_offset(image);
    unsigned char *whole = malloc(size), *part = malloc(size);
    assert_int_equal(limefile_gauge_image_read(image, whole, size + 9, 0), size);
    assert_memory_equal(whole + from, w->at + from, w->size - from);
    for (int i = 0; i < 300; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t at = (seed >> 20) % size, n = (seed >> 8) % (i % 3 ? 3000 : size);
        uint64_t left = size - at < n ? size - at : n;
        assert_int_equal(limefile_gauge_image_read(image, part, n, at), left);
        assert_memory_equal(part, whole + at, left);
    }
    assert_int_equal(limefile_gauge_image_read(image, part, 10, size), 0);
    assert_int_equal(limefile_gauge_image_read(image, part, 10, UINT64_MAX), 0);
    free(whole);
    free(part);
}

/* What is read back of an image has the same sites. */
static void check_back(const struct memory *m, const struct limefile_gauge_image *image,
                       unsigned rows)
{
    uint64_t size = limefile_gauge_image_size(image);
    struct limefile_memory file;
    struct limefile_gauge *g;
    struct limefile_gauge_totals totals;
    char difference[LIMEFILE_GAUGE_DIFFERENCE_MAX];
    unsigned char *whole = malloc(size);
    assert_int_equal(limefile_gauge_image_read(image, whole, size, 0), size);
    limefile_memory_lend(&file, whole, size);
    assert_int_equal(limefile_gauge_open(&file.source, 0, &g, NULL), 0);
    const struct limefile_gauge_pass pass = {.sites = &g->sites, .source = g, .threads = 2};
    assert_int_equal(limefile_gauge_run(&pass, &totals), 0);
    assert_int_equal(limefile_gauge_compare(g, &totals, difference), 0);
    assert_int_equal(g->rows, rows);
    uint64_t sites = limefile_sites_count(&g->sites);
    if (g->sites.precision == m->sites.precision && rows == 3) {
        size_t site = limefile_sites_bytes(&g->sites);
        unsigned char *all = malloc(sites * site);
        assert_int_equal(g->sites.read(g->sites.context, 0, sites, all), 0);
        assert_memory_equal(all, m->data, sites * site);
        for (uint64_t i = 0; i + 7 < sites; i += 5) { /* in ranges of odd places and lengths */
            uint64_t n = i % 3 * 20 + 1 < sites - i ? i % 3 * 20 + 1 : 1;
            assert_int_equal(g->sites.read(g->sites.context, i, n, all), 0);
            assert_memory_equal(all, m->data + i * site, n * site);
        }
        free(all);
    }
    limefile_gauge_close(g);
    free(whole);
}

static void check_format(enum limefile_gauge_format format, unsigned of_sites,
                         unsigned precision, unsigned rows)
{
    struct limefile_gauge_form form = {
        .format = format, .precision = precision, .rows = rows, .lfn = "lfn://x"};
    struct memory m;
    struct written w;
    struct limefile_gauge_image *image;
    struct limefile_gauge_totals first, more;
    make(&m, extents, of_sites);
    assert_int_equal(limefile_gauge_image_new(&m.sites, &form, &image), 0);
    run_pass(&m, image, &w, 1, 0, &first);
    for (unsigned i = 0; i < 3; i++) {
        static const size_t memory[] = {1, 100000, 240000};
        struct written again;
        run_pass(&m, image, &again, i + 2, memory[i], &more);
        same_figures(&first, &more);
        assert_memory_equal(w.at, again.at, w.size);
        free(again.at);
        free(again.marks);
    }
    assert_int_equal(limefile_gauge_image_read(image, w.marks, 1, 0), LIMEFILE_E_STATE);
    assert_int_equal(limefile_gauge_image_seal(image, &first), 0);
    check_ranges(image, &w);
    check_back(&m, image, rows);
    limefile_gauge_image_free(image);
    free(w.at);
    free(w.marks);
    free(m.data);
}

TEST(formats)
{
    for (unsigned of_sites = 32; of_sites <= 64; of_sites += 32) {
        for (unsigned precision = 32; precision <= 64; precision += 32) {
            check_format(LIMEFILE_GAUGE_ILDG, of_sites, precision, 3);
            check_format(LIMEFILE_GAUGE_NERSC, of_sites, precision, 3);
            check_format(LIMEFILE_GAUGE_NERSC, of_sites, precision, 2);
        }
        check_format(LIMEFILE_GAUGE_MILC, of_sites, 32, 3);
        check_format(LIMEFILE_GAUGE_OPENQCD, of_sites, 64, 3);
    }
}

/* The first error comes out, and all threads end; so does a caller who has enough. */
static bool stop(void *context, uint64_t more)
{
    (void)context;
    (void)more;
    return false;
}

TEST(failures)
{
    struct memory m;
    struct limefile_gauge_totals totals;
    make(&m, extents, 32);
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct limefile_gauge_pass pass = {.sites = &m.sites, .threads = threads, .memory = 1};
        for (uint64_t at = 0; at < limefile_sites_count(&m.sites); at += 97) {
            m.fail_at = at;
            pass.progress = NULL;
            assert_int_equal(limefile_gauge_run(&pass, &totals), -EIO);
        }
        m.fail_at = UINT64_MAX;
        pass.progress = stop;
        assert_int_equal(limefile_gauge_run(&pass, &totals), -EINTR);
    }
    free(m.data);
}
