/* findings.c - collect the findings of a pass and sort them */
#define _GNU_SOURCE
#include "findings.h"
#include "array.h"
#include "header_bytes.h"

#include <errno.h>
#include <stdlib.h>

/* Returns the position of a finding relative to the record's header. */
static unsigned header_position(int code)
{
    return code == LIMEFILE_D_FORMAT_MISSING ? 0
           : code == LIMEFILE_D_FIELD_LENGTH ? AT_BYTES
                                             : LIMEFILE_HEADER_BYTES;
}

int findings_add(struct findings *f, int code, const struct limefile_record *record,
                 uint64_t value)
{
    if (!limefile_reserve(&f->list, &f->capacity, f->count + 1, sizeof *f->list))
        return -ENOMEM;
    f->list[f->count++] = (struct stored_finding){
        .ordinal = (uint32_t)record->ordinal,
        .code = code,
        .at_next = record->bytes == 0 && header_position(code) == LIMEFILE_HEADER_BYTES,
        .value = value,
    };
    return 0;
}

/* Compares by offset, then by code. The offset follows from ordinal and code. */
static int compare_findings(const void *a, const void *b)
{
    const struct stored_finding *x = a, *y = b;
    uint64_t one = (uint64_t)x->ordinal + x->at_next, other = (uint64_t)y->ordinal + y->at_next;
    if (one != other)
        return one < other ? -1 : 1;
    unsigned first = x->at_next ? 0 : header_position(x->code);
    unsigned second = y->at_next ? 0 : header_position(y->code);
    if (first != second)
        return first < second ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

/* Skips qsort(), which needs as much memory as the list, if the list is sorted already. */
void findings_sort(struct findings *f)
{
    size_t i = 1;
    while (i < f->count && compare_findings(&f->list[i - 1], &f->list[i]) <= 0)
        i++;
    if (i < f->count)
        qsort(f->list, f->count, sizeof *f->list, compare_findings);
}

void findings_get(const struct findings *f, const struct limefile_index *index, size_t i,
                  struct limefile_finding *out)
{
    const struct stored_finding *stored = &f->list[i];
    struct limefile_record record = {.ordinal = 0};
    limefile_index_get(index, stored->ordinal, &record);
    *out = (struct limefile_finding){
        .code = stored->code,
        .offset = record.header_offset + header_position(stored->code),
        .ordinal = stored->ordinal,
        .have = stored->code == LIMEFILE_D_OPTIONAL ? 0 : stored->value,
    };
    if (stored->code == LIMEFILE_D_OPTIONAL)
        out->why = (const char *)(uintptr_t)stored->value;
    if (stored->code == LIMEFILE_D_FIELD_LENGTH) {
        out->have = record.bytes;
        out->want = stored->value;
    }
}
