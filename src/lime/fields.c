/*
 * fields.c - which records of a container belong together: one pass over its index
 *
 * Records are followed message by message. Where the flags of two neighbours do not agree that
 * a message ends between them, none does, here: what belongs together is found by nearness
 * then.
 */
#define _GNU_SOURCE
#include "fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
static const struct {
    const char *type;
    enum role role;
} types[] = {
    {"ildg-format", ROLE_ILDG_FORMAT},
    {"etmc-propagator-format", ROLE_PROPAGATOR_FORMAT},
    {"quda-propagator-format", ROLE_PROPAGATOR_FORMAT}, /* the same from another program */
    {"etmc-propagator-type", ROLE_PROPAGATOR_FORMAT},   /* cvc */
    {"stag-propagator-format", ROLE_STAGGERED_FORMAT},  /* nissa */
    {"etmc-source-format", ROLE_SOURCE_FORMAT},
    {"cvc-contraction-format", ROLE_CVC_FORMAT},
    {"cvc_contraction-format", ROLE_CVC_FORMAT},
    {"scidac-private-file-xml", ROLE_PRIVATE_FILE},
    {"scidac-private-record-xml", ROLE_PRIVATE_RECORD},
    {"grid-format", ROLE_GRID_FORMAT},
    {"scidac-checksum", ROLE_CHECKSUM},
    {"ildg-data-lfn", ROLE_LFN},
    {"ildg-data-LFN", ROLE_LFN}, /* qcdutils */
    {"ildg-binary-data", ROLE_ILDG_DATA},
    {"scidac-binary-data", ROLE_SCIDAC_DATA},
};

_Static_assert(sizeof types / sizeof types[0] == FIELD_TYPES, "fields.h has another number");

/* ---- one record after another ---- */

static int late(struct builder *b)
{
    return fields_note(b, LIMEFILE_D_FORMAT_LATE, b->format.ordinal, 0);
}

static int hear_format(struct builder *b, const struct limefile_record *record)
{
    int err = b->format.ordinal && !b->format.used ? late(b) : 0;
    return err ? err : fields_hear(b, record, ROLE_ILDG_FORMAT, &b->format, &b->format_value);
}

static int hear_etmc(struct builder *b, const struct limefile_record *record, enum role role)
{
    b->etmc_kind = role == ROLE_SOURCE_FORMAT ? LIMEFILE_KIND_SOURCE
                   : role == ROLE_CVC_FORMAT  ? LIMEFILE_KIND_SCIDAC
                                              : LIMEFILE_KIND_PROPAGATOR;
    int err = fields_hear(b, record, role, &b->etmc, &b->etmc_value);
    if (role == ROLE_STAGGERED_FORMAT)
        b->etmc_value.components = 3; /* the text is that of a spinor's */
    return err;
}

/* What is known of it replaces what was. */
static int keep(struct builder *b, struct kept_field *to, const struct limefile_field *f)
{
    uint64_t description = 0;
    if (f->kind != LIMEFILE_KIND_UNKNOWN) {
        int err = fieldpack_put(&b->out->kept->descriptions, f, &description);
        if (err)
            return err;
    }
    *to = (struct kept_field){
        .ordinal = (uint32_t)f->record.ordinal,
        .by_format = (uint32_t)f->by_format,
        .by_record = (uint32_t)f->by_record,
        .by_file = (uint32_t)f->by_file,
        .by_lfn = (uint32_t)f->by_lfn,
        .description = description & INT64_MAX,
    };
    return 0;
}

static int add_field(struct builder *b, const struct limefile_field *f)
{
    struct limefile_fields_kept *kept = b->out->kept;
    if (b->out->count == kept->capacity) {
        size_t more = kept->capacity + kept->capacity / 2 + 8;
        void *bigger = reallocarray(kept->field, more, sizeof *kept->field);
        if (!bigger)
            return -ENOMEM;
        kept->field = bigger;
        kept->capacity = more;
    }
    int err = keep(b, &kept->field[b->out->count], f);
    b->out->count += !err;
    return err;
}

static int take_ildg_data(struct builder *b, struct limefile_field *f,
                          const struct limefile_scidac_record *record)
{
    int err = 0;
    if (b->lfn.ordinal) {
        f->by_lfn = b->lfn.ordinal;
        b->lfn.ordinal = 0;
    }
    b->last_ildg = b->out->count + 1;
    if (b->format.ordinal && !b->format.used) {
        err = b->format.message == b->message ? 0 : late(b);
        return err ? err : fields_describe_gauge(b, f, record);
    }
    b->formless = b->last_ildg;
    return record ? fields_describe_scidac(b, f) : 0;
}

static int take_scidac_data(struct builder *b, struct limefile_field *f,
                            const struct limefile_scidac_record *record)
{
    if (b->etmc.ordinal > b->record.ordinal)
        return fields_describe_etmc(b, f);
    return record ? fields_describe_scidac(b, f) : 0;
}

static int take_data(struct builder *b, const struct limefile_record *data, enum role role)
{
    struct limefile_field f = {.record = *data};
    const struct limefile_scidac_record *record = NULL;
    if (b->record.ordinal && !b->record.used) {
        f.by_record = b->record.ordinal;
        b->record.used = true;
        record = b->record.good ? &b->record_value : NULL;
    }
    int err = role == ROLE_ILDG_DATA ? take_ildg_data(b, &f, record)
                                     : take_scidac_data(b, &f, record);
    return err ? err : add_field(b, &f);
}

/* An ildg-format that stands behind its data, in their message. */
static int describe_late(struct builder *b)
{
    struct limefile_field f;
    limefile_fields_get(b->out, b->formless - 1, &f);
    f = (struct limefile_field){
        .record = f.record,
        .by_record = f.by_record,
        .by_lfn = f.by_lfn,
    };
    int err = late(b);
    if (!err)
        err = fields_describe_gauge(b, &f, NULL);
    return err ? err : keep(b, &b->out->kept->field[b->formless - 1], &f);
}

/* What has found nothing in this message is tried on what is near. */
static int end_message(struct builder *b)
{
    int err = 0;
    if (b->format.ordinal && !b->format.used && b->formless && b->format.message == b->message)
        err = describe_late(b);
    if (!err)
        err = fields_place_checksums(b);
    struct kept_field *last = b->last_ildg ? &b->out->kept->field[b->last_ildg - 1] : NULL;
    if (b->lfn.ordinal && last && !last->by_lfn) {
        last->by_lfn = (uint32_t)b->lfn.ordinal;
        b->lfn.ordinal = 0;
    }
    b->message++;
    b->message_first = b->out->count;
    b->formless = 0;
    return err;
}

static enum role role_of(const struct builder *b, const struct limefile_record *record)
{
    for (size_t i = 0; i < FIELD_TYPES; i++)
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
    case ROLE_STAGGERED_FORMAT:
    case ROLE_SOURCE_FORMAT:
    case ROLE_CVC_FORMAT:
        return hear_etmc(b, record, role);
    case ROLE_PRIVATE_FILE:
        return fields_hear(b, record, role, &b->file, &b->file_value);
    case ROLE_PRIVATE_RECORD:
        return fields_hear(b, record, role, &b->record, &b->record_value);
    case ROLE_GRID_FORMAT:
        return fields_hear(b, record, role, &b->grid, &b->grid_value.lattice);
    case ROLE_CHECKSUM:
        return fields_hear_checksum(b, record);
    case ROLE_LFN:
        return fields_hear_lfn(b, record);
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
    for (size_t i = 0; i < FIELD_TYPES; i++) {
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

/*
 * True if ILDG requires an ildg-format for this ildg-binary-data. Grid's fields are an
 * exception: Grid writes any field as ildg-binary-data, and its private record describes fields
 * for which ILDG has no format. In a container without ILDG or SciDAC metadata, data that are
 * not whole complex numbers cannot be a configuration: there "ildg-binary-data" is a word like
 * any other.
 */
static bool requires_format(const struct limefile_fields *fields,
                            const struct limefile_field *f)
{
    enum { COMPLEX_BYTES = 8 }; /* single precision */
    return !field_is_of_grid(f) && (fields->described || f->record.bytes % COMPLEX_BYTES == 0);
}

static int note_formless(struct builder *b)
{
    int err = 0;
    const char *ildg_data = NULL;
    for (size_t i = 0; i < FIELD_TYPES; i++)
        if (types[i].role == ROLE_ILDG_DATA)
            ildg_data = b->of_type[i];
    for (size_t i = 0; !err && i < b->out->count; i++) {
        struct limefile_field f;
        if (b->out->kept->field[i].by_format)
            continue;
        limefile_fields_get(b->out, i, &f);
        if (f.record.type == ildg_data && requires_format(b->out, &f))
            err = fields_note(b, LIMEFILE_D_FORMAT_MISSING, f.record.ordinal, 0);
    }
    return err;
}

int limefile_fields_build(struct limefile_source *source, const struct limefile_index *index,
                          struct limefile_fields *out)
{
    *out = (struct limefile_fields){.kept = calloc(1, sizeof *out->kept)};
    struct builder b = {.source = source, .index = index, .out = out};
    if (!out->kept)
        return -ENOMEM;
    out->kept->index = index;
    int err = 0;
    if (resolve(&b)) {
        err = take_all(&b);
        if (!err)
            err = note_formless(&b);
    }
    free(b.sums);
    free(b.text);
    if (err)
        limefile_fields_release(out);
    else
        findings_sort(&out->kept->findings);
    return err;
}

void limefile_fields_release(struct limefile_fields *fields)
{
    if (fields->kept) {
        free(fields->kept->field);
        free(fields->kept->descriptions.at);
        free(fields->kept->findings.at);
        free(fields->kept);
    }
    *fields = (struct limefile_fields){.count = 0};
}

/* ---- what is known of them ---- */

void limefile_fields_get(const struct limefile_fields *fields, size_t i,
                         struct limefile_field *out)
{
    const struct kept_field *kept = &fields->kept->field[i];
    *out = (struct limefile_field){
        .by_format = kept->by_format,
        .by_record = kept->by_record,
        .by_file = kept->by_file,
        .by_checksum = kept->by_checksum,
        .by_lfn = kept->by_lfn,
        .has_checksum = kept->has_checksum,
        .checksum = kept->checksum,
    };
    limefile_index_get(fields->kept->index, kept->ordinal, &out->record);
    if (kept->description)
        fieldpack_get(&fields->kept->descriptions, kept->description, out);
}

bool limefile_fields_of(const struct limefile_fields *fields, uint64_t ordinal,
                        struct limefile_field *out)
{
    size_t low = 0, high = fields->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fields->kept->field[middle].ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < fields->count && fields->kept->field[low].ordinal == ordinal;
    if (found)
        limefile_fields_get(fields, low, out);
    return found;
}

bool limefile_fields_finding(const struct limefile_fields *fields, size_t i,
                             struct limefile_finding *out)
{
    const struct limefile_fields_kept *kept = fields->kept;
    if (!kept || i >= kept->findings.count)
        return false;
    findings_get(&kept->findings, kept->index, i, out);
    return true;
}

unsigned limefile_fields_demand(const struct limefile_fields *fields, size_t i,
                                struct limefile_finding out[2])
{
    struct limefile_field f;
    unsigned n = 0;
    limefile_fields_get(fields, i, &f);
    bool ildg = strcmp(f.record.type, "ildg-binary-data") == 0;
    struct limefile_finding finding = {.offset = f.record.header_offset,
                                       .ordinal = f.record.ordinal};
    finding.code = ildg ? LIMEFILE_D_FORMAT_MISSING : LIMEFILE_D_UNDESCRIBED;
    if (f.kind == LIMEFILE_KIND_UNKNOWN && !f.by_format && !f.by_record &&
        !(ildg && requires_format(fields, &f))) /* note_formless() has reported those */
        out[n++] = finding;
    finding.code = LIMEFILE_D_CHECKSUM_MISSING;
    if (!f.by_checksum)
        out[n++] = finding;
    return n;
}
