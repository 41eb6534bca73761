/* sums.c - compute the cksum, Adler-32, MD5 and SHA-256 of a file, and the checksums of its
 * fields */
#include "sums.h"

#include <errno.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000 /* it has no properties like "-fips" */
#define EVP_MD_fetch(library, name, properties) ((EVP_MD *)EVP_get_digestbyname(name))
#define EVP_MD_free(kind)                       ((void)(kind))
#endif

enum { CARRY_MAX = 4 << 20 }; /* bytes of the largest site for which `carry` is used */

/* ---- sums of the whole file ---- */

bool stage_digest_matches(const struct stage_digest *a, const struct stage_digest *b)
{
    unsigned both = a->kinds & b->kinds;
    return both && (!(both & STAGE_CKSUM) || a->cksum == b->cksum) &&
           (!(both & STAGE_ADLER32) || a->adler32 == b->adler32) &&
           (!(both & STAGE_MD5) || strcmp(a->md5, b->md5) == 0) &&
           (!(both & STAGE_SHA256) || strcmp(a->sha256, b->sha256) == 0);
}

const char *stage_digest_format(const struct stage_digest *d, enum stage_sum_kind kind,
                                char out[STAGE_SUM_CHARS])
{
    if (!(d->kinds & kind))
        strcpy(out, "-");
    else if (kind == STAGE_CKSUM)
        snprintf(out, STAGE_SUM_CHARS, "%" PRIu32 " %" PRIu64, d->cksum, d->bytes);
    else if (kind == STAGE_ADLER32)
        snprintf(out, STAGE_SUM_CHARS, "%08" PRIx32, d->adler32);
    else
        strcpy(out, kind == STAGE_MD5 ? d->md5 : d->sha256);
    return out;
}

/* "-fips" allows MD5 even in FIPS mode: MD5 only identifies files here. */
static int create_hash(EVP_MD_CTX **out, const char *name)
{
    *out = EVP_MD_CTX_new();
    EVP_MD *kind = EVP_MD_fetch(NULL, name, "-fips");
    int err = *out ? 0 : -ENOMEM;
    if (!err && (!kind || !EVP_DigestInit_ex(*out, kind, NULL)))
        err = -ENOTSUP;
    EVP_MD_free(kind);
    return err;
}

int stage_sums_init(struct stage_sums *s, unsigned kinds)
{
    /* isa-l takes and returns the complement of the register, which is initially 0 in cksum. */
    *s = (struct stage_sums){.kinds = kinds | STAGE_CKSUM, .crc = UINT32_MAX, .adler32 = 1};
    int err = kinds & STAGE_MD5 ? create_hash(&s->md5, "MD5") : 0;
    if (!err && kinds & STAGE_SHA256)
        err = create_hash(&s->sha256, "SHA256");
    if (err)
        stage_sums_release(s);
    return err;
}

void stage_sums_release(struct stage_sums *s)
{
    EVP_MD_CTX_free(s->md5);
    EVP_MD_CTX_free(s->sha256);
    s->md5 = s->sha256 = NULL;
}

void stage_sums_add(struct stage_sums *s, const void *data, size_t n)
{
    s->crc = crc32_ieee(s->crc, data, n);
    if (s->kinds & STAGE_ADLER32)
        s->adler32 = isal_adler32(s->adler32, data, n);
    if (s->md5)
        EVP_DigestUpdate(s->md5, data, n);
    if (s->sha256)
        EVP_DigestUpdate(s->sha256, data, n);
    s->bytes += n;
}

/* Formats the hash, if there is one. Returns false if libcrypto fails. */
static bool finish_hash(EVP_MD_CTX *hash, char *out)
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (hash && !EVP_DigestFinal_ex(hash, bytes, &n))
        return false;
    for (unsigned i = 0; i < n; i++)
        sprintf(out + 2 * i, "%02x", bytes[i]);
    return true;
}

void stage_sums_result(struct stage_sums *s, struct stage_digest *out)
{
    *out = (struct stage_digest){
        .kinds = s->kinds, .cksum = s->crc, .adler32 = s->adler32, .bytes = s->bytes};
    for (uint64_t length = s->bytes; length; length >>= 8) {
        unsigned char byte = (unsigned char)length;
        out->cksum = crc32_ieee(out->cksum, &byte, 1);
    }
    if (!finish_hash(s->md5, out->md5))
        out->kinds &= ~(unsigned)STAGE_MD5;
    if (!finish_hash(s->sha256, out->sha256))
        out->kinds &= ~(unsigned)STAGE_SHA256;
}

/* ---- cksums of the ildg-binary-data records ---- */

void stage_datasums_init(struct stage_datasums *s, const struct limefile_fields *fields)
{
    *s = (struct stage_datasums){.fields = fields};
}

/* If no record is in progress, sets s->record to the next ildg-binary-data record. Returns
 * false if no record is left. */
static bool find_next_data(struct stage_datasums *s)
{
    while (!s->has_record && s->fields && s->next < s->fields->count) {
        struct limefile_field field;
        limefile_fields_get(s->fields, s->next++, &field);
        s->record = field.record;
        s->has_record = strcmp(field.record.type, "ildg-binary-data") == 0;
        if (s->has_record && s->count == STAGE_DATA_MAX) {
            s->has_record = false;
            s->more++;
        }
    }
    return s->has_record;
}

/* Adds the record's cksum. all: the cksum of the file up to the end of the record's data. */
static void finish_data(struct stage_datasums *s, const struct limefile_cksum *all)
{
    struct limefile_cksum part = *all;
    limefile_cksum_cut(&part, &s->cksum_before);
    s->data[s->count++] =
        (struct stage_data_sum){(uint32_t)s->record.ordinal, limefile_cksum_result(&part)};
    s->has_record = s->has_head = false;
}

void stage_datasums_add(struct stage_datasums *s, const struct stage_sums *sums,
                        const void *data, size_t n)
{
    struct limefile_cksum all = {.crc = ~sums->crc, .bytes = sums->bytes};
    const unsigned char *at = data;
    while (find_next_data(s)) {
        uint64_t edge = s->record.data_offset + (s->has_head ? s->record.bytes : 0);
        if (edge - sums->bytes > n)
            return;
        size_t more = (size_t)(edge - all.bytes);
        limefile_cksum_add(&all, at, more);
        at += more;
        if (s->has_head) {
            finish_data(s, &all);
        } else {
            s->cksum_before = all;
            s->has_head = true;
        }
    }
}

void stage_datasums_result(const struct stage_datasums *s, struct stage_digest *out)
{
    out->has_data = true;
    out->data_count = s->count;
    out->data_more = s->more;
    memcpy(out->data, s->data, s->count * sizeof *s->data);
}

/* ---- SciDAC checksums of the fields ---- */

/* Returns true if the file states the field's checksum and the field's layout is known. */
static bool is_compared(const struct limefile_field *field)
{
    struct limefile_field read_as;
    return field->has_checksum && limefile_field_layout(field, 0, &read_as);
}

/* Returns true if stage_fieldsums_compare() reads the field from the file. */
static bool is_summed_late(const struct limefile_field *field)
{
    return field->site_bytes > CARRY_MAX || !limefile_field_is_summable(field);
}

static size_t field_count(const struct stage_fieldsums *s)
{
    return s->fields ? s->fields->count : 0;
}

int stage_fieldsums_init(struct stage_fieldsums *s, const struct limefile_fields *fields)
{
    size_t largest = 0;
    *s = (struct stage_fieldsums){.fields = fields};
    for (size_t i = 0; i < field_count(s); i++) {
        struct limefile_field field;
        limefile_fields_get(fields, i, &field);
        if (!is_compared(&field))
            continue;
        s->count++;
        if (!is_summed_late(&field) && field.site_bytes > largest)
            largest = (size_t)field.site_bytes;
    }
    s->carry = malloc(largest + 1);
    return s->carry ? 0 : -ENOMEM;
}

void stage_fieldsums_release(struct stage_fieldsums *s)
{
    free(s->carry);
    *s = (struct stage_fieldsums){0};
}

static void sum_field_sites(struct stage_fieldsums *s, const void *data, uint64_t sites)
{
    limefile_field_add_sites(&s->field, &s->sum, data, s->sites, sites);
    s->sites += sites;
}

/* Adds the next bytes of s->field. Stores the bytes of an incomplete site in s->carry. */
static void add_field_bytes(struct stage_fieldsums *s, const unsigned char *data, size_t n)
{
    size_t site = (size_t)s->field.site_bytes;
    if (s->carried) {
        size_t part = site - s->carried < n ? site - s->carried : n;
        memcpy(s->carry + s->carried, data, part);
        s->carried += part;
        data += part;
        n -= part;
        if (s->carried < site)
            return;
        sum_field_sites(s, s->carry, 1);
        s->carried = 0;
    }
    if (n >= site)
        sum_field_sites(s, data, n / site);
    s->carried = n % site;
    memcpy(s->carry, data + (n - s->carried), s->carried);
}

/* If no field is in progress, begins the next field to sum. False: no field is left. */
static bool start_next_field(struct stage_fieldsums *s)
{
    while (!s->in_field && s->next < field_count(s)) {
        limefile_fields_get(s->fields, s->next++, &s->field);
        s->in_field = is_compared(&s->field) && !is_summed_late(&s->field);
    }
    return s->in_field;
}

static void finish_field(struct stage_fieldsums *s)
{
    if (!s->wrong_ordinal && !limefile_field_sum_matches(&s->field, &s->sum)) {
        s->wrong_ordinal = s->field.record.ordinal;
        s->found = s->sum;
    }
    s->sum = (struct limefile_checksum){0};
    s->sites = s->carried = 0;
    s->in_field = false;
}

void stage_fieldsums_add(struct stage_fieldsums *s, const void *data, size_t n, uint64_t offset)
{
    uint64_t end = offset + n;
    while (start_next_field(s)) {
        uint64_t start = s->field.record.data_offset, stop = start + s->field.record.bytes;
        if (start >= end)
            return;
        uint64_t from = start > offset ? start : offset, to = stop < end ? stop : end;
        if (from < to)
            add_field_bytes(s, (const unsigned char *)data + (from - offset),
                            (size_t)(to - from));
        if (stop > end)
            return;
        finish_field(s);
    }
}

int64_t stage_fieldsums_compare(struct stage_fieldsums *s, int fd,
                                struct limefile_checksum *found)
{
    if (start_next_field(s)) /* the file has ended before or inside the field */
        finish_field(s);
    for (size_t i = 0; i < field_count(s); i++) {
        struct limefile_field field, read_as;
        struct limefile_fd file;
        limefile_fields_get(s->fields, i, &field);
        if (s->wrong_ordinal && s->wrong_ordinal < field.record.ordinal)
            break;
        if (!is_compared(&field) || !is_summed_late(&field))
            continue;
        limefile_fd_init(&file, fd);
        int err = limefile_field_verify(&file.source, &field, 1, NULL, NULL, &read_as, found);
        if (err < 0)
            return err;
        if (!limefile_field_sum_matches(&field, found))
            return (int64_t)field.record.ordinal;
    }
    *found = s->found;
    return (int64_t)s->wrong_ordinal;
}
