/*
 * fields.h - what is known while a container's metadata and data are put together; inside of
 * src/lime
 */
#ifndef LIMEFILE_FIELDS_H
#define LIMEFILE_FIELDS_H

#include "field.h"
#include "fieldpack.h"
#include "findings.h"

enum role {
    ROLE_OTHER,
    ROLE_ILDG_FORMAT,
    ROLE_PROPAGATOR_FORMAT,
    ROLE_STAGGERED_FORMAT,
    ROLE_SOURCE_FORMAT,
    ROLE_CVC_FORMAT,
    ROLE_PRIVATE_FILE,
    ROLE_PRIVATE_RECORD,
    ROLE_GRID_FORMAT,
    ROLE_CHECKSUM,
    ROLE_LFN,
    ROLE_ILDG_DATA,
    ROLE_SCIDAC_DATA,
};

enum {
    FIELD_TYPES = 16, /* types of records that have a role */
};

/* A metadata record that waits for its data, or holds for those that follow. */
struct said {
    uint64_t ordinal; /* 0: none */
    uint64_t message; /* as counted here */
    bool good;        /* it could be understood */
    bool used;
};

/* A field, as it is kept: an ordinal fits 32 bits. */
struct kept_field {
    uint32_t ordinal;
    uint32_t by_format, by_record, by_file, by_checksum, by_lfn;
    struct limefile_checksum checksum;
    uint64_t description : 63; /* of fieldpack.h; 0: nothing describes it */
    uint64_t has_checksum : 1;
};

struct limefile_fields_kept {
    const struct limefile_index *index;
    struct kept_field *field;
    size_t capacity;
    struct fieldpack descriptions;
    struct findings findings;
};

/* A checksum of this message. */
struct heard_sum {
    uint32_t ordinal;
    uint32_t fields; /* how many there were before it */
    struct limefile_checksum value;
    bool good;
};

struct builder {
    struct limefile_source *source;
    const struct limefile_index *index;
    struct limefile_fields *out;
    char *text; /* of the record that is being read */
    size_t text_capacity;

    const char *of_type[FIELD_TYPES]; /* the index keeps each type once: NULL if it has none */
    uint64_t message;
    size_t message_first;   /* subscript of the first field of this message */
    size_t last_ildg;       /* subscripts + 1 of the last field of ildg-binary-data, */
    size_t formless;        /* of the last one of this message that has no format; 0: none */
    struct heard_sum *sums; /* of this message */
    size_t sum_count, sum_capacity;

    struct said format, etmc, record, file, grid, lfn;
    struct limefile_ildg format_value, etmc_value;
    enum limefile_fieldkind etmc_kind;
    struct limefile_scidac_record record_value;
    struct limefile_scidac_file file_value, grid_value;
};

/* ---- fieldwords.c: all give 0 or a code ---- */

/* A finding; `value` as in findings.h. */
int fields_note(struct builder *, int code, uint64_t ordinal, uint64_t value);

/* Parses the record by its role's parser into `value`. What cannot be understood is a finding.
 */
int fields_hear(struct builder *, const struct limefile_record *, enum role, struct said *,
                void *value);

/* Fill in what describes the field. `format` is builder->format, which stands before the data
 * or, in their message, behind. */
int fields_describe_gauge(struct builder *, struct limefile_field *,
                          const struct limefile_scidac_record *);
int fields_describe_scidac(struct builder *, struct limefile_field *);
int fields_describe_etmc(struct builder *, struct limefile_field *);

/* ---- fieldsums.c ---- */

int fields_hear_checksum(struct builder *, const struct limefile_record *);
int fields_hear_lfn(struct builder *, const struct limefile_record *);

/* At the end of a message: each checksum of it is given to its data. */
int fields_place_checksums(struct builder *);

#endif
