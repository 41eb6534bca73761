/* fieldsums.c - which data the checksums and logical file names belong to */
#define _GNU_SOURCE
#include "fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int fields_hear_checksum(struct builder *b, const struct limefile_record *record)
{
    struct heard_sum sum = {.ordinal = (uint32_t)record->ordinal,
                            .fields = (uint32_t)b->out->count};
    struct said said;
    if (b->sum_count == b->sum_capacity) {
        size_t more = b->sum_capacity + b->sum_capacity / 2 + 8;
        void *bigger = reallocarray(b->sums, more, sizeof *b->sums);
        if (!bigger)
            return -ENOMEM;
        b->sums = bigger;
        b->sum_capacity = more;
    }
    int err = fields_hear(b, record, ROLE_CHECKSUM, &said, &sum.value);
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
static struct kept_field *owner_of(const struct builder *b, const struct heard_sum *sum,
                                   bool before)
{
    struct kept_field *field = b->out->kept->field;
    size_t count = b->out->count;
    if (count == b->message_first)
        return count ? &field[count - 1] : NULL;
    before = before || sum->fields == b->message_first;
    return &field[before ? sum->fields : sum->fields - 1];
}

/* The first one that stands behind the data counts, or else the last one before them. */
static int give_checksum(struct builder *b, struct kept_field *f, const struct heard_sum *sum)
{
    bool yields =
        f && f >= b->out->kept->field + b->message_first && f->by_checksum < f->ordinal;
    bool taken = f && (!f->by_checksum || yields);
    uint32_t alone = taken ? f->by_checksum : sum->ordinal;
    if (taken) {
        f->by_checksum = sum->ordinal;
        f->has_checksum = sum->good;
        f->checksum = sum->value;
    }
    return alone ? fields_note(b, LIMEFILE_D_CHECKSUM_ALONE, alone, 0) : 0;
}

int fields_place_checksums(struct builder *b)
{
    bool before = all_stand_before(b);
    int err = 0;
    for (size_t i = 0; !err && i < b->sum_count; i++)
        err = give_checksum(b, owner_of(b, &b->sums[i], before), &b->sums[i]);
    b->sum_count = 0;
    return err;
}

int fields_hear_lfn(struct builder *b, const struct limefile_record *record)
{
    char lfn[LIMEFILE_LFN_MAX];
    int err = fields_hear(b, record, ROLE_LFN, &b->lfn, lfn);
    if (err || !b->lfn.ordinal)
        return err;
    if (b->lfn.good && !b->out->by_lfn) {
        b->out->by_lfn = record->ordinal;
        strcpy(b->out->lfn, lfn);
    }
    struct kept_field *f = b->last_ildg ? &b->out->kept->field[b->last_ildg - 1] : NULL;
    if (f && b->last_ildg > b->message_first && !f->by_lfn) {
        f->by_lfn = (uint32_t)record->ordinal;
        b->lfn.ordinal = 0;
    }
    return 0;
}
