/* gauge_common.c - functions that the readers and writers of all formats share */
#include "gauge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SITE_BITS = 55 /* of a number of sites; the number of their bytes then fits 63 bits */ };

uint64_t gauge_count_sites(const uint64_t extent[4])
{
    uint64_t sites = 1;
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(sites, extent[i], &sites))
            return 0;
    return sites >> SITE_BITS ? 0 : sites;
}

uint64_t gauge_data_bytes(const uint64_t extent[4], const struct links_form *form)
{
    uint64_t sites = gauge_count_sites(extent), bytes;
    if (__builtin_mul_overflow(sites, 4 * links_bytes(form), &bytes) || bytes > INT64_MAX / 2)
        return 0;
    return bytes;
}

/* Reads links of two rows to the end of `out`; links_convert() then expands them in place. */
int gauge_read_plain(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct limefile_gauge *g = context;
    const struct links_form *form = &g->priv->form;
    struct links_form ildg = links_ildg(form->precision);
    size_t stored = (size_t)count * 4 * links_bytes(form);
    size_t whole = (size_t)count * 4 * links_bytes(&ildg);
    unsigned char *at = (unsigned char *)out + (whole - stored);
    int err = limefile_read_exact(g->priv->source, at, stored,
                                  g->data_offset + first * 4 * links_bytes(form));
    if (!err && (form->rows != 3 || form->little))
        links_convert(form, at, &ildg, out, (size_t)count * 4);
    return err;
}

int gauge_fail(const struct limefile_gauge *g, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (g->priv->why)
        vsnprintf(g->priv->why, LIMEFILE_GAUGE_WHY_MAX, format, args);
    va_end(args);
    return code;
}

int gauge_check_size(const struct limefile_gauge *g, uint64_t size)
{
    const uint64_t *l = g->sites.extent, stated = g->data_offset + g->data_bytes;
    if (size == stated)
        return 0;
    return gauge_fail(g, LIMEFILE_E_GAUGE_LENGTH,
                      "the file has %" PRIu64 " bytes, not the %" PRIu64
                      " that its header describes (%" PRIu64 " x %" PRIu64 " x %" PRIu64
                      " x %" PRIu64 " sites, %u rows of a link, %u bits)",
                      size, stated, l[0], l[1], l[2], l[3], g->priv->form.rows,
                      g->priv->form.precision);
}

unsigned char *gauge_make_header(struct limefile_gauge_image *image, size_t n)
{
    /* Do not write header_bytes again: another thread may be reading the image's size. */
    if (image->header && image->header_bytes == n) {
        memset(image->header, 0, n);
        return image->header;
    }
    free(image->header);
    image->header = calloc(1, n + 1);
    image->header_bytes = n;
    return image->header;
}
