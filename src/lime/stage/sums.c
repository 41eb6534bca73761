/* sums.c - cksum and Adler-32 by isa-l; SciDAC checksums of sites that no block holds whole */
#include "sums.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

enum {
    CARRY_MAX = 4 << 20, /* the largest site that is carried from one block to the next */
};

/* ---- of the whole file ---- */

bool stage_digest_agrees(const struct stage_digest *a, const struct stage_digest *b)
{
    unsigned both = a->kinds & b->kinds;
    return both && (!(both & STAGE_CKSUM) || a->cksum == b->cksum) &&
           (!(both & STAGE_ADLER32) || a->adler32 == b->adler32) &&
           (!(both & STAGE_MD5) || memcmp(a->md5, b->md5, STAGE_MD5_BYTES) == 0);
}

void stage_sums_init(struct stage_sums *s, unsigned kinds)
{
    /* isa-l takes and gives the complement of the register, which cksum begins with 0. */
    *s = (struct stage_sums){.kinds = kinds | STAGE_CKSUM, .crc = UINT32_MAX, .adler32 = 1};
    stage_md5_init(&s->md5);
}

void stage_sums_add(struct stage_sums *s, const void *data, size_t n)
{
    s->crc = crc32_ieee(s->crc, data, n);
    if (s->kinds & STAGE_ADLER32)
        s->adler32 = isal_adler32(s->adler32, data, n);
    s->bytes += n;
}

void stage_sums_result(const struct stage_sums *s, struct stage_digest *out)
{
    *out = (struct stage_digest){.kinds = s->kinds, .cksum = s->crc, .adler32 = s->adler32};
    for (uint64_t length = s->bytes; length; length >>= 8) {
        unsigned char byte = (unsigned char)length;
        out->cksum = crc32_ieee(out->cksum, &byte, 1);
    }
    if (s->kinds & STAGE_MD5)
        stage_md5_result(&s->md5, out->md5);
}

/* ---- of the fields ---- */

int stage_fieldsums_init(struct stage_fieldsums *s, const struct limefile_fields *fields)
{
    *s = (struct stage_fieldsums){.of = calloc(fields->count + 1, sizeof *s->of)};
    if (!s->of)
        return -ENOMEM;
    for (size_t i = 0; i < fields->count; i++) {
        const struct limefile_field *field = &fields->field[i];
        struct limefile_field as;
        if (!field->has_checksum || !limefile_field_reading(field, 0, &as))
            continue;
        struct stage_fieldsum *f = &s->of[s->count++];
        f->field = field;
        f->late = field->site_bytes > CARRY_MAX || !limefile_field_is_summable(field);
        if (!f->late && !(f->carry = malloc(field->site_bytes))) {
            stage_fieldsums_release(s);
            return -ENOMEM;
        }
    }
    return 0;
}

void stage_fieldsums_release(struct stage_fieldsums *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->of[i].carry);
    free(s->of);
    *s = (struct stage_fieldsums){0};
}

static void add_sites(struct stage_fieldsum *f, const void *data, uint64_t sites)
{
    limefile_field_add(f->field, &f->sum, data, f->sites, sites);
    f->sites += sites;
}

static void add_field_bytes(struct stage_fieldsum *f, const unsigned char *data, size_t n)
{
    size_t site = f->field->site_bytes;
    if (f->carried) {
        size_t part = site - f->carried < n ? site - f->carried : n;
        memcpy(f->carry + f->carried, data, part);
        f->carried += part;
        data += part;
        n -= part;
        if (f->carried < site)
            return;
        add_sites(f, f->carry, 1);
        f->carried = 0;
    }
    if (n >= site)
        add_sites(f, data, n / site);
    f->carried = n % site;
    memcpy(f->carry, data + (n - f->carried), f->carried);
}

void stage_fieldsums_add(struct stage_fieldsums *s, const void *data, size_t n, uint64_t offset)
{
    uint64_t end = offset + n;
    for (size_t i = s->first; i < s->count; i++) {
        struct stage_fieldsum *f = &s->of[i];
        uint64_t begins = f->field->record.data_offset, ends = begins + f->field->record.bytes;
        if (begins >= end)
            return;
        uint64_t from = begins > offset ? begins : offset, to = ends < end ? ends : end;
        if (from < to && !f->late)
            add_field_bytes(f, (const unsigned char *)data + (from - offset),
                            (size_t)(to - from));
        if (ends <= end)
            s->first = i + 1;
    }
}

int64_t stage_fieldsums_verdict(struct stage_fieldsums *s, int fd,
                                struct limefile_checksum *found)
{
    for (size_t i = 0; i < s->count; i++) {
        struct stage_fieldsum *f = &s->of[i];
        struct limefile_field as;
        int err =
            f->late ? limefile_field_verify(fd, f->field, 1, NULL, NULL, &as, &f->sum) : 0;
        if (err < 0)
            return err;
        *found = f->sum;
        if (f->sum.suma != f->field->checksum.suma || f->sum.sumb != f->field->checksum.sumb)
            return (int64_t)f->field->record.ordinal;
    }
    return 0;
}
