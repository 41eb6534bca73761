/* fuzz_gauge.c - any bytes as a gauge configuration of some format, or as volumes of a set:
 * their invariants. The first byte selects: '0' volumes, where the second byte gives their
 * number and the next two of each its length; anything else is a file. */
#include "fuzz.h"

#include <errno.h>

#include "limegauge.h"
#include "limevolumes.h"

enum {
    VOLUMES_MAX = 4,
    SITES_MAX = 4096,
};

static bool count_sites(void *context, uint64_t more)
{
    *(uint64_t *)context += more;
    return true;
}

/* Each range equals that part of the whole. */
static void check_ranges(const struct limefile_gauge_image *image)
{
    uint64_t size = limefile_gauge_image_size(image);
    unsigned char *whole = malloc(size), part[1000];
    HOLDS(limefile_gauge_image_read(image, whole, size, 0) == (ssize_t)size);
    for (uint64_t at = 0; at <= size; at += size / 7 + 1) {
        ssize_t n = limefile_gauge_image_read(image, part, sizeof part, at);
        HOLDS(n == (ssize_t)(size - at < sizeof part ? size - at : sizeof part));
        HOLDS(memcmp(part, whole + at, (size_t)n) == 0);
    }
    free(whole);
}

/* A conversion to each format has the same contents. */
static void check_image(const struct limefile_gauge *g, enum limefile_gauge_format format)
{
    struct limefile_gauge_options form = {.format = format,
                                          .text = g->text,
                                          .text_type = "header",
                                          .ensemble_id = g->ensemble_id};
    struct limefile_gauge_image *image;
    struct limefile_gauge_totals totals;
    int err = limefile_gauge_image_new(&g->sites, &form, &image);
    if (err) {
        HOLDS(err == LIMEFILE_E_GAUGE_LATTICE && format == LIMEFILE_GAUGE_OPENQCD);
        return;
    }
    uint64_t offset = limefile_gauge_image_data_offset(image);
    struct limefile_gauge_pass pass = {.sites = &g->sites, .image = image, .threads = 1};
    HOLDS(limefile_gauge_pass_run(&pass, &totals) == 0);
    err = limefile_gauge_image_seal(image, &totals);
    HOLDS(err == 0 || err == LIMEFILE_E_GAUGE_NAN || err == LIMEFILE_E_GAUGE_RANGE);
    if (!err) {
        HOLDS(limefile_gauge_image_data_offset(image) == offset);
        check_ranges(image);
    }
    limefile_gauge_image_free(image);
}

static void check_gauge(const struct limefile_gauge *g)
{
    struct limefile_gauge_totals totals;
    char difference[LIMEFILE_GAUGE_DIFFERENCE_MAX];
    uint64_t sites = limefile_sites_count(&g->sites), seen = 0;
    HOLDS(g->format >= LIMEFILE_GAUGE_ILDG && g->format <= LIMEFILE_GAUGE_OPENQCD);
    HOLDS(sites > 0 && (g->rows == 2 || g->rows == 3));
    HOLDS(g->sites.precision == 32 || g->sites.precision == 64);
    HOLDS(g->data_bytes == sites * 4 * g->rows * 6 * (g->sites.precision / 8));
    HOLDS(!g->has_plaquette || g->plaquette == g->plaquette);
    if (sites > SITES_MAX)
        return;
    const struct limefile_gauge_pass pass = {.sites = &g->sites,
                                             .source = g,
                                             .progress = count_sites,
                                             .context = &seen,
                                             .threads = 1};
    HOLDS(limefile_gauge_pass_run(&pass, &totals) == 0);
    int err = limefile_gauge_compare(g, &totals, difference);
    HOLDS(err == 0 || err == LIMEFILE_E_GAUGE_CHECKSUM || err == LIMEFILE_E_GAUGE_PLAQUETTE ||
          err == LIMEFILE_E_GAUGE_TRACE);
    HOLDS(seen == sites && totals.physics.first.site < sites && totals.physics.unitarity >= 0);
    for (int i = LIMEFILE_GAUGE_ILDG; i <= LIMEFILE_GAUGE_OPENQCD; i++)
        check_image(g, (enum limefile_gauge_format)i);
}

static void as_file(const uint8_t *data, size_t size)
{
    struct limefile_memory memory;
    struct limefile_gauge *g;
    limefile_memory_borrow(&memory, data, size);
    char why[LIMEFILE_GAUGE_WHY_MAX];
    int err = limefile_gauge_open(&memory.source, 0, &g, why);
    HOLDS(strnlen(why, sizeof why) < sizeof why && (err || !*why));
    HOLDS(err <= 0 && err != -ENOMEM);
    HOLDS(err == 0 || strcmp(limefile_strerror(err), "unknown error") != 0);
    if (err)
        return;
    check_gauge(g);
    limefile_gauge_close(g);
}

static void check_set(struct limefile_volumes *set)
{
    struct limefile_source *joined = limefile_volumes_source(set);
    struct limefile_volumes_info facts;
    struct limefile_index *index;
    unsigned char part[100];
    uint64_t size;
    limefile_volumes_info(set, &facts);
    HOLDS(facts.volfmt > 0 && facts.fields > 0 && facts.master < facts.volumes);
    HOLDS(joined->ops->size(joined, &size) == 0 && size > 0);
    HOLDS(limefile_index_build(joined, &index) == 0);
    HOLDS(limefile_index_end(index) == size && !limefile_index_fault(index));
    for (uint64_t at = 0; at < size; at += size / 13 + 1) {
        ssize_t n = limefile_read_full(joined, part, sizeof part, at);
        HOLDS(n == (ssize_t)(size - at < sizeof part ? size - at : sizeof part));
    }
    limefile_index_free(index);
}

/* A set opens without parts if it opens with them; one record is joined by itself. */
static void check_options(struct limefile_source *const *sources, size_t count, int with_parts)
{
    static const uint64_t one = 1;
    struct limefile_volumes_options options = {.skips_parts = true};
    struct limefile_volumes *set;
    size_t bad;
    int err = limefile_volumes_open(sources, count, &options, &set, &bad);
    HOLDS(err <= 0 && err != -ENOMEM && (with_parts || err == 0));
    if (err)
        return;
    check_set(set);
    limefile_volumes_close(set);
    options.records = &one;
    options.record_count = 1;
    if (limefile_volumes_open(sources, count, &options, &set, &bad) == 0) {
        check_set(set);
        limefile_volumes_close(set);
    }
}

static void as_volumes(const uint8_t *data, size_t size)
{
    struct limefile_memory memory[VOLUMES_MAX];
    struct limefile_source *sources[VOLUMES_MAX];
    struct limefile_volumes *set;
    size_t count = 0, requested = size ? (size_t)(data[0] % VOLUMES_MAX) + 1 : 0, bad;
    for (size_t at = 1; count < requested && at + 2 <= size; count++) {
        size_t n = (size_t)data[at] << 8 | data[at + 1];
        at += 2;
        n = n < size - at ? n : size - at;
        limefile_memory_borrow(&memory[count], data + at, n);
        sources[count] = &memory[count].source;
        at += n;
    }
    const struct limefile_volumes_options options = {.skips_parts = false};
    int err = limefile_volumes_open(sources, count, &options, &set, &bad);
    HOLDS(err <= 0 && err != -ENOMEM && (err == 0 || bad <= count));
    check_options(sources, count, err);
    if (err)
        return;
    check_set(set);
    limefile_volumes_close(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == '0')
        as_volumes(data + 1, size - 1);
    else
        as_file(data, size);
    return 0;
}
