/*
 * field_verify.c - compare the data of a field with their checksum
 *
 * The checksum depends on the order and the size of the sites, not on the lattice. If the
 * length contradicts the metadata, the lattice or the size of a site is wrong: tmLQCD mixes up
 * extents, and some programs state the size of one number for sites that have many. A matching
 * checksum shows which one is right; 64 bits do not match by chance.
 */
#include "limesites.h"

bool limefile_field_length_fits(const struct limefile_field *f)
{
    if (f->expected)
        return f->expected == f->record.bytes;
    return f->site_bytes == 0 || f->record.bytes % f->site_bytes == 0;
}

/* Changes *f to its i-th layout, or returns false if it does not exist. Possible layouts: sites
 * of the stated size; the stated number of sites. A layout counts if it divides the record's
 * length. */
static bool set_layout(struct limefile_field *f, unsigned i)
{
    uint64_t bytes = f->record.bytes;
    if (f->kind == LIMEFILE_KIND_GLOBAL) {
        f->site_bytes = bytes;
        return i == 0;
    }
    bool whole = bytes % f->site_bytes == 0;
    if (whole && i == 0) {
        f->sites = bytes / f->site_bytes;
        return true;
    }
    if (i != (whole ? 1 : 0) || bytes % f->sites != 0)
        return false;
    f->site_bytes = bytes / f->sites;
    return true;
}

bool limefile_field_layout(const struct limefile_field *f, unsigned i,
                           struct limefile_field *out)
{
    *out = *f;
    if (limefile_field_is_summable(f))
        return i == 0;
    return f->expected && f->record.bytes && !f->is_box && !f->descriptions_differ &&
           set_layout(out, i);
}

const char *limefile_field_why_bad(const struct limefile_field *f)
{
    struct limefile_field as;
    if (!f->has_checksum || f->site_bytes == 0 || f->descriptions_differ ||
        limefile_field_layout(f, 0, &as))
        return NULL;
    if (f->record.bytes % f->site_bytes != 0)
        return "its length is not a whole number of sites";
    if (f->expected == 0 || (f->is_box && f->lattice.dims == 0))
        return NULL;
    return f->record.bytes ? "its length does not match its sites" : "there are no data";
}

const char *limefile_field_why_unverified(const struct limefile_field *f)
{
    struct limefile_field as;
    if (!f->checksum_ordinal)
        return "no checksum";
    if (!f->has_checksum)
        return "its checksum cannot be understood";
    if (limefile_field_layout(f, 0, &as) || limefile_field_why_bad(f))
        return NULL;
    if (f->site_bytes == 0)
        return "the size of a site is unknown";
    if (f->descriptions_differ)
        return "its descriptions disagree on the size of a site";
    if (f->record.bytes == 0)
        return "there are no data";
    return f->is_box ? "its place in the lattice is unknown" : LIMEFILE_WHY_VOLUME;
}

bool limefile_field_sum_matches(const struct limefile_field *f,
                                const struct limefile_checksum *sum)
{
    return sum->suma == f->checksum.suma && sum->sumb == f->checksum.sumb;
}

int limefile_field_verify(struct limefile_source *source, const struct limefile_field *f,
                          unsigned threads, limefile_sum_progress_fn *progress, void *context,
                          struct limefile_field *as, struct limefile_checksum *out)
{
    struct limefile_field reading;
    int matches = LIMEFILE_E_STATE;
    for (unsigned i = 0; matches != 1 && limefile_field_layout(f, i, &reading); i++) {
        struct limefile_checksum sum;
        int err = limefile_field_sum(source, &reading, threads, progress, context, &sum);
        if (err)
            return err;
        matches = limefile_field_sum_matches(f, &sum);
        if (i == 0 || matches) {
            *as = reading;
            *out = sum;
        }
    }
    return matches;
}
