/*
 * sums.h - what is taken over the bytes of a file while they pass: the sums that storage
 * elements and catalogues use, and the SciDAC checksums of its fields
 */
#ifndef STAGE_SUMS_H
#define STAGE_SUMS_H

#include "limeildg.h"

#include <openssl/evp.h>

/* ---- of the whole file ---- */

enum stage_sum_kind {
    STAGE_CKSUM = 1, /* always taken: it costs nothing, and resuming needs it */
    STAGE_ADLER32 = 2,
    STAGE_MD5 = 4,
};

enum {
    STAGE_DATA_MAX = 128,
    STAGE_MD5_BYTES = 16,
};

/* The cksum of a record of ildg-binary-data: crcCheckSum of ILDG's catalogues. */
struct stage_data {
    uint32_t ordinal, cksum;
};

struct stage_digest {
    unsigned kinds; /* of enum stage_sum_kind: which of these there are */
    uint32_t cksum; /* as cksum(1) prints it */
    uint32_t adler32;
    unsigned char md5[STAGE_MD5_BYTES];
    bool has_data;       /* the rest is known: */
    unsigned data_count; /* in the order of the file; */
    uint64_t data_more;  /* so many further ones are not told */
    struct stage_data data[STAGE_DATA_MAX];
};

/* True if the sums that both have are the same, and there is one. */
bool stage_digest_agrees(const struct stage_digest *, const struct stage_digest *);

/* The bytes come in order. */
struct stage_sums {
    unsigned kinds;
    uint64_t bytes; /* so far */
    uint32_t crc;   /* of the bytes alone: cksum's without the length */
    uint32_t adler32;
    EVP_MD_CTX *md5;
};
/* -ENOMEM, or -ENOTSUP if libcrypto has no MD5. */
int stage_sums_init(struct stage_sums *, unsigned kinds);
void stage_sums_release(struct stage_sums *);
void stage_sums_add(struct stage_sums *, const void *data, size_t n);

/* No bytes may be added after it. */
void stage_sums_result(struct stage_sums *, struct stage_digest *out);

/* ---- of the records of ildg-binary-data ---- */

/* Out of the cksum of the file at their ends, so it takes no pass over them. */
struct stage_datasums {
    const struct limefile_fields *fields; /* NULL: none, it is no container */
    size_t next;  /* subscript of the field behind the one that passes */
    bool waiting; /* there is one that has not passed: */
    struct limefile_record record;
    bool begun;                 /* it has begun: */
    struct limefile_cksum head; /* of all bytes before it */

    unsigned count;
    uint64_t more;
    struct stage_data data[STAGE_DATA_MAX];
};

/* `fields` must outlive it; NULL: none. */
void stage_datasums_init(struct stage_datasums *, const struct limefile_fields *fields);

/* The bytes that come next, before `sums` has had them. */
void stage_datasums_add(struct stage_datasums *, const struct stage_sums *sums,
                        const void *data, size_t n);

/* When all have passed; the rest of the digest stays. */
void stage_datasums_result(const struct stage_datasums *, struct stage_digest *out);

/* ---- of the fields ---- */

/* The fields that have a checksum and whose sites are known, one after another. Some are late,
 * summed from the file at the end: their sites are too large to be carried, or it is not
 * certain what they are. */
struct stage_fieldsums {
    const struct limefile_fields *fields; /* NULL: none, it is no container */
    size_t count;                         /* of those that are compared */
    size_t next; /* subscript of the field behind the one that passes */

    bool passing; /* this one does: */
    struct limefile_field field;
    struct limefile_checksum sum;
    uint64_t sites;       /* that are in it */
    unsigned char *carry; /* the beginning of the next site */
    size_t carried;

    uint64_t wrong; /* ordinal of the first that has passed and is wrong; 0: none */
    struct limefile_checksum found;
};

/* `fields` must outlive it; NULL: none. -ENOMEM. */
int stage_fieldsums_init(struct stage_fieldsums *, const struct limefile_fields *fields);
void stage_fieldsums_release(struct stage_fieldsums *);

/* Bytes [offset, offset + n) of the file; they come in order. */
void stage_fieldsums_add(struct stage_fieldsums *, const void *data, size_t n, uint64_t offset);

/* When all have passed; `fd` is for those that are late. The ordinal of the first record whose
 * checksum is wrong, with what was found instead; 0 if all are right. < 0: -errno. */
int64_t stage_fieldsums_verdict(struct stage_fieldsums *, int fd,
                                struct limefile_checksum *found);

#endif
