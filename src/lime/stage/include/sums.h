/* sums.h - compute sums over the bytes of a file while it is copied: the sums that storage
 * elements and catalogues use, and the SciDAC checksums of its fields. Not thread-safe. */
#ifndef STAGE_SUMS_H
#define STAGE_SUMS_H

#include "limeildg.h"

#include <openssl/evp.h>

/* ---- sums of the whole file ---- */

enum stage_sum_kind {
    STAGE_CKSUM = 1, /* always computed: resuming needs it, and it is fast */
    STAGE_ADLER32 = 2,
    STAGE_MD5 = 4,
    STAGE_SHA256 = 8,
};

enum {
    STAGE_DATA_MAX = 128, /* maximum of ildg-binary-data records whose cksums are stored */
    STAGE_MD5_CHARS = 33,
    STAGE_SHA256_CHARS = 65,
    STAGE_SUM_CHARS = STAGE_SHA256_CHARS, /* of any sum as text */
};

/* The cksum of an ildg-binary-data record's data, called crcCheckSum in ILDG's catalogues. */
struct stage_data_sum {
    uint32_t ordinal, cksum;
};

struct stage_digest {
    unsigned kinds; /* the sums that are set, of enum stage_sum_kind */
    uint32_t cksum; /* as cksum(1) prints it */
    uint32_t adler32;
    char md5[STAGE_MD5_CHARS], sha256[STAGE_SHA256_CHARS]; /* lower-case hexadecimal */
    uint64_t bytes;                                        /* size of the file */
    bool has_data;                                         /* the members below are set */
    unsigned data_count; /* number of elements of `data`, which have the order of the file */
    uint64_t data_more;  /* number of further ildg-binary-data records */
    struct stage_data_sum data[STAGE_DATA_MAX];
};

/* Returns true if the digests have a kind of sum in common, and all common sums are equal. */
bool stage_digest_matches(const struct stage_digest *, const struct stage_digest *);

/* Formats one sum as lists of sums have it: for STAGE_CKSUM, the CRC and the size in decimal;
 * for others, hexadecimal digits. "-" if the digest does not have it. Returns `out`. */
const char *stage_digest_format(const struct stage_digest *, enum stage_sum_kind,
                                char out[STAGE_SUM_CHARS]);

/* Sums of bytes that are added in order. */
struct stage_sums {
    unsigned kinds;
    uint64_t bytes; /* added so far */
    uint32_t crc;   /* complement of cksum's register before cksum adds the length */
    uint32_t adler32;
    EVP_MD_CTX *md5, *sha256; /* NULL: not computed */
};
/* Returns 0, -ENOMEM, or -ENOTSUP if libcrypto does not have a requested hash. */
int stage_sums_init(struct stage_sums *, unsigned kinds);
void stage_sums_release(struct stage_sums *);
void stage_sums_add(struct stage_sums *, const void *data, size_t n);

/* Computes the digest. No bytes may be added after this call. */
void stage_sums_result(struct stage_sums *, struct stage_digest *out);

/* Computes the sums of an open regular file. Calls count() for each block that is read. Returns
 * 0, -errno, LIMEFILE_E_SHRUNK, or -ESTALE for a file that has more bytes than its size. */
int stage_sums_file(int fd, unsigned kinds, bool (*count)(void *context, uint64_t bytes),
                    void *context, struct stage_digest *out);

/* ---- cksums of the ildg-binary-data records ---- */

/* Computes each record's cksum from the file's cksums before and after the record's data, so
 * that no byte is summed twice. */
struct stage_datasums {
    const struct limefile_fields *fields; /* NULL for a file that is not a container */
    size_t next;                          /* subscript of the field after the current one */
    bool has_record;                      /* `record` is set: its data have not ended */
    struct limefile_record record;
    bool has_head;                      /* the data of `record` have begun */
    struct limefile_cksum cksum_before; /* with has_head: cksum of all bytes before the data */

    unsigned count; /* this and the next two: data_count, data_more and data of the digest */
    uint64_t more;
    struct stage_data_sum data[STAGE_DATA_MAX];
};

/* `fields` must outlive the object; NULL for a file that is not a container. */
void stage_datasums_init(struct stage_datasums *, const struct limefile_fields *fields);

/* Adds the next n bytes of the file. sums: the sums of all bytes before these, so call this
 * function before stage_sums_add(). */
void stage_datasums_add(struct stage_datasums *, const struct stage_sums *sums,
                        const void *data, size_t n);

/* Sets has_data and the members after it in the digest. Call it after the last byte. */
void stage_datasums_result(const struct stage_datasums *, struct stage_digest *out);

/* ---- SciDAC checksums of the fields ---- */

/* Computes the checksums of the fields that have a checksum in the file and a known layout. It
 * does this while bytes are added, except for late fields, whose sites are too large for
 * `carry` or of uncertain size: stage_fieldsums_compare() reads late fields from the file. */
struct stage_fieldsums {
    const struct limefile_fields *fields; /* NULL for a file that is not a container */
    size_t count;                         /* number of fields to compare */
    size_t next;                          /* subscript of the field after the current one */

    bool in_field; /* `field` is set: its data are being added */
    struct limefile_field field;
    struct limefile_checksum sum;
    uint64_t sites;       /* number of sites in `sum` */
    unsigned char *carry; /* the beginning of a site that the next call completes */
    size_t carried;       /* number of bytes in `carry` */

    uint64_t wrong_ordinal;         /* first finished field with a wrong checksum, or 0 */
    struct limefile_checksum found; /* the checksum of that field's data */
};

/* `fields` must outlive the object; NULL for a file that is not a container. -ENOMEM. */
int stage_fieldsums_init(struct stage_fieldsums *, const struct limefile_fields *fields);
void stage_fieldsums_release(struct stage_fieldsums *);

/* Adds bytes [offset, offset + n) of the file; calls must be in order. */
void stage_fieldsums_add(struct stage_fieldsums *, const void *data, size_t n, uint64_t offset);

/* Reads late fields from `fd`, and compares all checksums. Call it after the last byte. Returns
 * 0; a negative code; or the ordinal of the first record whose checksum is wrong, and sets
 * *found to the checksum of its data. */
int64_t stage_fieldsums_compare(struct stage_fieldsums *, int fd,
                                struct limefile_checksum *found);

#endif
