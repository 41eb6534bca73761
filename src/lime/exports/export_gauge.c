/* export_gauge.c - export a configuration as a whole file in another format (limegauge.h) */
#include "export.h"

#include <string.h>

static enum limefile_gauge_format kind_format(enum limefile_export_kind kind)
{
    return kind == LIMEFILE_EXPORT_NERSC     ? LIMEFILE_GAUGE_NERSC
           : kind == LIMEFILE_EXPORT_MILC    ? LIMEFILE_GAUGE_MILC
           : kind == LIMEFILE_EXPORT_OPENQCD ? LIMEFILE_GAUGE_OPENQCD
                                             : LIMEFILE_GAUGE_NONE;
}

bool limefile_export_is_whole_file(const struct limefile_export_spec *spec)
{
    return kind_format(spec->kind) != LIMEFILE_GAUGE_NONE;
}

int export_gauge_open(struct limefile_export *export, const struct limefile_field *field)
{
    struct limefile_sites_field field_sites;
    const struct limefile_gauge_options form = {.format = kind_format(export->spec.kind)};
    export->has_checksum = field->has_checksum;
    export->checksum = field->checksum;
    int err = limefile_sites_from_field(NULL, field, &field_sites, &export->sites);
    if (!err)
        err = limefile_gauge_image_new(&export->sites, &form, &export->image);
    return err == LIMEFILE_E_GAUGE_LATTICE || err == LIMEFILE_E_GAUGE_FORM ? LIMEFILE_E_STATE
                                                                           : err;
}

bool export_gauge_fits(const struct limefile_array *a, const struct limefile_export_spec *spec)
{
    const uint64_t *site = a->shape + a->lattice, *l = a->shape;
    const uint64_t extent[4] = {l[3], l[2], l[1], l[0]};
    return a->lattice == 4 && a->dims == 7 && a->complex && site[0] == 4 && site[1] == 3 &&
           site[2] == 3 && limefile_gauge_supports(kind_format(spec->kind), extent);
}

/* Context of read_record_sites(). */
struct record_reader {
    limefile_export_read_fn *read_record;
    void *context;
    size_t site_bytes;
};

static int read_record_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct record_reader *r = context;
    size_t n = (size_t)count * r->site_bytes;
    return export_read_raw(out, n, first * r->site_bytes, r->read_record, r->context);
}

ssize_t export_gauge_read(const struct limefile_export *export, void *buf, size_t n,
                          uint64_t offset, limefile_export_read_fn *read_record, void *context)
{
    struct record_reader r = {read_record, context, limefile_sites_bytes(&export->sites)};
    return limefile_gauge_image_read_with(export->image, read_record_sites, &r, buf, n, offset);
}

bool limefile_export_is_ready(const struct limefile_export *export)
{
    return !export->image || limefile_gauge_image_is_sealed(export->image);
}

int limefile_export_prepare(struct limefile_export *export, size_t memory,
                            int (*read)(void *, uint64_t first, uint64_t count, void *out),
                            bool (*progress)(void *, uint64_t sites_more), void *context)
{
    struct limefile_gauge_totals totals;
    struct limefile_sites sites = export->sites;
    sites.read = read;
    sites.context = context;
    const struct limefile_gauge source = {.format = LIMEFILE_GAUGE_ILDG, .sites = sites};
    const struct limefile_gauge_pass pass = {.sites = &sites,
                                             .source = export->has_checksum ? &source : NULL,
                                             .image = export->image,
                                             .progress = progress,
                                             .context = context,
                                             .memory = memory};
    int err = limefile_gauge_pass_run(&pass, &totals);
    if (err)
        return err;
    /* Without this check damaged data would get a new, valid checksum. */
    if (export->has_checksum && (totals.source.scidac.suma != export->checksum.suma ||
                                 totals.source.scidac.sumb != export->checksum.sumb))
        return LIMEFILE_D_CHECKSUM;
    return limefile_gauge_image_seal(export->image, &totals);
}
