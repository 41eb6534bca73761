/* checksumput.c - lime checksum --add: the record that holds a sum */
#define _GNU_SOURCE
#include "checksumput.h"
#include "recordput.h"
#include "tool.h"

static const char type[] = "scidac-checksum";

/* A checksum belongs to the data before it in its message. */
static bool may_come_last(const struct edit *edit, const struct limefile_fields *fields,
                          const struct limefile_field *field)
{
    struct limefile_record last;
    struct limefile_field last_field;
    limefile_fields_get(fields, fields->count - 1, &last_field);
    return limefile_index_get(edit->c.index, limefile_index_count(edit->c.index), &last) == 0 &&
           last.message == field->record.message &&
           last_field.record.ordinal == field->record.ordinal;
}

int checksum_add(struct edit *edit, const struct limefile_fields *fields,
                 const struct limefile_field *field, const struct limefile_checksum *sum)
{
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t n = limefile_checksum_xml(sum, xml);
    if (may_come_last(edit, fields, field))
        return record_append(edit, type, xml, n);
    return edit_insert(edit, &field->record,
                       &(struct limefile_insert){type, sizeof type - 1, xml, n});
}

int checksum_replace(struct edit *edit, uint64_t ordinal, const struct limefile_checksum *sum)
{
    struct limefile_record record;
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t n = limefile_checksum_xml(sum, xml);
    int err = limefile_index_get(edit->c.index, ordinal, &record);
    if (err) {
        message_code(edit->c.path, "replace", err);
        return TOOL_BAD;
    }
    return record_put(edit, &record, xml, n, ' ');
}
