/* volumes.c - check that a set of volumes is complete, and present it as one container */
#include "array.h"
#include "header_bytes.h"
#include "limevolumes.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIST_BLOCK = 16384, /* ranks (numbers of sites in the lattice) read at a time */
};

struct volume {
    struct limefile_source *source;
    struct limefile_index *index;
    struct limefile_record list; /* the list of sites */
    uint64_t sites;
    uint64_t *data; /* for each field: the offset of the field's data in this volume */
};

/* A record of a part of the lattice (a hypercube). The joined container has no such record. */
struct part {
    uint32_t ordinal, message; /* numbers in the master */
    struct limefile_scidac_record stated;
};

/* Sites that are consecutive in the lattice and in a volume. */
struct site_run {
    uint64_t rank, at; /* number of the first site in the lattice, and in the volume's data */
    uint32_t count, volume;
};

/* A record of the joined container. */
struct joined {
    uint64_t offset; /* offset of its header */
    uint64_t bytes;
    uint32_t ordinal; /* number in the master */
    uint32_t field;   /* number + 1 of the field; 0: the master has all data of the record */
    bool mb, me;
};

struct limefile_volumes {
    struct limefile_source source; /* first member: the operations cast it to the set */
    struct volume *volume;
    size_t count, master;
    struct limefile_scidac_file file;
    uint64_t sites; /* sites of the lattice */
    uint64_t fields;
    uint64_t *site_bytes; /* for each field */
    uint64_t *order;      /* for each data record of another volume: field + 1; 0: of a part */
    struct part *part;
    size_t parts;
    struct limefile_volumes_options options;
    struct site_run *run;
    size_t run_count, capacity;
    struct joined *record;
    size_t records;
    uint64_t size;
    char *text; /* the private file XML, with volfmt 0 */
    size_t text_bytes;
    uint32_t text_ordinal; /* number in the master */
};

/* ---- metadata ---- */

/* Reads a record as text with a NUL; the caller frees it. */
static int read_volume_text(const struct volume *v, const struct limefile_record *r, char **out)
{
    if (r->bytes > LIMEFILE_XML_BYTES_MAX)
        return LIMEFILE_E_XML;
    return limefile_record_read_text(v->source, r, (size_t)r->bytes, out);
}

/* Replaces "<volfmt> 2 </volfmt>" by "<volfmt> 0 </volfmt>". */
static bool set_volfmt_single(char *text)
{
    char *at = strstr(text, "<volfmt>");
    at = at ? at + strlen("<volfmt>") : NULL;
    at = at ? at + strspn(at, " \t\r\n") : NULL;
    if (!at || !isdigit((unsigned char)at[0]) || isdigit((unsigned char)at[1]))
        return false;
    *at = '0';
    return true;
}

static int read_file_xml(struct limefile_volumes *set, const struct limefile_record *r)
{
    int err = read_volume_text(&set->volume[set->master], r, &set->text);
    set->text_bytes = (size_t)r->bytes;
    set->text_ordinal = (uint32_t)r->ordinal;
    if (!err)
        err = limefile_scidac_file_parse(set->text, set->text_bytes, &set->file);
    if (err)
        return err;
    set->sites = limefile_lattice_sites(&set->file.lattice);
    if (set->file.volfmt == 0)
        return LIMEFILE_E_VOLUME_NONE;
    return set_volfmt_single(set->text) ? 0 : LIMEFILE_E_XML_VALUE;
}

/* ---- the master ---- */

/* Appends an entry to set->order: the number + 1 of a field, or 0 for a part. */
static int append_order(struct limefile_volumes *set, uint64_t field)
{
    void *order = reallocarray(set->order, set->fields + set->parts + 1, sizeof *set->order);
    if (!order)
        return -ENOMEM;
    set->order = order;
    set->order[set->fields + set->parts] = field;
    return 0;
}

static int add_part(struct limefile_volumes *set, const struct limefile_record *data,
                    const struct limefile_scidac_record *stated)
{
    if (!set->options.skips_parts)
        return LIMEFILE_E_VOLUME_PART;
    int err = append_order(set, 0);
    void *part = err ? NULL : reallocarray(set->part, set->parts + 1, sizeof *set->part);
    if (!part)
        return -ENOMEM;
    set->part = part;
    set->part[set->parts++] = (struct part){(uint32_t)data->ordinal, data->message, *stated};
    return 0;
}

static int add_field(struct limefile_volumes *set, const struct limefile_record *data,
                     const struct limefile_scidac_record *stated)
{
    struct volume *master = &set->volume[set->master];
    int err = append_order(set, set->fields + 1);
    if (err)
        return err;
    void *offsets = reallocarray(master->data, set->fields + 1, sizeof *master->data);
    if (!offsets)
        return -ENOMEM;
    master->data = offsets;
    void *bytes = reallocarray(set->site_bytes, set->fields + 1, sizeof *set->site_bytes);
    if (!bytes)
        return -ENOMEM;
    set->site_bytes = bytes;
    master->data[set->fields] = data->data_offset;
    set->site_bytes[set->fields++] = stated->typesize * stated->datacount;
    return 0;
}

/* Reads the private XML of a data record of the master, and adds the field or part, if any. */
static int read_data_record(struct limefile_volumes *set, const struct limefile_record *data,
                            const struct limefile_record *private_xml)
{
    struct limefile_scidac_record stated;
    char *text = NULL;
    if (!private_xml->ordinal)
        return LIMEFILE_E_VOLUME_RECORDS;
    int err = read_volume_text(&set->volume[set->master], private_xml, &text);
    if (err)
        return err;
    err = limefile_scidac_record_parse(text, (size_t)private_xml->bytes, &stated);
    free(text);
    if (err)
        return err;
    if (stated.recordtype == LIMEFILE_GLOBAL)
        return 0;
    return stated.recordtype == LIMEFILE_FIELD ? add_field(set, data, &stated)
                                               : add_part(set, data, &stated);
}

static int read_master(struct limefile_volumes *set)
{
    const struct limefile_index *index = set->volume[set->master].index;
    struct limefile_record r, private_xml = {0};
    int err = 0;
    for (uint64_t i = 1; !err && limefile_index_get(index, i, &r) == 0; i++) {
        if (strcmp(r.type, "scidac-private-file-xml") == 0)
            err = set->text ? LIMEFILE_E_VOLUME_MASTER : read_file_xml(set, &r);
        else if (strcmp(r.type, "scidac-private-record-xml") == 0)
            private_xml = r;
        else if (limefile_record_is_data(&r)) {
            err = read_data_record(set, &r, &private_xml);
            private_xml.ordinal = 0;
        }
    }
    return err                         ? err
           : set->fields && set->sites ? 0
           : set->parts                ? LIMEFILE_E_VOLUME_PART
                                       : LIMEFILE_E_VOLUME_RECORDS;
}

static int find_master(struct limefile_volumes *set)
{
    static const char type[] = "scidac-private-file-xml";
    size_t found = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct limefile_record r;
        uint64_t count;
        if (limefile_index_by_type(set->volume[i].index, type, sizeof type - 1, &r, &count))
            continue;
        set->master = i;
        found++;
    }
    return found == 1 ? 0 : LIMEFILE_E_VOLUME_MASTER;
}

/* ---- each volume ---- */

static int open_volume(struct volume *v)
{
    static const char type[] = "scidac-sitelist";
    uint64_t count;
    int err = limefile_index_build(v->source, &v->index);
    if (err)
        return err;
    if (limefile_index_fault(v->index))
        return limefile_index_fault(v->index)->code;
    err = limefile_index_by_type(v->index, type, sizeof type - 1, &v->list, &count);
    return err || count != 1 ? LIMEFILE_E_VOLUME_LIST : 0;
}

/* Stores the offset of a field's data in a volume. All fields have the same number of sites. */
static int set_field_data(struct limefile_volumes *set, struct volume *v, uint64_t field,
                          const struct limefile_record *r)
{
    uint64_t n = r->bytes / set->site_bytes[field];
    if (r->bytes % set->site_bytes[field] || (field && n != v->sites) || n > set->sites)
        return LIMEFILE_E_VOLUME_RECORDS;
    v->sites = n;
    v->data[field] = r->data_offset;
    return 0;
}

/* Checks the lengths of the master's data, whose offsets add_field() has stored. */
static int find_master_data(struct limefile_volumes *set, struct volume *v)
{
    struct limefile_record r;
    uint64_t at = 0;
    int err = 0;
    for (uint64_t i = 1; !err && limefile_index_get(v->index, i, &r) == 0; i++)
        if (at < set->fields && v->data[at] == r.data_offset && limefile_record_is_data(&r))
            err = set_field_data(set, v, at++, &r);
    return err;
}

static uint64_t count_data(const struct volume *v)
{
    struct limefile_record r;
    uint64_t count = 0;
    for (uint64_t i = 1; limefile_index_get(v->index, i, &r) == 0; i++)
        count += limefile_record_is_data(&r);
    return count;
}

/* Finds the data of a volume that is not the master. The volume has a data record for each
 * field and part, in the master's order; if it has no site of the parts, only for fields. */
static int find_volume_data(struct limefile_volumes *set, struct volume *v)
{
    struct limefile_record r;
    uint64_t count = count_data(v), at = 0;
    bool has_parts = count == set->fields + set->parts;
    int err = 0;
    if (!has_parts && count != set->fields)
        return LIMEFILE_E_VOLUME_RECORDS;
    v->data = calloc((size_t)set->fields, sizeof *v->data);
    if (!v->data)
        return -ENOMEM;
    for (uint64_t i = 1; !err && limefile_index_get(v->index, i, &r) == 0; i++) {
        if (!limefile_record_is_data(&r))
            continue;
        uint64_t field = has_parts ? set->order[at] : at + 1;
        at++;
        if (field)
            err = set_field_data(set, v, field - 1, &r);
    }
    return err;
}

/* Finds a volume's data, and checks that its list has 4 or 8 bytes for each site. */
static int read_volume_records(struct limefile_volumes *set, size_t number)
{
    struct volume *v = &set->volume[number];
    int err = number == set->master ? find_master_data(set, v) : find_volume_data(set, v);
    if (err)
        return err;
    if (v->sites > UINT64_MAX / 8 ||
        (v->list.bytes != 4 * v->sites && v->list.bytes / 8 != v->sites))
        return LIMEFILE_E_VOLUME_LIST;
    return v->list.bytes != 4 * v->sites && v->list.bytes % 8 ? LIMEFILE_E_VOLUME_LIST : 0;
}

/* ---- lists of sites ---- */

/* Adds a site to the last run if the site continues this run; if not, begins a new run. */
static int add_rank(struct limefile_volumes *set, uint64_t rank, uint64_t at, uint32_t volume)
{
    struct site_run *last = set->run_count ? &set->run[set->run_count - 1] : NULL;
    if (rank >= set->sites)
        return LIMEFILE_E_VOLUME_LIST;
    if (last && last->volume == volume && last->rank + last->count == rank &&
        last->at + last->count == at && last->count < UINT32_MAX) {
        last->count++;
        return 0;
    }
    /* Fail here: a hole in a file reads as equal ranks, each of which would need a run. */
    if (last && last->volume == volume && last->rank + last->count - 1 == rank)
        return LIMEFILE_E_VOLUME_TWICE;
    if (!limefile_reserve(&set->run, &set->capacity, set->run_count + 1, sizeof *set->run))
        return -ENOMEM;
    set->run[set->run_count++] = (struct site_run){rank, at, 1, volume};
    return 0;
}

static int read_site_list(struct limefile_volumes *set, size_t number)
{
    const struct volume *v = &set->volume[number];
    unsigned bytes = v->sites ? (unsigned)(v->list.bytes / v->sites) : 4;
    unsigned char *raw = malloc(LIST_BLOCK * 8);
    int err = raw ? 0 : -ENOMEM;
    for (uint64_t at = 0, n; !err && at < v->sites; at += n) {
        n = v->sites - at < LIST_BLOCK ? v->sites - at : LIST_BLOCK;
        err = limefile_read_exact(v->source, raw, (size_t)n * bytes,
                                  v->list.data_offset + at * bytes);
        for (uint64_t i = 0; !err && i < n; i++)
            err = add_rank(set, bytes == 4 ? get_be32(raw + 4 * i) : get_be64(raw + 8 * i),
                           at + i, (uint32_t)number);
    }
    free(raw);
    return err;
}

static int compare_ranks(const void *one, const void *other)
{
    const struct site_run *a = one, *b = other;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Sorts the runs by the number of their first site, and checks that each site occurs once. */
static int sort_runs(struct limefile_volumes *set)
{
    uint64_t next = 0;
    if (set->run_count)
        qsort(set->run, set->run_count, sizeof *set->run, compare_ranks);
    for (size_t i = 0; i < set->run_count; i++) {
        if (set->run[i].rank != next)
            return set->run[i].rank < next ? LIMEFILE_E_VOLUME_TWICE
                                           : LIMEFILE_E_VOLUME_MISSING;
        next += set->run[i].count;
    }
    return next == set->sites ? 0 : LIMEFILE_E_VOLUME_MISSING;
}

/* ---- records of the joined container ---- */

static bool is_site_list(const struct limefile_record *r)
{
    return strcmp(r->type, "scidac-sitelist") == 0;
}

/* Returns true if r, a record of the master, has data of the field with the number `field`. */
static bool is_master_field(const struct limefile_volumes *set, const struct limefile_record *r,
                            uint64_t field)
{
    return field < set->fields && limefile_record_is_data(r) &&
           set->volume[set->master].data[field] == r->data_offset;
}

/* Adds r, a record of the master. *field: the next field; incremented if r has its data. */
static int add_joined(struct limefile_volumes *set, const struct limefile_record *r,
                      uint64_t *field)
{
    struct joined *j = &set->record[set->records];
    *j = (struct joined){
        .offset = set->size, .bytes = r->bytes, .ordinal = (uint32_t)r->ordinal};
    if (j->ordinal == set->text_ordinal)
        j->bytes = set->text_bytes;
    if (is_master_field(set, r, *field)) {
        if (__builtin_mul_overflow(set->sites, set->site_bytes[*field], &j->bytes))
            return LIMEFILE_E_LENGTH;
        j->field = (uint32_t)(*field += 1);
    }
    struct limefile_header header;
    uint64_t end;
    int err = limefile_header_init(&header, r->type, r->type_len, j->bytes, true, true);
    set->records++;
    return err ? err : limefile_record_end(j->offset, j->bytes, &end, &set->size);
}

static bool has_part(const struct limefile_volumes *set, uint32_t message)
{
    for (size_t i = 0; i < set->parts; i++)
        if (set->part[i].message == message)
            return true;
    return false;
}

/* Returns true if the container that joins all messages has this record of the master. */
static bool is_joinable(const struct limefile_volumes *set, const struct limefile_record *r)
{
    return !is_site_list(r) && !has_part(set, r->message);
}

/* Sets chosen[m] for each message m with a selected record or with the private file XML. */
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

/* Joins the records of the chosen messages. chosen NULL: joins the records of all messages. */
static int join_messages(struct limefile_volumes *set, const bool *chosen)
{
    const struct limefile_index *index = set->volume[set->master].index;
    struct limefile_record r;
    uint64_t field = 0;
    uint32_t message = 0;
    int err = 0;
    for (uint64_t i = 1; !err && limefile_index_get(index, i, &r) == 0; i++) {
        if (!is_joinable(set, &r) || (chosen && !chosen[r.message])) {
            field += is_master_field(set, &r, field);
            continue;
        }
        struct joined *j = &set->record[set->records];
        err = add_joined(set, &r, &field);
        /* The message has only this record until another record continues the message. */
        j->mb = j->me = true;
        if (set->records > 1 && message == r.message)
            j->mb = j[-1].me = false;
        message = r.message;
    }
    return err;
}

static int join_volumes(struct limefile_volumes *set)
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

/* ---- reading the joined container ---- */

/* Each of the `count` structs begins with a uint64_t, the key, and they are sorted by keys. The
 * first key must be at most `value`. Returns the last struct whose key is at most `value`. */
static const void *last_at_most(const void *structs, size_t size, size_t count, uint64_t value)
{
    const char *base = structs;
    size_t low = 0, high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        uint64_t key;
        memcpy(&key, base + middle * size, sizeof key);
        if (key <= value)
            low = middle;
        else
            high = middle;
    }
    return base + low * size;
}

_Static_assert(offsetof(struct joined, offset) == 0 && offsetof(struct site_run, rank) == 0,
               "what they are found by comes first");

/* Returns the record that contains the byte at `offset`. */
static const struct joined *record_at(const struct limefile_volumes *set, uint64_t offset)
{
    return last_at_most(set->record, sizeof *set->record, set->records, offset);
}

static const struct site_run *run_at(const struct limefile_volumes *set, uint64_t rank)
{
    return last_at_most(set->run, sizeof *set->run, set->run_count, rank);
}

static ssize_t read_joined_field(const struct limefile_volumes *set, uint64_t field,
                                 unsigned char *out, size_t n, uint64_t offset)
{
    uint64_t site = set->site_bytes[field];
    const struct site_run *run = run_at(set, offset / site);
    for (size_t left = n; left; run++) {
        uint64_t within = offset - run->rank * site, has = run->count * site - within;
        size_t chunk = has < left ? (size_t)has : left;
        const struct volume *v = &set->volume[run->volume];
        int err = limefile_read_exact(v->source, out, chunk,
                                      v->data[field] + run->at * site + within);
        if (err)
            return err;
        out += chunk;
        offset += chunk;
        left -= chunk;
    }
    return (ssize_t)n;
}

static ssize_t read_joined_data(const struct limefile_volumes *set, const struct joined *j,
                                unsigned char *out, size_t n, uint64_t at)
{
    const struct volume *master = &set->volume[set->master];
    struct limefile_record r;
    if (j->field)
        return read_joined_field(set, j->field - 1, out, n, at);
    if (j->ordinal == set->text_ordinal) {
        memcpy(out, set->text + at, n);
        return (ssize_t)n;
    }
    int err = limefile_index_get(master->index, j->ordinal, &r);
    if (!err)
        err = limefile_read_exact(master->source, out, n, r.data_offset + at);
    return err ? err : (ssize_t)n;
}

static ssize_t read_joined_header(const struct limefile_volumes *set, const struct joined *j,
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

/* Reads up to n bytes, but only from one record's header, data or padding. */
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
        return read_joined_header(set, j, buf, left < n ? (size_t)left : n, at);
    }
    at -= LIMEFILE_HEADER_BYTES;
    if (at < j->bytes) {
        left = j->bytes - at;
        return read_joined_data(set, j, buf, left < n ? (size_t)left : n, at);
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

static const struct limefile_source_ops volumes_ops = {.read = volumes_read,
                                                       .size = volumes_size};

/* ---- the set ---- */

/* Checks that the volumes together have as many sites as the lattice. */
static int count_sites(const struct limefile_volumes *set)
{
    uint64_t sites = 0;
    for (size_t i = 0; i < set->count; i++)
        if (__builtin_add_overflow(sites, set->volume[i].sites, &sites))
            return LIMEFILE_E_VOLUME_TWICE;
    return sites < set->sites   ? LIMEFILE_E_VOLUME_MISSING
           : sites > set->sites ? LIMEFILE_E_VOLUME_TWICE
                                : 0;
}

/* *bad: number of the volume that an error concerns, or set->count if it concerns the set. */
static int load_volumes(struct limefile_volumes *set, struct limefile_source *const *volumes,
                        size_t *bad)
{
    int err = 0;
    for (size_t i = 0; !err && i < set->count; i++) {
        *bad = i;
        set->volume[i].source = volumes[i];
        err = open_volume(&set->volume[i]);
    }
    if (err)
        return err;
    *bad = set->count;
    err = find_master(set);
    if (err)
        return err;
    *bad = set->master;
    err = read_master(set);
    for (size_t i = 0; !err && i < set->count; i++) {
        *bad = i;
        err = read_volume_records(set, i);
    }
    if (err)
        return err;
    *bad = set->count;
    err = count_sites(set);
    for (size_t i = 0; !err && i < set->count; i++) {
        *bad = i;
        err = read_site_list(set, i);
    }
    if (err)
        return err;
    *bad = set->count;
    err = sort_runs(set);
    return err ? err : join_volumes(set);
}

int limefile_volumes_open(struct limefile_source *const *volumes, size_t count,
                          const struct limefile_volumes_options *options,
                          struct limefile_volumes **out, size_t *bad)
{
    struct limefile_volumes *set = calloc(1, sizeof *set);
    *bad = count;
    if (!set)
        return -ENOMEM;
    set->source.ops = &volumes_ops;
    set->options = *options;
    set->volume = calloc(count ? count : 1, sizeof *set->volume);
    set->count = set->volume ? count : 0;
    int err = !set->volume                        ? -ENOMEM
              : count == 0 || count >= UINT32_MAX ? LIMEFILE_E_VOLUME_MASTER
                                                  : load_volumes(set, volumes, bad);
    if (err)
        limefile_volumes_close(set);
    else
        *out = set;
    return err;
}

void limefile_volumes_close(struct limefile_volumes *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        limefile_index_free(set->volume[i].index);
        free(set->volume[i].data);
    }
    free(set->volume);
    free(set->site_bytes);
    free(set->order);
    free(set->part);
    free(set->run);
    free(set->record);
    free(set->text);
    free(set);
}

struct limefile_source *limefile_volumes_source(struct limefile_volumes *set)
{
    return &set->source;
}

void limefile_volumes_info(const struct limefile_volumes *set,
                           struct limefile_volumes_info *out)
{
    *out = (struct limefile_volumes_info){
        .volfmt = set->file.volfmt,
        .lattice = set->file.lattice,
        .volumes = set->count,
        .master = set->master,
        .fields = set->fields,
        .skipped = set->parts,
    };
}

uint64_t limefile_volumes_skipped_part(const struct limefile_volumes *set, size_t i,
                                       const struct limefile_scidac_record **stated)
{
    *stated = &set->part[i].stated;
    return set->part[i].ordinal;
}

uint64_t limefile_volumes_sites(const struct limefile_volumes *set, size_t volume)
{
    return set->volume[volume].sites;
}

/* ---- names ---- */

bool limefile_volumes_parse_name(const char *name, size_t *stem, uint64_t *number)
{
    enum { DIGITS_MIN = 4, DIGITS_MAX = 18 };
    size_t n = strlen(name), digits = 0;
    while (digits < n && isdigit((unsigned char)name[n - digits - 1]))
        digits++;
    size_t before = n - digits;
    if (digits < DIGITS_MIN || digits > DIGITS_MAX || before < 3 ||
        memcmp(name + before - 3, "vol", 3) != 0)
        return false;
    *stem = before - 3;
    if (*stem == 1 || (*stem && name[*stem - 1] != '.'))
        return false;
    *stem -= *stem > 0;
    *number = strtoull(name + before, NULL, 10);
    return true;
}
