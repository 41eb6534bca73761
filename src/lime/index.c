/* index.c - store all records of a container for random access */
#include "limefile.h"
#include "array.h"
#include "splitmix64.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct index_entry {
    uint64_t header_offset;
    uint64_t bytes;
    uint32_t message, record;
    uint32_t type; /* subscript of `types` */
    bool mb, me;
};

/* Each type is stored once, for any number of records. */
struct index_type {
    uint32_t count;
    uint32_t first; /* ordinal of the first record of this type */
    uint32_t hash;
    uint32_t text; /* subscript of `texts`: length (a byte), text, NUL */
};

struct limefile_index {
    atomic_uint references;
    struct index_entry *entries;
    size_t count, capacity;
    struct index_type *types;
    size_t type_count, type_capacity;
    char *texts;
    size_t text_size, text_capacity;
    uint32_t *slots; /* hash table of types, open addressing: subscript of `types` + 1, or 0 */
    size_t slot_count;
    uint64_t key[2]; /* random key of the hash */
    uint64_t size, end, deviations;
    bool has_fault;
    struct limefile_finding fault;
};

/* The hash has a random key, so that a malicious file cannot make all types collide. */
static uint32_t hash_type(const struct limefile_index *index, const char *type, size_t len)
{
    uint64_t hash = index->key[0] + len, word;
    for (size_t i = 0; i < len; i += sizeof word) {
        word = 0;
        memcpy(&word, type + i, len - i < sizeof word ? len - i : sizeof word);
        hash = mix64(mix64(hash ^ word) + index->key[1]);
    }
    return (uint32_t)hash;
}

static void set_random_key(struct limefile_index *index)
{
    index->key[0] = index->key[1] = (uint64_t)(uintptr_t)index;
    ssize_t got = getrandom(index->key, sizeof index->key, GRND_NONBLOCK);
    (void)got; /* can fail early at boot: then the key is an address, hard to guess */
}

static uint8_t type_length(const struct limefile_index *index, const struct index_type *type)
{
    return (uint8_t)index->texts[type->text];
}

static const char *type_text(const struct limefile_index *index, const struct index_type *type)
{
    return index->texts + type->text + 1;
}

/* Returns the slot of a type, or the free slot to insert it. */
static uint32_t *find_slot(const struct limefile_index *index, const char *type, size_t len,
                           uint32_t hash)
{
    size_t mask = index->slot_count - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &index->slots[i];
        if (*slot == 0)
            return slot;
        const struct index_type *t = &index->types[*slot - 1];
        if (t->hash == hash && type_length(index, t) == len &&
            memcmp(type_text(index, t), type, len) == 0)
            return slot;
    }
}

static int grow_slots(struct limefile_index *index)
{
    size_t count = index->slot_count ? index->slot_count * 2 : 64;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < index->type_count; i++) {
        size_t at = index->types[i].hash & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(index->slots);
    index->slots = slots;
    index->slot_count = count;
    return 0;
}

/* Finds the subscript of the record's type; adds the type if it is new. */
static int find_or_add_type(struct limefile_index *index, const struct limefile_record *record,
                            uint32_t *out)
{
    if (index->type_count * 2 >= index->slot_count) {
        int err = grow_slots(index);
        if (err)
            return err;
    }
    uint32_t hash = hash_type(index, record->type, record->type_len);
    uint32_t *slot = find_slot(index, record->type, record->type_len, hash);
    if (*slot == 0) {
        size_t text = record->type_len + 2u;
        if (index->text_size + text > UINT32_MAX)
            return -ENOMEM;
        if (!limefile_reserve(&index->types, &index->type_capacity, index->type_count + 1,
                              sizeof *index->types) ||
            !limefile_reserve(&index->texts, &index->text_capacity, index->text_size + text, 1))
            return -ENOMEM;
        index->texts[index->text_size] = (char)record->type_len;
        memcpy(index->texts + index->text_size + 1, record->type, text - 1);
        index->types[index->type_count] = (struct index_type){
            .hash = hash,
            .text = (uint32_t)index->text_size,
        };
        index->text_size += text;
        *slot = (uint32_t)++index->type_count;
    }
    if (index->types[*slot - 1].count++ == 0)
        index->types[*slot - 1].first = (uint32_t)record->ordinal;
    *out = *slot - 1;
    return 0;
}

static int append_record(struct limefile_index *index, const struct limefile_record *record)
{
    uint32_t type;
    if (!limefile_reserve(&index->entries, &index->capacity, index->count + 1,
                          sizeof *index->entries))
        return -ENOMEM;
    int err = find_or_add_type(index, record, &type);
    if (err)
        return err;
    index->entries[index->count++] = (struct index_entry){
        .header_offset = record->header_offset,
        .bytes = record->bytes,
        .message = record->message,
        .record = record->record,
        .type = type,
        .mb = record->mb,
        .me = record->me,
    };
    index->end = record->data_offset + record->bytes + record->padding;
    return 0;
}

struct callbacks {
    struct limefile_index *index;
    limefile_finding_fn *report;
    limefile_progress_fn *progress;
    void *context;
};

static void report_finding(void *context, const struct limefile_finding *finding)
{
    struct callbacks *callbacks = context;
    if (!limefile_is_fault(finding->code))
        callbacks->index->deviations++;
    if (callbacks->report)
        callbacks->report(callbacks->context, finding);
}

/* Frees the unused capacity of an array. */
static void shrink(void **array, size_t *capacity, size_t used, size_t element)
{
    void *smaller = used ? reallocarray(*array, used, element) : NULL;
    if (smaller) {
        *array = smaller;
        *capacity = used;
    }
}

static void shrink_arrays(struct limefile_index *index)
{
    shrink((void **)&index->entries, &index->capacity, index->count, sizeof *index->entries);
    shrink((void **)&index->types, &index->type_capacity, index->type_count,
           sizeof *index->types);
    shrink((void **)&index->texts, &index->text_capacity, index->text_size, 1);
}

static int append_records(struct limefile_index *index, struct limefile_scan *scan,
                          const struct callbacks *callbacks)
{
    struct limefile_record record;
    uint64_t done, size;
    int err = 0;
    while (!err && limefile_scan_next(scan, &record) > 0) {
        err = append_record(index, &record);
        if (callbacks->progress) {
            limefile_scan_progress(scan, &done, &size);
            callbacks->progress(callbacks->context, done, size);
        }
    }
    return err;
}

static void set_end(struct limefile_index *index, const struct limefile_scan *scan)
{
    uint64_t done;
    limefile_scan_progress(scan, &done, &index->size);
    const struct limefile_finding *fault = limefile_scan_fault(scan);
    index->has_fault = fault != NULL;
    if (fault)
        index->fault = *fault;
    if (index->end > index->size)
        index->end = index->size; /* the last padding is missing */
    shrink_arrays(index);
}

int limefile_index_scan(struct limefile_source *source, limefile_finding_fn *report,
                        limefile_progress_fn *progress, void *context,
                        struct limefile_index **out)
{
    struct limefile_scan *scan = NULL;
    struct limefile_index *index = calloc(1, sizeof *index);
    struct callbacks callbacks = {index, report, progress, context};
    if (!index)
        return -ENOMEM;
    index->references = 1;
    set_random_key(index);
    int err = limefile_scan_new(source, report_finding, &callbacks, &scan);
    if (!err)
        err = append_records(index, scan, &callbacks);
    if (!err)
        set_end(index, scan);
    limefile_scan_free(scan);
    if (err) {
        limefile_index_free(index);
        return err;
    }
    *out = index;
    return 0;
}

int limefile_index_build(struct limefile_source *source, struct limefile_index **out)
{
    return limefile_index_scan(source, NULL, NULL, NULL, out);
}

struct limefile_index *limefile_index_ref(struct limefile_index *index)
{
    index->references++;
    return index;
}

/* ---- a copy with another last record ---- */

/* Allocates room for `used` + `more` elements and copies the first `used` from `from`. */
static int copy_array(void **to, size_t *capacity, const void *from, size_t used, size_t more,
                      size_t element)
{
    *to = used + more ? reallocarray(NULL, used + more, element) : NULL;
    if (!*to && used + more)
        return -ENOMEM;
    if (used)
        memcpy(*to, from, used * element);
    *capacity = used + more;
    return 0;
}

/* Copies the first `count` records of `old`; `count` is their number, or one less. */
static int copy_index(const struct limefile_index *old, uint64_t count,
                      struct limefile_index **out)
{
    struct limefile_index *index = calloc(1, sizeof *index);
    size_t slots = 0;
    if (!index)
        return -ENOMEM;
    *index = (struct limefile_index){
        .references = 1,
        .count = (size_t)count,
        .type_count = old->type_count,
        .text_size = old->text_size,
        .slot_count = old->slot_count,
        .key = {old->key[0], old->key[1]},
        .deviations = old->deviations,
    };
    if (copy_array((void **)&index->entries, &index->capacity, old->entries, index->count, 1,
                   sizeof *index->entries) ||
        copy_array((void **)&index->types, &index->type_capacity, old->types, old->type_count,
                   1, sizeof *index->types) ||
        copy_array((void **)&index->texts, &index->text_capacity, old->texts, old->text_size,
                   LIMEFILE_TYPE_BYTES + 2, 1) ||
        copy_array((void **)&index->slots, &slots, old->slots, old->slot_count, 0,
                   sizeof *index->slots)) {
        limefile_index_free(index);
        return -ENOMEM;
    }
    /* If no record of this type remains, `count` is 0, and `first` is not used. */
    if (count < old->count)
        index->types[old->entries[count].type].count--;
    struct limefile_record last;
    if (limefile_index_get(index, count, &last) == 0)
        index->end = last.data_offset + last.bytes + last.padding;
    index->size = index->end;
    *out = index;
    return 0;
}

int limefile_index_with(const struct limefile_index *old, const struct limefile_record *record,
                        struct limefile_index **out)
{
    if (record->ordinal == 0 || record->ordinal > UINT32_MAX || record->ordinal < old->count ||
        record->ordinal > old->count + 1)
        return LIMEFILE_E_NO_RECORD;
    int err = copy_index(old, record->ordinal - 1, out);
    if (!err) {
        err = append_record(*out, record);
        (*out)->size = (*out)->end;
        if (err)
            limefile_index_free(*out);
    }
    return err;
}

int limefile_index_without_last(const struct limefile_index *old, struct limefile_index **out)
{
    return old->count ? copy_index(old, old->count - 1, out) : LIMEFILE_E_NO_RECORD;
}

void limefile_index_free(struct limefile_index *index)
{
    if (!index || --index->references)
        return;
    free(index->entries);
    free(index->types);
    free(index->texts);
    free(index->slots);
    free(index);
}

uint64_t limefile_index_count(const struct limefile_index *index)
{
    return index->count;
}

uint32_t limefile_index_messages(const struct limefile_index *index)
{
    return index->count ? index->entries[index->count - 1].message : 0;
}

uint64_t limefile_index_size(const struct limefile_index *index)
{
    return index->size;
}

uint64_t limefile_index_end(const struct limefile_index *index)
{
    return index->end;
}

uint64_t limefile_index_deviations(const struct limefile_index *index)
{
    return index->deviations;
}

size_t limefile_index_memory(const struct limefile_index *index)
{
    return sizeof *index + index->capacity * sizeof *index->entries +
           index->type_capacity * sizeof *index->types + index->text_capacity +
           index->slot_count * sizeof *index->slots;
}

const struct limefile_finding *limefile_index_fault(const struct limefile_index *index)
{
    return index->has_fault ? &index->fault : NULL;
}

bool limefile_index_is_container(const struct limefile_index *index)
{
    return !(
        index->count == 0 && index->has_fault &&
        (index->fault.code == LIMEFILE_E_MAGIC || index->fault.code == LIMEFILE_E_VERSION));
}

int limefile_index_get(const struct limefile_index *index, uint64_t ordinal,
                       struct limefile_record *out)
{
    if (ordinal == 0 || ordinal > index->count)
        return LIMEFILE_E_NO_RECORD;
    const struct index_entry *entry = &index->entries[ordinal - 1];
    const struct index_type *type = &index->types[entry->type];
    *out = (struct limefile_record){
        .ordinal = ordinal,
        .message = entry->message,
        .record = entry->record,
        .header_offset = entry->header_offset,
        .data_offset = entry->header_offset + LIMEFILE_HEADER_BYTES,
        .bytes = entry->bytes,
        .padding = (uint8_t)limefile_padding(entry->bytes),
        .mb = entry->mb,
        .me = entry->me,
        .type_len = type_length(index, type),
        .type = type_text(index, type),
    };
    return 0;
}

int limefile_index_by_number(const struct limefile_index *index, uint32_t message,
                             uint32_t record, struct limefile_record *out)
{
    /* Message numbers do not decrease: a binary search finds a message's first record. */
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->entries[middle].message < message)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t ordinal = (uint64_t)low + record;
    if (record == 0 || ordinal > index->count || index->entries[ordinal - 1].message != message)
        return LIMEFILE_E_NO_RECORD;
    return limefile_index_get(index, ordinal, out);
}

int limefile_index_by_type(const struct limefile_index *index, const char *type,
                           size_t type_len, struct limefile_record *first, uint64_t *count)
{
    if (index->slot_count == 0)
        return LIMEFILE_E_NO_RECORD;
    uint32_t slot = *find_slot(index, type, type_len, hash_type(index, type, type_len));
    if (slot == 0 || index->types[slot - 1].count == 0)
        return LIMEFILE_E_NO_RECORD;
    *count = index->types[slot - 1].count;
    return limefile_index_get(index, index->types[slot - 1].first, first);
}
