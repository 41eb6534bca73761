/*
 * fields.c - which records of a container belong together: one pass over its index
 *
 * Records are followed message by message. Where the flags of two neighbours do not agree that
 * a message ends between them, none does, here: what belongs together is found by nearness
 * then.
 */
#define _GNU_SOURCE
#include "field.h"
#include "findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum role {
    ROLE_OTHER,
    ROLE_ILDG_FORMAT,
    ROLE_PROPAGATOR_FORMAT,
    ROLE_SOURCE_FORMAT,
    ROLE_CVC_FORMAT,
    ROLE_PRIVATE_FILE,
    ROLE_PRIVATE_RECORD,
    ROLE_CHECKSUM,
    ROLE_LFN,
    ROLE_ILDG_DATA,
    ROLE_SCIDAC_DATA,
};

static const struct {
    const char *type;
    enum role role;
} types[] = {
    {"ildg-format", ROLE_ILDG_FORMAT},
    {"etmc-propagator-format", ROLE_PROPAGATOR_FORMAT},
    {"quda-propagator-format", ROLE_PROPAGATOR_FORMAT}, /* the same from another program */
    {"etmc-propagator-type", ROLE_PROPAGATOR_FORMAT},   /* cvc */
    {"etmc-source-format", ROLE_SOURCE_FORMAT},
    {"cvc-contraction-format", ROLE_CVC_FORMAT},
    {"cvc_contraction-format", ROLE_CVC_FORMAT},
    {"scidac-private-file-xml", ROLE_PRIVATE_FILE},
    {"scidac-private-record-xml", ROLE_PRIVATE_RECORD},
    {"scidac-checksum", ROLE_CHECKSUM},
    {"ildg-data-lfn", ROLE_LFN},
    {"ildg-binary-data", ROLE_ILDG_DATA},
    {"scidac-binary-data", ROLE_SCIDAC_DATA},
};

enum { TYPES = sizeof types / sizeof types[0] };

/* A metadata record that waits for its data, or holds for those that follow. */
struct said {
    uint64_t ordinal; /* 0: none */
    uint64_t message; /* as counted here */
    bool good;        /* it could be understood */
    bool used;
};

/* A checksum of this message. */
struct heard_sum {
    uint64_t ordinal;
    size_t fields; /* how many there were before it */
    bool good;
    struct limefile_checksum value;
};

struct builder {
    struct limefile_source *source;
    const struct limefile_index *index;
    struct limefile_fields *out;
    size_t capacity;
    struct findings findings;
    char *text; /* of the record that is being read */
    size_t text_capacity;

    const char *of_type[TYPES]; /* the index keeps each type once: NULL if it has none */
    uint64_t message;
    size_t message_first;   /* subscript of the first field of this message */
    size_t last_ildg;       /* subscripts + 1 of the last field of ildg-binary-data, */
    size_t formless;        /* of the last one of this message that has no format; 0: none */
    struct heard_sum *sums; /* of this message */
    size_t sum_count, sum_capacity;

    struct said format, etmc, record, file, lfn;
    struct limefile_ildg format_value, etmc_value;
    enum limefile_fieldkind etmc_kind;
    struct limefile_scidac_record record_value;
    struct limefile_scidac_file file_value;
};

/* ---- findings ---- */

static int note(struct builder *b, int code, uint64_t ordinal, uint64_t offset, uint64_t have,
                uint64_t want)
{
    return findings_add(&b->findings, code, ordinal, offset, have, want);
}

/* Of the whole record. */
static int note_record(struct builder *b, int code, uint64_t ordinal, uint64_t have)
{
    struct limefile_record record;
    int err = limefile_index_get(b->index, ordinal, &record);
    return err ? err : note(b, code, ordinal, record.data_offset, have, 0);
}

/* ---- reading ---- */

/* The data of a metadata record, in b->text. LIMEFILE_E_XML if it is too long to be one. */
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
    ssize_t got = limefile_read_full(b->source, b->text, *n, record->data_offset);
    if (got < 0)
        return (int)got;
    return (size_t)got < *n ? LIMEFILE_E_SHRUNK : 0;
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != '\0' && text[i] != ' ' && (text[i] < '\t' || text[i] > '\r'))
            return false;
    return true;
}

/* Parses it by the role's parser into `value`. What cannot be understood is a finding. */
static int hear(struct builder *b, const struct limefile_record *record, enum role role,
                struct said *said, void *value)
{
    size_t n = 0;
    *said = (struct said){.ordinal = record->ordinal, .message = b->message};
    int err = read_text(b, record, &n);
    if (!err) {
        switch (role) {
        case ROLE_PRIVATE_FILE:
            err = limefile_scidac_file_parse(b->text, n, value);
            break;
        case ROLE_PRIVATE_RECORD:
            err = limefile_scidac_record_parse(b->text, n, value);
            break;
        case ROLE_CHECKSUM:
            err = limefile_checksum_parse(b->text, n, value);
            break;
        case ROLE_CVC_FORMAT:
            err = limefile_cvc_parse(b->text, n, value);
            break;
        case ROLE_LFN: /* an empty one is none: Grid writes it where it has no name */
            if (is_blank(b->text, n)) {
                *said = (struct said){.ordinal = 0};
                return 0;
            }
            err = limefile_lfn_parse(b->text, n, value);
            break;
        default:
            err = limefile_ildg_parse(b->text, n, value);
            break;
        }
    }
    said->good = err == 0;
    if (err == LIMEFILE_E_XML || err == LIMEFILE_E_XML_VALUE)
        return note(b, LIMEFILE_D_XML, record->ordinal, record->data_offset, (uint64_t)-err, 0);
    return err;
}

/* ---- what describes data ---- */

static const struct limefile_scidac_file *file_of(const struct builder *b)
{
    return b->file.good ? &b->file_value : NULL;
}

static int note_length(struct builder *b, const struct limefile_field *f)
{
    if (limefile_field_fits(f))
        return 0;
    return note(b, LIMEFILE_D_FIELD_LENGTH, f->record.ordinal, f->record.header_offset + 8,
                f->record.bytes, f->expected);
}

/* A description of more bytes than there can be is none. */
static int describe(struct builder *b, struct limefile_field *f, enum limefile_fieldkind kind,
                    const struct field_words *words, uint64_t by)
{
    int err = field_describe(f, kind, words);
    if (err)
        return note_record(b, LIMEFILE_D_XML, by, (uint64_t)-err);
    return note_length(b, f);
}

/* `format` is b->format, which stands before the data or, in their message, behind. */
static int describe_gauge(struct builder *b, struct limefile_field *f,
                          const struct limefile_scidac_record *record)
{
    const struct field_words words = {&b->format_value, record, file_of(b)};
    b->format.used = true;
    f->by_format = b->format.ordinal;
    if (!b->format.good)
        return 0;
    if (words.file)
        f->by_file = b->file.ordinal;
    int err = describe(b, f, LIMEFILE_KIND_GAUGE, &words, f->by_format);
    if (f->kind != LIMEFILE_KIND_GAUGE)
        return err;
    if (!err && !field_agrees_with_record(f, &words))
        err = note_record(b, LIMEFILE_D_FORMAT_DIFFERS, f->by_record, 0);
    if (!err && !field_agrees_with_file(f, &words))
        err = note_record(b, LIMEFILE_D_FORMAT_DIFFERS, f->by_file, 0);
    return err;
}

static int describe_scidac(struct builder *b, struct limefile_field *f)
{
    const struct field_words words = {NULL, &b->record_value, file_of(b)};
    bool global = words.record->recordtype == LIMEFILE_GLOBAL;
    if (words.file)
        f->by_file = b->file.ordinal;
    int err = describe(b, f, global ? LIMEFILE_KIND_GLOBAL : LIMEFILE_KIND_SCIDAC, &words,
                       f->by_record);
    if (!err && f->boxed && words.file && f->lattice.dims == 0)
        err = note_record(b, LIMEFILE_D_FORMAT_DIFFERS, f->by_record, 0);
    return err;
}

/* tmLQCD writes a record for each flavour after one format, each in a message of its own. So a
 * format holds for the record after it, and for further ones if they are as long as it says. */
static int describe_etmc(struct builder *b, struct limefile_field *f)
{
    const struct field_words words = {&b->etmc_value, NULL, NULL};
    bool first = !b->etmc.used;
    b->etmc.used = true;
    if (!b->etmc.good) {
        f->by_format = first ? b->etmc.ordinal : 0;
        return 0;
    }
    struct limefile_field described = *f;
    described.by_format = b->etmc.ordinal;
    if (first) {
        f->by_format = b->etmc.ordinal;
        return describe(b, f, b->etmc_kind, &words, f->by_format);
    }
    if (field_describe(&described, b->etmc_kind, &words) == 0 &&
        described.expected == f->record.bytes)
        *f = described;
    return 0;
}

/* ---- checksums and logical file names ---- */

static int hear_checksum(struct builder *b, const struct limefile_record *record)
{
    struct heard_sum sum = {.ordinal = record->ordinal, .fields = b->out->count};
    struct said said;
    if (b->sum_count == b->sum_capacity) {
        size_t more = 2 * b->sum_capacity + 8;
        void *bigger = reallocarray(b->sums, more, sizeof *b->sums);
        if (!bigger)
            return -ENOMEM;
        b->sums = bigger;
        b->sum_capacity = more;
    }
    int err = hear(b, record, ROLE_CHECKSUM, &said, &sum.value);
    sum.good = said.good;
    if (!err)
        b->sums[b->sum_count++] = sum;
    return err;
}

/* One right before each of the message's data, and none behind the last. */
static bool all_stand_before(const struct builder *b)
{
    bool before = b->sum_count == b->out->count - b->message_first;
    for (size_t i = 0; before && i < b->sum_count; i++)
        before = b->sums[i].fields == b->message_first + i;
    return before;
}

/* The data before it in its message, or else those behind it, or else the last ones of all. */
static struct limefile_field *owner_of(const struct builder *b, const struct heard_sum *sum,
                                       bool before)
{
    const struct limefile_fields *out = b->out;
    if (out->count == b->message_first)
        return out->count ? &out->field[out->count - 1] : NULL;
    before = before || sum->fields == b->message_first;
    return &out->field[before ? sum->fields : sum->fields - 1];
}

/* The first one that stands behind the data counts, or else the last one before them. */
static int give_checksum(struct builder *b, struct limefile_field *f,
                         const struct heard_sum *sum)
{
    bool yields =
        f && f >= b->out->field + b->message_first && f->by_checksum < f->record.ordinal;
    bool taken = f && (!f->by_checksum || yields);
    uint64_t alone = taken ? f->by_checksum : sum->ordinal;
    if (taken) {
        f->by_checksum = sum->ordinal;
        f->has_checksum = sum->good;
        f->checksum = sum->value;
    }
    return alone ? note_record(b, LIMEFILE_D_CHECKSUM_ALONE, alone, 0) : 0;
}

static int place_checksums(struct builder *b)
{
    bool before = all_stand_before(b);
    int err = 0;
    for (size_t i = 0; !err && i < b->sum_count; i++)
        err = give_checksum(b, owner_of(b, &b->sums[i], before), &b->sums[i]);
    b->sum_count = 0;
    return err;
}

static int hear_lfn(struct builder *b, const struct limefile_record *record)
{
    char lfn[LIMEFILE_LFN_MAX];
    int err = hear(b, record, ROLE_LFN, &b->lfn, lfn);
    if (err || !b->lfn.ordinal)
        return err;
    if (b->lfn.good && !b->out->by_lfn) {
        b->out->by_lfn = record->ordinal;
        strcpy(b->out->lfn, lfn);
    }
    struct limefile_field *f = b->last_ildg ? &b->out->field[b->last_ildg - 1] : NULL;
    if (f && b->last_ildg > b->message_first && !f->by_lfn) {
        f->by_lfn = record->ordinal;
        b->lfn.ordinal = 0;
    }
    return 0;
}

/* ---- one record after another ---- */

static int late(struct builder *b)
{
    return note_record(b, LIMEFILE_D_FORMAT_LATE, b->format.ordinal, 0);
}

static int hear_format(struct builder *b, const struct limefile_record *record)
{
    int err = b->format.ordinal && !b->format.used ? late(b) : 0;
    return err ? err : hear(b, record, ROLE_ILDG_FORMAT, &b->format, &b->format_value);
}

static int hear_etmc(struct builder *b, const struct limefile_record *record, enum role role)
{
    b->etmc_kind = role == ROLE_SOURCE_FORMAT ? LIMEFILE_KIND_SOURCE
                   : role == ROLE_CVC_FORMAT  ? LIMEFILE_KIND_SCIDAC
                                              : LIMEFILE_KIND_PROPAGATOR;
    return hear(b, record, role, &b->etmc, &b->etmc_value);
}

static struct limefile_field *add_field(struct builder *b, const struct limefile_record *record)
{
    if (b->out->count == b->capacity) {
        size_t more = b->capacity + b->capacity / 2 + 8;
        void *bigger = reallocarray(b->out->field, more, sizeof *b->out->field);
        if (!bigger)
            return NULL;
        b->out->field = bigger;
        b->capacity = more;
    }
    struct limefile_field *f = &b->out->field[b->out->count++];
    *f = (struct limefile_field){.record = *record};
    return f;
}

static int take_ildg_data(struct builder *b, struct limefile_field *f,
                          const struct limefile_scidac_record *record)
{
    int err = 0;
    if (b->lfn.ordinal) {
        f->by_lfn = b->lfn.ordinal;
        b->lfn.ordinal = 0;
    }
    b->last_ildg = b->out->count;
    if (b->format.ordinal && !b->format.used) {
        err = b->format.message == b->message ? 0 : late(b);
        return err ? err : describe_gauge(b, f, record);
    }
    b->formless = b->out->count;
    return record ? describe_scidac(b, f) : 0;
}

static int take_data(struct builder *b, const struct limefile_record *data, enum role role)
{
    struct limefile_field *f = add_field(b, data);
    if (!f)
        return -ENOMEM;
    const struct limefile_scidac_record *record = NULL;
    if (b->record.ordinal && !b->record.used && b->record.message == b->message) {
        f->by_record = b->record.ordinal;
        b->record.used = true;
        record = b->record.good ? &b->record_value : NULL;
    }
    if (role == ROLE_ILDG_DATA)
        return take_ildg_data(b, f, record);
    if (b->etmc.ordinal > b->record.ordinal)
        return describe_etmc(b, f);
    return record ? describe_scidac(b, f) : 0;
}

/* What has found nothing in this message is tried on what is near. */
static int end_message(struct builder *b)
{
    int err = 0;
    if (b->format.ordinal && !b->format.used && b->formless) {
        struct limefile_field *f = &b->out->field[b->formless - 1];
        if (b->format.message == b->message) {
            err = late(b);
            *f = (struct limefile_field){
                .record = f->record,
                .by_record = f->by_record,
                .by_lfn = f->by_lfn,
            };
            if (!err)
                err = describe_gauge(b, f, NULL);
        }
    }
    if (!err)
        err = place_checksums(b);
    if (b->lfn.ordinal && b->last_ildg && !b->out->field[b->last_ildg - 1].by_lfn) {
        b->out->field[b->last_ildg - 1].by_lfn = b->lfn.ordinal;
        b->lfn.ordinal = 0;
    }
    b->message++;
    b->message_first = b->out->count;
    b->formless = 0;
    return err;
}

static enum role role_of(const struct builder *b, const struct limefile_record *record)
{
    for (size_t i = 0; i < TYPES; i++)
        if (b->of_type[i] == record->type)
            return types[i].role;
    return ROLE_OTHER;
}

static int take(struct builder *b, const struct limefile_record *record)
{
    enum role role = role_of(b, record);
    if (role != ROLE_OTHER && role != ROLE_ILDG_DATA && role != ROLE_SCIDAC_DATA)
        b->out->described = true;
    switch (role) {
    case ROLE_ILDG_FORMAT:
        return hear_format(b, record);
    case ROLE_PROPAGATOR_FORMAT:
    case ROLE_SOURCE_FORMAT:
    case ROLE_CVC_FORMAT:
        return hear_etmc(b, record, role);
    case ROLE_PRIVATE_FILE:
        return hear(b, record, role, &b->file, &b->file_value);
    case ROLE_PRIVATE_RECORD:
        return hear(b, record, role, &b->record, &b->record_value);
    case ROLE_CHECKSUM:
        return hear_checksum(b, record);
    case ROLE_LFN:
        return hear_lfn(b, record);
    case ROLE_ILDG_DATA:
    case ROLE_SCIDAC_DATA:
        return take_data(b, record, role);
    case ROLE_OTHER:
        break;
    }
    return 0;
}

/* Which of the types occur; false if none does. */
static bool resolve(struct builder *b)
{
    struct limefile_record first;
    uint64_t count;
    bool any = false;
    for (size_t i = 0; i < TYPES; i++) {
        b->of_type[i] = NULL;
        if (limefile_index_by_type(b->index, types[i].type, strlen(types[i].type), &first,
                                   &count) == 0) {
            b->of_type[i] = first.type;
            any = true;
        }
    }
    return any;
}

static int take_all(struct builder *b)
{
    struct limefile_record record;
    bool ended = false;
    int err = 0;
    for (uint64_t i = 1; !err && limefile_index_get(b->index, i, &record) == 0; i++) {
        if (record.mb && ended)
            err = end_message(b);
        if (!err)
            err = take(b, &record);
        ended = record.me;
    }
    /* What is waiting for data belongs to those that the fault has cut off. */
    if (limefile_index_fault(b->index) && b->message_first == b->out->count)
        b->format.ordinal = b->sum_count = 0;
    if (!err)
        err = end_message(b);
    if (!err && b->format.ordinal && !b->format.used)
        err = late(b);
    return err;
}

/* Grid writes any field as ildg-binary-data, and says in the private record what it is: ILDG
 * has no format for it. */
static bool is_of_grid(const struct limefile_field *f)
{
    return f->kind == LIMEFILE_KIND_SCIDAC && strncmp(f->name, "GRID_", 5) == 0;
}

/* In a container without any metadata of ours "ildg-binary-data" is a word like others. */
static int note_formless(struct builder *b)
{
    int err = 0;
    const char *ildg_data = NULL;
    for (size_t i = 0; i < TYPES; i++)
        if (types[i].role == ROLE_ILDG_DATA)
            ildg_data = b->of_type[i];
    for (size_t i = 0; b->out->described && !err && i < b->out->count; i++) {
        const struct limefile_field *f = &b->out->field[i];
        if (f->record.type == ildg_data && !f->by_format && !is_of_grid(f))
            err = note(b, LIMEFILE_D_FORMAT_MISSING, f->record.ordinal, f->record.header_offset,
                       0, 0);
    }
    return err;
}

int limefile_fields_build(struct limefile_source *source, const struct limefile_index *index,
                          limefile_finding_fn *report, void *context,
                          struct limefile_fields *out)
{
    *out = (struct limefile_fields){.count = 0};
    struct builder b = {.source = source, .index = index, .out = out};
    int err = 0;
    if (resolve(&b)) {
        err = take_all(&b);
        if (!err)
            err = note_formless(&b);
    }
    if (err)
        limefile_fields_release(out);
    else
        findings_report(&b.findings, report, context);
    free(b.findings.at);
    free(b.sums);
    free(b.text);
    return err;
}

static void demand(const struct limefile_field *f, bool described, limefile_finding_fn *report,
                   void *context)
{
    struct limefile_finding finding = {.offset = f->record.header_offset,
                                       .ordinal = f->record.ordinal};
    bool ildg = strcmp(f->record.type, "ildg-binary-data") == 0;
    finding.code = ildg ? LIMEFILE_D_FORMAT_MISSING : LIMEFILE_D_UNDESCRIBED;
    /* Of an ILDG container, note_formless() has said it. */
    if (f->kind == LIMEFILE_KIND_UNKNOWN && !f->by_format && !f->by_record &&
        !(ildg && described))
        report(context, &finding);
    finding.code = LIMEFILE_D_CHECKSUM_MISSING;
    if (!f->by_checksum)
        report(context, &finding);
}

void limefile_fields_demand(const struct limefile_fields *fields, limefile_finding_fn *report,
                            void *context)
{
    for (size_t i = 0; i < fields->count; i++)
        demand(&fields->field[i], fields->described, report, context);
}

void limefile_fields_release(struct limefile_fields *fields)
{
    free(fields->field);
    *fields = (struct limefile_fields){.count = 0};
}

const struct limefile_field *limefile_fields_of(const struct limefile_fields *fields,
                                                uint64_t ordinal)
{
    size_t low = 0, high = fields->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fields->field[middle].record.ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < fields->count && fields->field[low].record.ordinal == ordinal;
    return found ? &fields->field[low] : NULL;
}
