/* imageheads.c - headers of NERSC, MILC and openQCD files */
#include "gauge.h"
#include "imagekept.h"

#include <errno.h>
#include <stdio.h>

enum {
    NERSC_MAX = 4096,
};

/* ---- NERSC ---- */

/* Always of the same length: the header's must not depend on the figures. */
static void put_real(char out[24], double value)
{
    char wide[64];
    snprintf(wide, sizeof wide, "%.17f", value);
    snprintf(out, 24, "%.18s", wide);
}

static const char *value_or(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

int image_nersc(struct limefile_gauge_image *image, const struct limefile_gauge_totals *totals)
{
    static const struct limefile_gauge_totals none;
    const struct limefile_gauge_form *asked = &image->asked;
    const uint64_t *l = image->sites.extent;
    char text[NERSC_MAX], trace[24], plaquette[24];
    const char *date = value_or(asked->date, "unknown");
    totals = totals ? totals : &none;
    put_real(trace, totals->physics.trace);
    put_real(plaquette, totals->physics.plaquette);
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
        totals->image.nersc, value_or(asked->ensemble_id, "unknown"),
        value_or(asked->ensemble_label, "unknown"), (unsigned long long)asked->sequence,
        value_or(asked->creator, "limefs"), date, date, image->form.precision);
    unsigned char *header = image_header(image, (size_t)n);
    if (!header)
        return -ENOMEM;
    memcpy(header, text, (size_t)n);
    return 0;
}

/* ---- MILC, in the order of today's machines ---- */

static void put_le32(unsigned char *at, uint64_t value)
{
    put_be32(at, __builtin_bswap32((uint32_t)value));
}

int image_milc(struct limefile_gauge_image *image, const struct limefile_gauge_totals *totals)
{
    unsigned char *header = image_header(image, GAUGE_MILC_HEADER + 8);
    const char *date = value_or(image->asked.date, "unknown");
    if (!header)
        return -ENOMEM;
    put_le32(header, GAUGE_MILC_MAGIC);
    for (int i = 0; i < 4; i++)
        put_le32(header + 4 + 4 * i, image->sites.extent[i]);
    memcpy(header + GAUGE_MILC_DATE_AT, date, strnlen(date, GAUGE_MILC_DATE - 1));
    if (totals) {
        put_le32(header + GAUGE_MILC_HEADER, totals->image.sum29);
        put_le32(header + GAUGE_MILC_HEADER + 4, totals->image.sum31);
    }
    return 0;
}

/* ---- openQCD ---- */

int image_openqcd(struct limefile_gauge_image *image,
                  const struct limefile_gauge_totals *totals)
{
    unsigned char *header = image_header(image, GAUGE_OPENQCD_HEADER);
    double plaquette = totals ? 3 * totals->physics.plaquette : 0;
    uint64_t bits;
    if (!header)
        return -ENOMEM;
    for (int i = 0; i < 4; i++)
        put_le32(header + 4 * i, image->sites.extent[(i + 3) % 4]);
    memcpy(&bits, &plaquette, sizeof bits);
    put_be64(header + 16, __builtin_bswap64(bits));
    return 0;
}
