/* sites.c - find SU(3) gauge configurations among fields, and read their sites */
#include "limesites.h"

#include <string.h>

enum {
    SITE_COUNT_BITS = 55, /* limit of a lattice, as in limesites.h */
    COLOURS = 3,
};

static int read_field_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct limefile_sites_field *field = context;
    size_t n = (size_t)count * field->site_bytes;
    return limefile_read_exact(field->source, out, n,
                               field->data_offset + first * field->site_bytes);
}

/* ---- which fields are configurations ---- */

/* Returns false if `name` is that of another gauge group or of a variant of SU(3). Returns true
 * for all names that are not ILDG's, such as the datatypes of QIO. */
static bool may_be_su3(const char *name)
{
    struct limefile_gaugename gauge;
    if (!limefile_gaugename_parse(name, &gauge))
        return true;
    return gauge.group == LIMEFILE_GROUP_SU && gauge.n == COLOURS && !gauge.variant;
}

/* Returns why a gauge field cannot be read as a configuration, or NULL. */
static const char *why_unreadable(const struct limefile_field *f)
{
    struct limefile_siteshape site;
    limefile_siteshape_derive(f, &site);
    bool links = limefile_siteshape_is_links(&site);
    if (!may_be_su3(f->name) || (links && site.extent[1] != COLOURS))
        return "a gauge field, but not of SU(3)";
    if (f->descriptions_differ)
        return "its descriptions contradict each other";
    if (!links)
        return "a gauge field, but its metadata do not describe 4 colour matrices a site";
    if (f->is_checkerboard)
        return "4 colour matrices a site, but only of every second site";
    if (f->is_box)
        return "4 colour matrices a site, but only of a part of the lattice";
    if (f->lattice.dims == 0)
        return "4 colour matrices a site, but no record describes the lattice";
    if (f->lattice.dims != 4)
        return "4 colour matrices a site, but the lattice does not have 4 dimensions";
    if (f->sites == 0)
        return LIMEFILE_WHY_VOLUME;
    if (!limefile_field_is_summable(f) || f->sites >> SITE_COUNT_BITS != 0)
        return "4 colour matrices a site, but its length does not match the lattice";
    return NULL;
}

/* Returns true if a site has as many bytes as four matrices, according to the metadata or to
 * the record's length, although the metadata do not describe four matrices. The field may then
 * be a configuration whose metadata are wrong: in precision, typesize or datacount, or in the
 * name of the field. */
static bool has_bytes_of_links(const struct limefile_field *f)
{
    struct limefile_siteshape site;
    const uint64_t single = 4 * COLOURS * COLOURS * 8; /* four matrices in single precision */
    const uint64_t reals = COLOURS * COLOURS * 2;      /* real numbers in one matrix */
    if (f->kind == LIMEFILE_KIND_SCIDAC && f->format_ordinal &&
        strcmp(f->record.type, "ildg-binary-data") == 0)
        return f->site_bytes == single * f->precision / 32;
    if (f->kind != LIMEFILE_KIND_SCIDAC || f->datacount == 0)
        return false;
    limefile_siteshape_derive(f, &site);
    bool matrices =
        (site.dims == 2 || site.dims == 3) && strcmp(site.name[site.dims - 1], "b") == 0;
    if (f->expected && f->expected != f->record.bytes) /* then f->sites is not 0 */
        return matrices && f->record.bytes % f->sites == 0 &&
               (f->record.bytes / f->sites == single ||
                f->record.bytes / f->sites == 2 * single);
    if (f->site_bytes != single && f->site_bytes != 2 * single)
        return false;
    return !site.known ||
           (matrices && f->site_bytes / f->datacount != reals * f->precision / 8);
}

enum limefile_configuration limefile_field_configuration(const struct limefile_field *f,
                                                         const char **why)
{
    const char *reason = NULL;
    if (f->kind == LIMEFILE_KIND_GAUGE)
        reason = why_unreadable(f);
    else if (f->kind == LIMEFILE_KIND_UNKNOWN)
        reason = f->format_ordinal || f->private_ordinal
                     ? "the metadata that describe it cannot be read"
                     : "no metadata describe it";
    else if (has_bytes_of_links(f))
        reason =
            "it has the bytes of 4 colour matrices a site, but its metadata describe others";
    if (why)
        *why = reason;
    return reason                           ? LIMEFILE_CONFIGURATION_UNKNOWN
           : f->kind == LIMEFILE_KIND_GAUGE ? LIMEFILE_CONFIGURATION
                                            : LIMEFILE_NO_CONFIGURATION;
}

int limefile_sites_from_field(struct limefile_source *source,
                              const struct limefile_field *field,
                              struct limefile_sites_field *context, struct limefile_sites *out)
{
    if (limefile_field_configuration(field, NULL) != LIMEFILE_CONFIGURATION)
        return LIMEFILE_E_STATE;
    context->source = source;
    context->data_offset = field->record.data_offset;
    context->site_bytes = (size_t)field->site_bytes;
    memset(out, 0, sizeof *out);
    memcpy(out->extent, field->lattice.extent, sizeof out->extent);
    out->precision = field->precision;
    out->read = read_field_sites;
    out->context = context;
    return 0;
}
