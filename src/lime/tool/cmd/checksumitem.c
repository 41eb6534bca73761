/* checksumitem.c - the answer of lime checksum */
#define _GNU_SOURCE
#include "checksumitem.h"
#include "container.h"
#include "jsonout.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_words[] = {"unreadable", "good", "bad", "unverified", "cksum"};
static const char *const action_words[] = {"", "added", "replaced"};

/* ---- the list ---- */

/* Neighbours mostly are of the same type, and share it. */
static int keep_type(struct sum_items *items, const struct limefile_record *record,
                     uint32_t *out)
{
    size_t n = record->type_len + 1u, used = items->types_used;
    if (used && strcmp(items->types + items->last_type, record->type) == 0) {
        *out = (uint32_t)items->last_type;
        return 0;
    }
    if (used + n > items->types_capacity) {
        size_t more = used + used / 2 + n + 64;
        char *bigger = more > UINT32_MAX ? NULL : realloc(items->types, more);
        if (!bigger)
            return -ENOMEM;
        items->types = bigger;
        items->types_capacity = more;
    }
    memcpy(items->types + used, record->type, n);
    items->last_type = used;
    items->types_used += n;
    *out = (uint32_t)used;
    return 0;
}

int sum_items_add(struct sum_items *items, const struct limefile_field *field)
{
    if (items->count == items->capacity) {
        size_t more = items->capacity + items->capacity / 2 + 8;
        void *bigger = reallocarray(items->item, more, sizeof *items->item);
        if (!bigger)
            return -ENOMEM;
        items->item = bigger;
        items->capacity = more;
    }
    struct sum_item item = {.state = SUM_UNREADABLE};
    int err = keep_type(items, &field->record, &item.type);
    if (err)
        return err;
    sum_item_set(&item, field);
    items->item[items->count++] = item;
    items->bytes += item.bytes;
    return 0;
}

void sum_items_release(struct sum_items *items)
{
    free(items->item);
    free(items->types);
    *items = (struct sum_items){.count = 0};
}

static int compare(const void *a, const void *b)
{
    const struct sum_item *x = a, *y = b;
    return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

void sum_items_sort(struct sum_items *items)
{
    if (items->count)
        qsort(items->item, items->count, sizeof *items->item, compare);
}

void sum_item_set(struct sum_item *item, const struct limefile_field *field)
{
    item->ordinal = (uint32_t)field->record.ordinal;
    item->data_offset = field->record.data_offset;
    item->bytes = field->record.bytes;
    item->sites = field->sites;
    item->site_bytes = field->site_bytes;
    item->by_checksum = (uint32_t)field->by_checksum;
    item->has_stored = field->has_checksum;
    item->stored = field->checksum;
}

/* ---- the answer ---- */

static void print(const struct sum_items *items, const struct sum_item *item)
{
    const char *type = items->types + item->type;
    char shown[TYPE_SHOWN_MAX], more[96] = "";
    if (item->state == SUM_CKSUM)
        answer(NULL, "%" PRIu32 " %" PRIu64 " %" PRIu32 " %s", item->cksum, item->bytes,
               item->ordinal, type_shown(type, strlen(type), shown));
    if (item->state == SUM_CKSUM || !item->summed)
        return;
    if (item->action)
        snprintf(more, sizeof more, "  (%s)", action_words[item->action]);
    else if (item->state == SUM_BAD && item->has_stored)
        snprintf(more, sizeof more, "  (record %" PRIu32 " says %08x %08x)", item->by_checksum,
                 item->stored.suma, item->stored.sumb);
    else if (item->state == SUM_BAD)
        snprintf(more, sizeof more, "  (record %" PRIu32 " cannot be understood)",
                 item->by_checksum);
    else if (item->state == SUM_UNVERIFIED)
        snprintf(more, sizeof more, "  (no checksum)");
    answer(NULL, "%08x %08x %-10s %" PRIu32 " %s%s", item->sum.suma, item->sum.sumb,
           state_words[item->state], item->ordinal, type_shown(type, strlen(type), shown),
           more);
}

static void print_json(const struct sum_items *items, const struct sum_item *item)
{
    const char *type = items->types + item->type;
    printf("{\"ordinal\": %" PRIu32 ", \"type\": ", item->ordinal);
    jsonout_text(stdout, type, strlen(type));
    if (item->state == SUM_CKSUM) {
        printf(", \"bytes\": %" PRIu64 ", \"cksum\": %" PRIu32 "}", item->bytes, item->cksum);
        return;
    }
    printf(", \"bytes\": %" PRIu64 ", \"sites\": %" PRIu64 ", \"site_bytes\": %" PRIu64
           ", \"state\": \"%s\"",
           item->bytes, item->sites, item->site_bytes, state_words[item->state]);
    if (item->summed)
        printf(", \"suma\": \"%08x\", \"sumb\": \"%08x\"", item->sum.suma, item->sum.sumb);
    if (item->has_stored)
        printf(", \"stored\": {\"ordinal\": %" PRIu32
               ", \"suma\": \"%08x\", \"sumb\": \"%08x\"}",
               item->by_checksum, item->stored.suma, item->stored.sumb);
    if (item->action)
        printf(", \"action\": \"%s\"", action_words[item->action]);
    putchar('}');
}

void sum_items_print(const struct sum_items *items, const char *path, bool json)
{
    if (json) {
        fputs("{\"file\": ", stdout);
        jsonout_text(stdout, path, strlen(path));
        fputs(", \"records\": [", stdout);
    }
    for (size_t i = 0; i < items->count; i++) {
        if (json) {
            fputs(i ? ",\n " : "\n ", stdout);
            print_json(items, &items->item[i]);
        } else {
            print(items, &items->item[i]);
        }
    }
    if (json)
        fputs("]}\n", stdout);
}
