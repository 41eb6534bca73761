/*
 * fields.c - find out which records of a container belong together, in one pass over its index
 *
 * The pass goes from message to message. A message ends between two records if the first has ME
 * and the second has MB. If only one of these flags is set, the message continues in this
 * module. limeildg.h states which records of a message belong together.
 */
#define _GNU_SOURCE
#include "array.h"
#include "field.h"
#include "fieldpack.h"
#include "findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

enum { FIELD_TYPES = 16 }; /* number of entries in types[] */

/* The last metadata record of a kind. It can describe data after it. */
struct metadata {
    uint64_t ordinal; /* 0: no such record */
    uint64_t message; /* number of its message, counted by this module */
    bool is_valid;    /* its data could be parsed */
    bool used;        /* data that it describes have been found */
};

/* A stored field. An ordinal fits 32 bits. */
struct field_entry {
    uint32_t ordinal;
    uint32_t format_ordinal, private_ordinal, by_file, checksum_ordinal, lfn_ordinal;
    struct limefile_checksum checksum;
    uint64_t description : 63; /* for fieldpack_get(); 0: no description */
    uint64_t has_checksum : 1;
};

struct limefile_fields_store {
    const struct limefile_index *index;
    struct field_entry *field;
    size_t capacity;
    struct fieldpack descriptions;
    struct findings findings;
};

/* A checksum record of the current message. */
struct checksum_record {
    uint32_t ordinal;
    uint32_t fields; /* number of fields before it */
    struct limefile_checksum value;
    bool is_valid;
};

struct builder {
    struct limefile_source *source;
    const struct limefile_index *index;
    struct limefile_fields *out;
    char *text; /* data of the current record */
    size_t text_capacity;

    const char *index_types[FIELD_TYPES]; /* texts of types[] in the index; NULL if absent */
    uint64_t message;
    size_t message_first;         /* subscript of the first field of the current message */
    size_t last_ildg;             /* subscript + 1 of the last ildg-binary-data, or 0 */
    size_t no_format;             /* the same, but of this message and without a format */
    struct checksum_record *sums; /* of the current message */
    size_t sum_count, sum_capacity;

    struct metadata format, etmc, record, file, grid, lfn;
    struct limefile_ildg format_value, etmc_value;
    enum limefile_fieldkind etmc_kind;
    struct limefile_scidac_record record_value;
    struct limefile_scidac_file file_value, grid_value;
};

static const struct {
    const char *type;
    enum role role;
} types[] = {
    {"ildg-format", ROLE_ILDG_FORMAT},
    {"etmc-propagator-format", ROLE_PROPAGATOR_FORMAT},
    {"quda-propagator-format", ROLE_PROPAGATOR_FORMAT}, /* the same, written by QUDA */
    {"etmc-propagator-type", ROLE_PROPAGATOR_FORMAT},   /* written by cvc */
    {"stag-propagator-format", ROLE_STAGGERED_FORMAT},  /* written by nissa */
    {"etmc-source-format", ROLE_SOURCE_FORMAT},
    {"cvc-contraction-format", ROLE_CVC_FORMAT},
    {"cvc_contraction-format", ROLE_CVC_FORMAT},
    {"scidac-private-file-xml", ROLE_PRIVATE_FILE},
    {"scidac-private-record-xml", ROLE_PRIVATE_RECORD},
    {"grid-format", ROLE_GRID_FORMAT},
    {"scidac-checksum", ROLE_CHECKSUM},
    {"ildg-data-lfn", ROLE_LFN},
    {"ildg-data-LFN", ROLE_LFN}, /* written by qcdutils */
    {"ildg-binary-data", ROLE_ILDG_DATA},
    {"scidac-binary-data", ROLE_SCIDAC_DATA},
};

_Static_assert(sizeof types / sizeof types[0] == FIELD_TYPES,
               "FIELD_TYPES must be the size of types[]");

bool limefile_record_is_data(const struct limefile_record *record)
{
    return strcmp(record->type, "ildg-binary-data") == 0 ||
           strcmp(record->type, "scidac-binary-data") == 0;
}

/* ---- findings ---- */

/* Adds a finding; `value` is as in findings.h. */
static int add_finding(struct builder *b, int code, uint64_t ordinal, uint64_t value)
{
    struct limefile_record record;
    int err = limefile_index_get(b->index, ordinal, &record);
    return err ? err : findings_add(&b->out->store->findings, code, &record, value);
}

/* ---- reading ---- */

/* Reads the data of a metadata record into b->text. LIMEFILE_E_XML: too long for metadata. */
static int read_text(struct builder *b, const struct limefile_record *record, size_t *n)
{
    if (record->bytes > LIMEFILE_XML_BYTES_MAX)
        return LIMEFILE_E_XML;
    *n = (size_t)record->bytes;
    if (*n > b->text_capacity || !b->text) {
        free(b->text);
        b->text_capacity = *n < 4096 ? 4096 : *n;
        b->text = malloc(b->text_capacity);
        if (!b->text)
            return -ENOMEM;
    }
    return limefile_read_exact(b->source, b->text, *n, record->data_offset);
}

static bool is_blank_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != '\0' && text[i] != ' ' && (text[i] < '\t' || text[i] > '\r'))
            return false;
    return true;
}

/* Parses n bytes of b->text into `value`. Sets *ignored to the first optional element that
 * cannot be parsed, or NULL. */
static int parse_metadata(struct builder *b, enum role role, size_t n, void *value,
                          const char **ignored)
{
    int err;
    *ignored = NULL;
    switch (role) {
    case ROLE_PRIVATE_FILE:
        err = limefile_scidac_file_parse(b->text, n, value);
        *ignored = err ? NULL : ((struct limefile_scidac_file *)value)->ignored;
        return err;
    case ROLE_PRIVATE_RECORD:
        err = limefile_scidac_record_parse(b->text, n, value);
        *ignored = err ? NULL : ((struct limefile_scidac_record *)value)->ignored;
        return err;
    case ROLE_CHECKSUM:
        return limefile_checksum_parse(b->text, n, value);
    case ROLE_GRID_FORMAT:
        return limefile_grid_parse(b->text, n, value);
    case ROLE_LFN:
        return limefile_lfn_parse(b->text, n, value);
    default:
        err = role == ROLE_CVC_FORMAT ? limefile_cvc_parse(b->text, n, value)
                                      : limefile_ildg_parse(b->text, n, value);
        *ignored = err ? NULL : ((struct limefile_ildg *)value)->ignored;
        return err;
    }
}

/* Fills *meta and *value from a record; the type of *value depends on `role`. Adds a finding if
 * parsing fails. */
static int read_metadata(struct builder *b, const struct limefile_record *record,
                         enum role role, struct metadata *meta, void *value)
{
    size_t n = 0;
    const char *ignored = NULL;
    *meta = (struct metadata){.ordinal = record->ordinal, .message = b->message};
    int err = read_text(b, record, &n);
    bool is_read = !err;
    if (!err)
        err = parse_metadata(b, role, n, value, &ignored);
    /* Ignores a grid-format without contents, and an LFN that is empty: Grid writes both. */
    if (is_read && ((role == ROLE_GRID_FORMAT && err == LIMEFILE_E_XML_VALUE) ||
                    (role == ROLE_LFN && is_blank_text(b->text, n)))) {
        *meta = (struct metadata){.ordinal = 0};
        return 0;
    }
    meta->is_valid = err == 0;
    if (err == LIMEFILE_E_XML || err == LIMEFILE_E_XML_VALUE)
        return add_finding(b, LIMEFILE_D_XML, record->ordinal, (uint64_t)-err);
    if (!err && ignored)
        err = add_finding(b, LIMEFILE_D_OPTIONAL, record->ordinal, (uintptr_t)ignored);
    return err;
}

/* ---- descriptions of data ---- */

static const struct limefile_scidac_file *file_metadata(const struct builder *b)
{
    return b->file.is_valid ? &b->file_value : NULL;
}

static int check_length(struct builder *b, const struct limefile_field *f)
{
    if (limefile_field_length_fits(f))
        return 0;
    return add_finding(b, LIMEFILE_D_FIELD_LENGTH, f->record.ordinal, f->expected);
}

/* Describes the field and checks its length. If the metadata describe more bytes than a file
 * can have, adds a finding on the record with ordinal `by` instead. */
static int describe_field(struct builder *b, struct limefile_field *f,
                          enum limefile_fieldkind kind, const struct field_metadata *meta,
                          uint64_t by)
{
    int err = field_describe(f, kind, meta);
    if (err)
        return add_finding(b, LIMEFILE_D_XML, by, (uint64_t)-err);
    return check_length(b, f);
}

/* Describes data by the ildg-format. record: the private record of the data, or NULL. */
static int describe_gauge(struct builder *b, struct limefile_field *f,
                          const struct limefile_scidac_record *record)
{
    const struct field_metadata meta = {&b->format_value, record, file_metadata(b)};
    b->format.used = true;
    f->format_ordinal = b->format.ordinal;
    if (!b->format.is_valid)
        return 0;
    if (meta.file)
        f->by_file = b->file.ordinal;
    int err = describe_field(b, f, LIMEFILE_KIND_GAUGE, &meta, f->format_ordinal);
    if (f->kind != LIMEFILE_KIND_GAUGE)
        return err;
    if (!err && !field_agrees_with_record(f, &meta))
        err = add_finding(b, LIMEFILE_D_FORMAT_DIFFERS, f->private_ordinal, 0);
    if (!err && !field_agrees_with_file(f, &meta))
        err = add_finding(b, LIMEFILE_D_FORMAT_DIFFERS, f->by_file, 0);
    struct limefile_gaugename gauge;
    if (!limefile_gaugename_parse(f->name, &gauge) && !strcasestr(f->name, "gauge") &&
        !field_is_links(f))
        f->kind = LIMEFILE_KIND_SCIDAC; /* not in ILDG, but programs write such fields */
    return err;
}

static int describe_scidac(struct builder *b, struct limefile_field *f)
{
    bool has_grid = b->grid.is_valid && b->grid.message == b->record.message;
    const struct field_metadata meta = {NULL, &b->record_value,
                                        has_grid ? &b->grid_value : file_metadata(b)};
    bool global = meta.record->recordtype == LIMEFILE_GLOBAL;
    if (meta.file)
        f->by_file = has_grid ? b->grid.ordinal : b->file.ordinal;
    int err = describe_field(b, f, global ? LIMEFILE_KIND_GLOBAL : LIMEFILE_KIND_SCIDAC, &meta,
                             f->private_ordinal);
    if (!err && f->is_box && meta.file && f->lattice.dims == 0)
        err = add_finding(b, LIMEFILE_D_FORMAT_DIFFERS, f->private_ordinal, 0);
    if (!err && f->lattice.dims && !limefile_datatype_is_known(f->name))
        err = add_finding(b, LIMEFILE_D_DATATYPE, f->private_ordinal, 0);
    return err;
}

/* tmLQCD writes one format and then a record for each flavour, each in its own message. So a
 * format describes the next record, and later ones if they have the length that it states. */
static int describe_etmc(struct builder *b, struct limefile_field *f)
{
    const struct field_metadata meta = {&b->etmc_value, NULL, NULL};
    bool first = !b->etmc.used;
    b->etmc.used = true;
    if (!b->etmc.is_valid) {
        f->format_ordinal = first ? b->etmc.ordinal : 0;
        return 0;
    }
    struct limefile_field described = *f;
    described.format_ordinal = b->etmc.ordinal;
    if (first) {
        f->format_ordinal = b->etmc.ordinal;
        return describe_field(b, f, b->etmc_kind, &meta, f->format_ordinal);
    }
    if (field_describe(&described, b->etmc_kind, &meta) == 0 &&
        described.expected == f->record.bytes)
        *f = described;
    return 0;
}

/* ---- checksums and logical file names ---- */

static int read_checksum(struct builder *b, const struct limefile_record *record)
{
    struct checksum_record sum = {.ordinal = (uint32_t)record->ordinal,
                                  .fields = (uint32_t)b->out->count};
    struct metadata meta;
    if (!limefile_reserve(&b->sums, &b->sum_capacity, b->sum_count + 1, sizeof *b->sums))
        return -ENOMEM;
    int err = read_metadata(b, record, ROLE_CHECKSUM, &meta, &sum.value);
    sum.is_valid = meta.is_valid;
    if (!err)
        b->sums[b->sum_count++] = sum;
    return err;
}

/* Returns true if checksums and binary records alternate in the message, a checksum first. */
static bool checksums_precede_data(const struct builder *b)
{
    bool before = b->sum_count == b->out->count - b->message_first;
    for (size_t i = 0; before && i < b->sum_count; i++)
        before = b->sums[i].fields == b->message_first + i;
    return before;
}

/* Returns the field that a checksum belongs to: the field before it in its message or, if no
 * field is there or `next` is true, the field after it. If the message has no fields, returns
 * the last field of earlier messages, or NULL. */
static struct field_entry *find_checksum_field(const struct builder *b,
                                               const struct checksum_record *sum, bool next)
{
    struct field_entry *field = b->out->store->field;
    size_t count = b->out->count;
    if (count == b->message_first)
        return count ? &field[count - 1] : NULL;
    next = next || sum->fields == b->message_first;
    return &field[next ? sum->fields : sum->fields - 1];
}

/* Gives the checksum to the field `f`, or adds a finding. A field gets the first checksum after
 * its data, or the last one before them if none follows. */
static int assign_checksum(struct builder *b, struct field_entry *f,
                           const struct checksum_record *sum)
{
    bool is_replaceable =
        f && f >= b->out->store->field + b->message_first && f->checksum_ordinal < f->ordinal;
    bool is_assigned = f && (!f->checksum_ordinal || is_replaceable);
    uint32_t unassigned = is_assigned ? f->checksum_ordinal : sum->ordinal;
    if (is_assigned) {
        f->checksum_ordinal = sum->ordinal;
        f->has_checksum = sum->is_valid;
        f->checksum = sum->value;
    }
    return unassigned ? add_finding(b, LIMEFILE_D_CHECKSUM_ALONE, unassigned, 0) : 0;
}

static int assign_checksums(struct builder *b)
{
    bool before = checksums_precede_data(b);
    int err = 0;
    for (size_t i = 0; !err && i < b->sum_count; i++)
        err = assign_checksum(b, find_checksum_field(b, &b->sums[i], before), &b->sums[i]);
    b->sum_count = 0;
    return err;
}

static int read_lfn(struct builder *b, const struct limefile_record *record)
{
    char lfn[LIMEFILE_LFN_MAX];
    int err = read_metadata(b, record, ROLE_LFN, &b->lfn, lfn);
    if (err || !b->lfn.ordinal)
        return err;
    if (b->lfn.is_valid && !b->out->lfn_ordinal) {
        b->out->lfn_ordinal = record->ordinal;
        strcpy(b->out->lfn, lfn);
    }
    struct field_entry *f = b->last_ildg ? &b->out->store->field[b->last_ildg - 1] : NULL;
    if (f && b->last_ildg > b->message_first && !f->lfn_ordinal) {
        f->lfn_ordinal = (uint32_t)record->ordinal;
        b->lfn.ordinal = 0;
    }
    return 0;
}

/* ---- the pass over the records ---- */

static int report_late_format(struct builder *b)
{
    return add_finding(b, LIMEFILE_D_FORMAT_LATE, b->format.ordinal, 0);
}

static int read_format(struct builder *b, const struct limefile_record *record)
{
    int err = b->format.ordinal && !b->format.used ? report_late_format(b) : 0;
    return err ? err : read_metadata(b, record, ROLE_ILDG_FORMAT, &b->format, &b->format_value);
}

static int read_etmc(struct builder *b, const struct limefile_record *record, enum role role)
{
    b->etmc_kind = role == ROLE_SOURCE_FORMAT ? LIMEFILE_KIND_SOURCE
                   : role == ROLE_CVC_FORMAT  ? LIMEFILE_KIND_SCIDAC
                                              : LIMEFILE_KIND_PROPAGATOR;
    int err = read_metadata(b, record, role, &b->etmc, &b->etmc_value);
    if (role == ROLE_STAGGERED_FORMAT)
        b->etmc_value.components = 3; /* its XML does not differ from that of a spinor */
    return err;
}

/* Stores the field in *to. */
static int store_field(struct builder *b, struct field_entry *to,
                       const struct limefile_field *f)
{
    uint64_t description = 0;
    if (f->kind != LIMEFILE_KIND_UNKNOWN) {
        int err = fieldpack_put(&b->out->store->descriptions, f, &description);
        if (err)
            return err;
    }
    *to = (struct field_entry){
        .ordinal = (uint32_t)f->record.ordinal,
        .format_ordinal = (uint32_t)f->format_ordinal,
        .private_ordinal = (uint32_t)f->private_ordinal,
        .by_file = (uint32_t)f->by_file,
        .lfn_ordinal = (uint32_t)f->lfn_ordinal,
        .description = description & INT64_MAX,
    };
    return 0;
}

static int add_field(struct builder *b, const struct limefile_field *f)
{
    struct limefile_fields_store *store = b->out->store;
    if (!limefile_reserve(&store->field, &store->capacity, b->out->count + 1,
                          sizeof *store->field))
        return -ENOMEM;
    int err = store_field(b, &store->field[b->out->count], f);
    b->out->count += !err;
    return err;
}

static int add_ildg_data(struct builder *b, struct limefile_field *f,
                         const struct limefile_scidac_record *record)
{
    int err = 0;
    if (b->lfn.ordinal) {
        f->lfn_ordinal = b->lfn.ordinal;
        b->lfn.ordinal = 0;
    }
    b->last_ildg = b->out->count + 1;
    if (b->format.ordinal && !b->format.used) {
        err = b->format.message == b->message ? 0 : report_late_format(b);
        return err ? err : describe_gauge(b, f, record);
    }
    b->no_format = b->last_ildg;
    return record ? describe_scidac(b, f) : 0;
}

static int add_scidac_data(struct builder *b, struct limefile_field *f,
                           const struct limefile_scidac_record *record)
{
    if (b->etmc.ordinal > b->record.ordinal)
        return describe_etmc(b, f);
    return record ? describe_scidac(b, f) : 0;
}

static int add_data(struct builder *b, const struct limefile_record *data, enum role role)
{
    struct limefile_field f = {.record = *data};
    const struct limefile_scidac_record *record = NULL;
    if (b->record.ordinal && !b->record.used) {
        f.private_ordinal = b->record.ordinal;
        b->record.used = true;
        record = b->record.is_valid ? &b->record_value : NULL;
    }
    int err =
        role == ROLE_ILDG_DATA ? add_ildg_data(b, &f, record) : add_scidac_data(b, &f, record);
    return err ? err : add_field(b, &f);
}

/* Describes data by an ildg-format that comes after the data in their message. */
static int describe_by_late_format(struct builder *b)
{
    struct limefile_field f;
    limefile_fields_get(b->out, b->no_format - 1, &f);
    f = (struct limefile_field){
        .record = f.record,
        .private_ordinal = f.private_ordinal,
        .lfn_ordinal = f.lfn_ordinal,
    };
    int err = report_late_format(b);
    if (!err)
        err = describe_gauge(b, &f, NULL);
    return err ? err : store_field(b, &b->out->store->field[b->no_format - 1], &f);
}

/* Ends a message: assigns the metadata at its end to the last data before them. */
static int end_message(struct builder *b)
{
    int err = 0;
    if (b->format.ordinal && !b->format.used && b->no_format && b->format.message == b->message)
        err = describe_by_late_format(b);
    if (!err)
        err = assign_checksums(b);
    struct field_entry *last = b->last_ildg ? &b->out->store->field[b->last_ildg - 1] : NULL;
    if (b->lfn.ordinal && last && !last->lfn_ordinal) {
        last->lfn_ordinal = (uint32_t)b->lfn.ordinal;
        b->lfn.ordinal = 0;
    }
    b->message++;
    b->message_first = b->out->count;
    b->no_format = 0;
    return err;
}

static enum role record_role(const struct builder *b, const struct limefile_record *record)
{
    for (size_t i = 0; i < FIELD_TYPES; i++)
        if (b->index_types[i] == record->type)
            return types[i].role;
    return ROLE_OTHER;
}

static int process_record(struct builder *b, const struct limefile_record *record)
{
    enum role role = record_role(b, record);
    if (role != ROLE_OTHER && role != ROLE_ILDG_DATA && role != ROLE_SCIDAC_DATA)
        b->out->described = true;
    switch (role) {
    case ROLE_ILDG_FORMAT:
        return read_format(b, record);
    case ROLE_PROPAGATOR_FORMAT:
    case ROLE_STAGGERED_FORMAT:
    case ROLE_SOURCE_FORMAT:
    case ROLE_CVC_FORMAT:
        return read_etmc(b, record, role);
    case ROLE_PRIVATE_FILE:
        return read_metadata(b, record, role, &b->file, &b->file_value);
    case ROLE_PRIVATE_RECORD:
        return read_metadata(b, record, role, &b->record, &b->record_value);
    case ROLE_GRID_FORMAT:
        return read_metadata(b, record, role, &b->grid, &b->grid_value.lattice);
    case ROLE_CHECKSUM:
        return read_checksum(b, record);
    case ROLE_LFN:
        return read_lfn(b, record);
    case ROLE_ILDG_DATA:
    case ROLE_SCIDAC_DATA:
        return add_data(b, record, role);
    case ROLE_OTHER:
        break;
    }
    return 0;
}

/* Finds out which of types[] the container has. Returns false if it has none of them. */
static bool find_types(struct builder *b)
{
    struct limefile_record first;
    uint64_t count;
    bool any = false;
    for (size_t i = 0; i < FIELD_TYPES; i++) {
        b->index_types[i] = NULL;
        if (limefile_index_by_type(b->index, types[i].type, strlen(types[i].type), &first,
                                   &count) == 0) {
            b->index_types[i] = first.type;
            any = true;
        }
    }
    return any;
}

static int process_records(struct builder *b)
{
    struct limefile_record record;
    bool ended = false;
    int err = 0;
    for (uint64_t i = 1; !err && limefile_index_get(b->index, i, &record) == 0; i++) {
        if (record.mb && ended)
            err = end_message(b);
        if (!err)
            err = process_record(b, &record);
        ended = record.me;
    }
    /* The data of these metadata are after the fault, where they cannot be read. */
    if (limefile_index_fault(b->index) && b->message_first == b->out->count)
        b->format.ordinal = b->sum_count = 0;
    if (!err)
        err = end_message(b);
    if (!err && b->format.ordinal && !b->format.used)
        err = report_late_format(b);
    return err;
}

/* Returns true if ILDG requires an ildg-format for this ildg-binary-data. Fields of Grid need
 * none: Grid writes any field as ildg-binary-data and describes it in the private record. In a
 * container without ILDG or SciDAC metadata, data that are not whole complex numbers need none:
 * they cannot be a configuration, and their type has no special meaning. */
static bool requires_format(const struct limefile_fields *fields,
                            const struct limefile_field *f)
{
    enum { COMPLEX_BYTES = 8 }; /* single precision */
    return !field_is_grid(f) && (fields->described || f->record.bytes % COMPLEX_BYTES == 0);
}

static int report_missing_formats(struct builder *b)
{
    int err = 0;
    const char *ildg_data = NULL;
    for (size_t i = 0; i < FIELD_TYPES; i++)
        if (types[i].role == ROLE_ILDG_DATA)
            ildg_data = b->index_types[i];
    for (size_t i = 0; !err && i < b->out->count; i++) {
        struct limefile_field f;
        if (b->out->store->field[i].format_ordinal)
            continue;
        limefile_fields_get(b->out, i, &f);
        if (f.record.type == ildg_data && requires_format(b->out, &f))
            err = add_finding(b, LIMEFILE_D_FORMAT_MISSING, f.record.ordinal, 0);
    }
    return err;
}

int limefile_fields_build(struct limefile_source *source, const struct limefile_index *index,
                          struct limefile_fields *out)
{
    *out = (struct limefile_fields){.store = calloc(1, sizeof *out->store)};
    struct builder b = {.source = source, .index = index, .out = out};
    if (!out->store)
        return -ENOMEM;
    out->store->index = index;
    int err = 0;
    if (find_types(&b)) {
        err = process_records(&b);
        if (!err)
            err = report_missing_formats(&b);
    }
    free(b.sums);
    free(b.text);
    if (err)
        limefile_fields_release(out);
    else
        findings_sort(&out->store->findings);
    return err;
}

void limefile_fields_release(struct limefile_fields *fields)
{
    if (fields->store) {
        free(fields->store->field);
        free(fields->store->descriptions.bytes);
        free(fields->store->findings.list);
        free(fields->store);
    }
    *fields = (struct limefile_fields){.count = 0};
}

/* ---- access ---- */

void limefile_fields_get(const struct limefile_fields *fields, size_t i,
                         struct limefile_field *out)
{
    const struct field_entry *stored = &fields->store->field[i];
    *out = (struct limefile_field){
        .format_ordinal = stored->format_ordinal,
        .private_ordinal = stored->private_ordinal,
        .by_file = stored->by_file,
        .checksum_ordinal = stored->checksum_ordinal,
        .lfn_ordinal = stored->lfn_ordinal,
        .has_checksum = stored->has_checksum,
        .checksum = stored->checksum,
    };
    limefile_index_get(fields->store->index, stored->ordinal, &out->record);
    if (stored->description)
        fieldpack_get(&fields->store->descriptions, stored->description, out);
}

bool limefile_fields_find(const struct limefile_fields *fields, uint64_t ordinal,
                          struct limefile_field *out)
{
    size_t low = 0, high = fields->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fields->store->field[middle].ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < fields->count && fields->store->field[low].ordinal == ordinal;
    if (found)
        limefile_fields_get(fields, low, out);
    return found;
}

bool limefile_fields_finding(const struct limefile_fields *fields, size_t i,
                             struct limefile_finding *out)
{
    const struct limefile_fields_store *store = fields->store;
    if (!store || i >= store->findings.count)
        return false;
    findings_get(&store->findings, store->index, i, out);
    return true;
}

unsigned limefile_fields_find_missing(const struct limefile_fields *fields, size_t i,
                                      struct limefile_finding out[2])
{
    struct limefile_field f;
    unsigned n = 0;
    limefile_fields_get(fields, i, &f);
    bool ildg = strcmp(f.record.type, "ildg-binary-data") == 0;
    struct limefile_finding finding = {.offset = f.record.header_offset,
                                       .ordinal = f.record.ordinal};
    finding.code = ildg ? LIMEFILE_D_FORMAT_MISSING : LIMEFILE_D_UNDESCRIBED;
    if (f.kind == LIMEFILE_KIND_UNKNOWN && !f.format_ordinal && !f.private_ordinal &&
        !(ildg && requires_format(fields, &f))) /* report_missing_formats() has reported it */
        out[n++] = finding;
    finding.code = LIMEFILE_D_CHECKSUM_MISSING;
    if (!f.checksum_ordinal)
        out[n++] = finding;
    return n;
}
