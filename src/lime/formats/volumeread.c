/* volumeread.c - the joined container: its records, and its bytes */
#include "volumeset.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

static bool is_list(const struct limefile_record *r)
{
    return strcmp(r->type, "scidac-sitelist") == 0;
}

/* True if the record has the master's data of that field. */
static bool is_field(const struct limefile_volumes *set, const struct limefile_record *r,
                     uint64_t field)
{
    return field < set->fields && volumes_is_data(r) &&
           set->volume[set->master].data[field] == r->data_offset;
}

/* Which field the next data are; global data are the master's alone. */
static int add(struct limefile_volumes *set, const struct limefile_record *r, uint64_t *field)
{
    struct joined *j = &set->record[set->records];
    *j = (struct joined){
        .offset = set->size, .bytes = r->bytes, .ordinal = (uint32_t)r->ordinal};
    if (j->ordinal == set->text_ordinal)
        j->bytes = set->text_bytes;
    if (is_field(set, r, *field)) {
        if (__builtin_mul_overflow(set->sites, set->site_bytes[*field], &j->bytes))
            return LIMEFILE_E_LENGTH;
        j->field = (uint32_t)++ * field;
    }
    struct limefile_header header;
    uint64_t end;
    int err = limefile_header_init(&header, r->type, r->type_len, j->bytes, true, true);
    set->records++;
    return err ? err : limefile_extent_of(j->offset, j->bytes, &end, &set->size);
}

static bool has_part(const struct limefile_volumes *set, uint32_t message)
{
    for (size_t i = 0; i < set->parts; i++)
        if (set->part[i].message == message)
            return true;
    return false;
}

/* True if the record is in the joined container when all records are. */
static bool is_joinable(const struct limefile_volumes *set, const struct limefile_record *r)
{
    return !is_list(r) && !has_part(set, r->message);
}

/* Marks the messages of the records that the caller has chosen, and that of the file. */
static int choose_messages(const struct limefile_volumes *set, bool *chosen)
{
    const struct limefile_index *index = set->volume[set->master].index;
    struct limefile_record r;
    size_t found = 0;
    uint64_t number = 0;
    for (uint64_t i = 1; limefile_index_get(index, i, &r) == 0; i++) {
        if (r.ordinal == set->text_ordinal)
            chosen[r.message] = true;
        if (!is_joinable(set, &r))
            continue;
        number++;
        for (size_t j = 0; j < set->options.record_count; j++)
            if (set->options.records[j] == number) {
                chosen[r.message] = true;
                found++;
            }
    }
    return found == set->options.record_count ? 0 : LIMEFILE_E_NO_RECORD;
}

static int join_messages(struct limefile_volumes *set, const bool *chosen)
{
    const struct limefile_index *index = set->volume[set->master].index;
    struct limefile_record r;
    uint64_t field = 0;
    uint32_t message = 0;
    int err = 0;
    for (uint64_t i = 1; !err && limefile_index_get(index, i, &r) == 0; i++) {
        if (!is_joinable(set, &r) || (chosen && !chosen[r.message])) {
            field += is_field(set, &r, field);
            continue;
        }
        struct joined *j = &set->record[set->records];
        err = add(set, &r, &field);
        j->mb = j->me = true; /* until another of its message follows */
        if (set->records > 1 && message == r.message)
            j->mb = j[-1].me = false;
        message = r.message;
    }
    return err;
}

int volumes_join(struct limefile_volumes *set)
{
    const struct limefile_index *index = set->volume[set->master].index;
    struct limefile_record file;
    bool *chosen = NULL;
    int err = limefile_index_get(index, set->text_ordinal, &file);
    if (!err && has_part(set, file.message))
        return LIMEFILE_E_VOLUME_PART;
    set->record = calloc((size_t)limefile_index_count(index) + 1, sizeof *set->record);
    if (!err && set->options.records)
        chosen = calloc((size_t)limefile_index_messages(index) + 1, sizeof *chosen);
    if (!err && (!set->record || (set->options.records && !chosen)))
        err = -ENOMEM;
    if (!err && chosen)
        err = choose_messages(set, chosen);
    if (!err)
        err = join_messages(set, chosen);
    free(chosen);
    set->options.records = NULL;
    return err;
}

/* ---- bytes ---- */

/* The last of `count` structs that begin with a number of at most `value`; they rise, and the
 * first one does. */
static const void *last_upto(const void *structs, size_t size, size_t count, uint64_t value)
{
    const char *base = structs;
    size_t low = 0, high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        uint64_t there;
        memcpy(&there, base + middle * size, sizeof there);
        if (there <= value)
            low = middle;
        else
            high = middle;
    }
    return base + low * size;
}

_Static_assert(offsetof(struct joined, offset) == 0 && offsetof(struct run, rank) == 0,
               "what they are found by comes first");

/* Several records end before `offset`; this one does not. */
static const struct joined *record_at(const struct limefile_volumes *set, uint64_t offset)
{
    return last_upto(set->record, sizeof *set->record, set->records, offset);
}

static const struct run *run_at(const struct limefile_volumes *set, uint64_t rank)
{
    return last_upto(set->run, sizeof *set->run, set->runs, rank);
}

static ssize_t read_all(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    ssize_t came = limefile_read_full(source, buf, n, offset);
    return came >= 0 && (size_t)came < n ? LIMEFILE_E_SHRUNK : came;
}

static ssize_t read_joined(const struct limefile_volumes *set, uint64_t field,
                           unsigned char *out, size_t n, uint64_t offset)
{
    uint64_t site = set->site_bytes[field];
    const struct run *run = run_at(set, offset / site);
    for (size_t left = n; left; run++) {
        uint64_t within = offset - run->rank * site, has = run->count * site - within;
        size_t part = has < left ? (size_t)has : left;
        const struct volume *v = &set->volume[run->volume];
        ssize_t came = read_all(v->source, out, part, v->data[field] + run->at * site + within);
        if (came < 0)
            return came;
        out += part;
        offset += part;
        left -= part;
    }
    return (ssize_t)n;
}

static ssize_t read_data(const struct limefile_volumes *set, const struct joined *j,
                         unsigned char *out, size_t n, uint64_t at)
{
    const struct volume *master = &set->volume[set->master];
    struct limefile_record r;
    if (j->field)
        return read_joined(set, j->field - 1, out, n, at);
    if (j->ordinal == set->text_ordinal) {
        memcpy(out, set->text + at, n);
        return (ssize_t)n;
    }
    int err = limefile_index_get(master->index, j->ordinal, &r);
    return err ? err : read_all(master->source, out, n, r.data_offset + at);
}

static ssize_t read_header(const struct limefile_volumes *set, const struct joined *j,
                           unsigned char *out, size_t n, uint64_t at)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_record r;
    struct limefile_header header;
    int err = limefile_index_get(set->volume[set->master].index, j->ordinal, &r);
    if (!err)
        err = limefile_header_init(&header, r.type, r.type_len, j->bytes, j->mb, j->me);
    if (!err)
        err = limefile_header_encode(&header, raw);
    if (err)
        return err;
    memcpy(out, raw + at, n);
    return (ssize_t)n;
}

/* Of one record: its header, data or padding. */
static ssize_t volumes_read(struct limefile_source *source, void *buf, size_t n,
                            uint64_t offset)
{
    const struct limefile_volumes *set = (const struct limefile_volumes *)source;
    if (offset >= set->size || n == 0)
        return 0;
    const struct joined *j = record_at(set, offset);
    uint64_t at = offset - j->offset, left;
    if (at < LIMEFILE_HEADER_BYTES) {
        left = LIMEFILE_HEADER_BYTES - at;
        return read_header(set, j, buf, left < n ? (size_t)left : n, at);
    }
    at -= LIMEFILE_HEADER_BYTES;
    if (at < j->bytes) {
        left = j->bytes - at;
        return read_data(set, j, buf, left < n ? (size_t)left : n, at);
    }
    left = j->bytes + limefile_padding(j->bytes) - at;
    n = left < n ? (size_t)left : n;
    memset(buf, 0, n);
    return (ssize_t)n;
}

static int volumes_size(struct limefile_source *source, uint64_t *size)
{
    *size = ((const struct limefile_volumes *)source)->size;
    return 0;
}

const struct limefile_source_ops volumes_ops = {.read = volumes_read, .size = volumes_size};
