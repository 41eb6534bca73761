/* fieldwords.c - metadata records read, and what they say of data */
#define _GNU_SOURCE
#include "fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- findings ---- */

int fields_note(struct builder *b, int code, uint64_t ordinal, uint64_t value)
{
    struct limefile_record record;
    int err = limefile_index_get(b->index, ordinal, &record);
    return err ? err : findings_add(&b->out->kept->findings, code, &record, value);
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

/* Parses n bytes of b->text into `value`. *ignored: an optional element that cannot be read, or
 * NULL. */
static int parse(struct builder *b, enum role role, size_t n, void *value, const char **ignored)
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

int fields_hear(struct builder *b, const struct limefile_record *record, enum role role,
                struct said *said, void *value)
{
    size_t n = 0;
    const char *ignored = NULL;
    *said = (struct said){.ordinal = record->ordinal, .message = b->message};
    int err = read_text(b, record, &n);
    bool is_read = !err;
    if (!err)
        err = parse(b, role, n, value, &ignored);
    /* Grid writes a grid-format that contains nothing, and an empty LFN where it has no name.
     */
    if (is_read && ((role == ROLE_GRID_FORMAT && err == LIMEFILE_E_XML_VALUE) ||
                    (role == ROLE_LFN && is_blank(b->text, n)))) {
        *said = (struct said){.ordinal = 0};
        return 0;
    }
    said->good = err == 0;
    if (err == LIMEFILE_E_XML || err == LIMEFILE_E_XML_VALUE)
        return fields_note(b, LIMEFILE_D_XML, record->ordinal, (uint64_t)-err);
    if (!err && ignored)
        err = fields_note(b, LIMEFILE_D_OPTIONAL, record->ordinal, (uintptr_t)ignored);
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
    return fields_note(b, LIMEFILE_D_FIELD_LENGTH, f->record.ordinal, f->expected);
}

/* A description of more bytes than there can be is none. */
static int describe(struct builder *b, struct limefile_field *f, enum limefile_fieldkind kind,
                    const struct field_words *words, uint64_t by)
{
    int err = field_describe(f, kind, words);
    if (err)
        return fields_note(b, LIMEFILE_D_XML, by, (uint64_t)-err);
    return note_length(b, f);
}

int fields_describe_gauge(struct builder *b, struct limefile_field *f,
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
        err = fields_note(b, LIMEFILE_D_FORMAT_DIFFERS, f->by_record, 0);
    if (!err && !field_agrees_with_file(f, &words))
        err = fields_note(b, LIMEFILE_D_FORMAT_DIFFERS, f->by_file, 0);
    struct limefile_gaugename gauge;
    if (!limefile_gaugename_parse(f->name, &gauge) && !strcasestr(f->name, "gauge") &&
        !field_has_links(f))
        f->kind = LIMEFILE_KIND_SCIDAC; /* ILDG has no other fields; programs have */
    return err;
}

int fields_describe_scidac(struct builder *b, struct limefile_field *f)
{
    bool near = b->grid.good && b->grid.message == b->record.message;
    const struct field_words words = {NULL, &b->record_value,
                                      near ? &b->grid_value : file_of(b)};
    bool global = words.record->recordtype == LIMEFILE_GLOBAL;
    if (words.file)
        f->by_file = near ? b->grid.ordinal : b->file.ordinal;
    int err = describe(b, f, global ? LIMEFILE_KIND_GLOBAL : LIMEFILE_KIND_SCIDAC, &words,
                       f->by_record);
    if (!err && f->boxed && words.file && f->lattice.dims == 0)
        err = fields_note(b, LIMEFILE_D_FORMAT_DIFFERS, f->by_record, 0);
    if (!err && f->lattice.dims && !limefile_datatype_is_known(f->name))
        err = fields_note(b, LIMEFILE_D_DATATYPE, f->by_record, 0);
    return err;
}

/* tmLQCD writes a record for each flavour after one format, each in a message of its own. So a
 * format holds for the record after it, and for further ones if they are as long as it says. */
int fields_describe_etmc(struct builder *b, struct limefile_field *f)
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
