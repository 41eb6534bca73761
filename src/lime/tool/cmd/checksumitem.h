/*
 * checksumitem.h - lime checksum: the records that are wanted, and what has become of each.
 * They are printed at the end, and stand without the container: it may be another one by then.
 */
#ifndef CHECKSUMITEM_H
#define CHECKSUMITEM_H

#include "limeildg.h"

/* What has become of a record: its verdict (docs/verdicts.md), or CKSUM, which is compared with
 * nothing. */
enum sum_state { SUM_UNREADABLE, SUM_GOOD, SUM_BAD, SUM_UNVERIFIED, SUM_CKSUM };
enum sum_action { SUM_UNTOUCHED, SUM_ADDED, SUM_REPLACED };

/* Small: a container may have a million. */
struct sum_item {
    uint64_t data_offset, bytes;
    uint64_t sites, site_bytes; /* as the options say, or the file */
    struct limefile_checksum sum, stored;
    uint32_t cksum;
    uint32_t ordinal;
    uint32_t by_checksum; /* the record that says `stored`; 0: none */
    uint32_t type;        /* subscript of types */
    bool has_stored;      /* it can be understood */
    bool summed;          /* `sum` is known; if not, after a message */
    uint8_t state, action;
};

/* Zero to begin with. */
struct sum_items {
    struct sum_item *item;
    size_t count, capacity;
    char *types; /* NUL-terminated, one after another */
    size_t types_used, types_capacity, last_type;
    uint64_t bytes; /* of all items */
};

/* Adds a record, which is unreadable until it has been read. -ENOMEM. */
int sum_items_add(struct sum_items *, const struct limefile_field *);
void sum_items_release(struct sum_items *);
void sum_items_sort(struct sum_items *); /* by ordinal */

/* What is known of the field by now; its type is not looked at. */
void sum_item_set(struct sum_item *, const struct limefile_field *);

void sum_items_print(const struct sum_items *, const char *path, bool json);

#endif
