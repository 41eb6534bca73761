/*
 * openqcdpoints.c - links gathered for openQCD's order
 *
 * Points of a column follow each other in the file, and each takes links of five sites: its
 * own, and those below it in x, y, z and t. Along a column each of these goes up by two planes,
 * so only the columns are looked up.
 */
#include "links.h"
#include "openqcd.h"

enum {
    LINK_BYTES = LIMEFILE_LINK_REALS * 8,
    AHEAD = 3, /* points whose sites are fetched into the cache meanwhile */
    LINE = 64,
};

#define INLINE static inline __attribute__((always_inline))

/* Part of a column of points, and its sites: the first of each, and from plane to plane. */
struct column {
    uint64_t points;
    size_t site, step, step_before;
    const unsigned char *here, *below_x, *below_y, *below_z, *below_t;
    const unsigned char
        *first_below_z; /* NULL, or of the first point: below_z is the second's */
    unsigned precision;
};

/* ---- one point ---- */

INLINE void put_link(const unsigned char *site, unsigned direction, unsigned precision,
                     unsigned char *out)
{
    static const struct links_form stored = {.precision = 64, .rows = 3, .little = true};
    if (precision == 32) {
        struct links_form form = links_ildg(32);
        links_convert(&form, site + direction * LIMEFILE_LINK_REALS * 4, &stored, out, 1);
        return;
    }
    const unsigned char *in = site + (size_t)direction * LINK_BYTES;
    for (size_t i = 0; i < LINK_BYTES; i += 8) {
        uint64_t word;
        memcpy(&word, in + i, sizeof word);
        word = __builtin_bswap64(word);
        memcpy(out + i, &word, sizeof word);
    }
}

INLINE void fetch(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch(at + i);
}

INLINE void put_column(const struct column *c, unsigned precision, unsigned char *out)
{
    size_t link = c->site / 4;
    for (uint64_t i = 0; i < c->points; i++, out += OPENQCD_POINT_BYTES) {
        size_t at = (size_t)i * c->step, before = (size_t)i * c->step_before;
        const unsigned char *below[4] = {c->below_t + before, c->below_x + at, c->below_y + at,
                                         !c->first_below_z ? c->below_z + at
                                         : i               ? c->below_z + at - c->step
                                                           : c->first_below_z};
        if (i + AHEAD < c->points) {
            fetch(c->here + at + AHEAD * c->step, c->site);
            fetch(c->below_t + before + AHEAD * c->step_before + 3 * link, link);
            fetch(c->below_x + at + AHEAD * c->step, link);
            fetch(c->below_y + at + AHEAD * c->step + link, link);
            fetch(c->below_z + at + AHEAD * c->step + 2 * link, link);
        }
        for (unsigned slot = 0; slot < 4; slot++) { /* t, x, y, z */
            unsigned d = (slot + 3) % 4;
            put_link(c->here + at, d, precision, out + (size_t)2 * slot * LINK_BYTES);
            put_link(below[slot], d, precision, out + (size_t)(2 * slot + 1) * LINK_BYTES);
        }
    }
}

static void put_plain(const struct column *c, unsigned char *out)
{
    if (c->precision == 64)
        put_column(c, 64, out);
    else
        put_column(c, 32, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void put_avx2(const struct column *c, unsigned char *out)
{
    put_column(c, 64, out);
}
#endif

static void put(const struct column *c, unsigned char *out)
{
#if defined(__x86_64__)
    if (c->precision == 64 && __builtin_cpu_supports("avx2")) {
        put_avx2(c, out);
        return;
    }
#endif
    put_plain(c, out);
}

/* ---- columns ---- */

/* The site of the box in its plane 0, above x and y. */
static const unsigned char *foot(const struct openqcd_sites *s, const uint64_t l[4], uint64_t x,
                                 uint64_t y, size_t site)
{
    const struct box *box = &s->box;
    uint64_t row = box_local(box, l, 1, y) * box->width[0] + box_local(box, l, 0, x);
    return s->at + (size_t)row * site;
}

static size_t plane_bytes(const struct openqcd_sites *s, size_t site)
{
    return (size_t)(s->box.width[0] * s->box.width[1]) * site;
}

/* Where the box has no plane below the first one, it has the whole lattice. */
static void set_column(struct column *c, const uint64_t l[4], const struct openqcd_sites *now,
                       const struct openqcd_sites *before, const uint64_t at[4])
{
    size_t plane = plane_bytes(now, c->site), plane_before = plane_bytes(before, c->site);
    uint64_t z = box_local(&now->box, l, 2, at[2]);
    size_t up = (size_t)z * plane;
    const unsigned char *here = foot(now, l, at[0], at[1], c->site);
    c->here = here + up;
    c->below_x = foot(now, l, at[0] ? at[0] - 1 : l[0] - 1, at[1], c->site) + up;
    c->below_y = foot(now, l, at[0], at[1] ? at[1] - 1 : l[1] - 1, c->site) + up;
    c->below_z = z ? c->here - plane : here + plane;
    c->first_below_z = z ? NULL : here + (size_t)(now->box.width[2] - 1) * plane;
    c->below_t = foot(before, l, at[0], at[1], c->site) +
                 (size_t)box_local(&before->box, l, 2, at[2]) * plane_before;
    c->step = 2 * plane;
    c->step_before = 2 * plane_before;
}

void openqcd_encode(const uint64_t l[4], unsigned precision, const struct openqcd_sites *now,
                    const struct openqcd_sites *before, uint64_t first, uint64_t count,
                    unsigned char *out)
{
    struct column c = {.precision = precision};
    uint64_t height = l[2] / 2;
    c.site = LIMEFILE_SITE_REALS * (size_t)(precision / 8);
    for (; count; count -= c.points, first += c.points) {
        uint64_t number = first / height, k = first % height;
        uint64_t at[4] = {number / l[1] % l[0], number % l[1], 0, number / l[1] / l[0]};
        at[2] = 2 * k + ((at[0] + at[1] + at[3]) % 2 == 0);
        c.points = count < height - k ? count : height - k;
        set_column(&c, l, now, before, at);
        put(&c, out);
        out += c.points * OPENQCD_POINT_BYTES;
    }
}
