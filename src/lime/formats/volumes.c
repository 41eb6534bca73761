/* volumes.c - a set of volumes: what each has, and whether they fit together */
#include "volumeset.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- metadata ---- */

bool volumes_is_data(const struct limefile_record *r)
{
    return strcmp(r->type, "scidac-binary-data") == 0 ||
           strcmp(r->type, "ildg-binary-data") == 0;
}

/* The record as text, with a NUL; to be freed. */
static int read_text(const struct volume *v, const struct limefile_record *r, char **out)
{
    if (r->bytes > LIMEFILE_XML_BYTES_MAX)
        return LIMEFILE_E_XML;
    char *text = malloc((size_t)r->bytes + 1);
    if (!text)
        return -ENOMEM;
    ssize_t came = limefile_read_full(v->source, text, (size_t)r->bytes, r->data_offset);
    if (came < 0 || (uint64_t)came < r->bytes) {
        free(text);
        return came < 0 ? (int)came : LIMEFILE_E_SHRUNK;
    }
    text[r->bytes] = '\0';
    *out = text;
    return 0;
}

/* "<volfmt> 2 </volfmt>" becomes "<volfmt> 0 </volfmt>". */
static bool make_single(char *text)
{
    char *at = strstr(text, "<volfmt>");
    at = at ? at + strlen("<volfmt>") : NULL;
    at = at ? at + strspn(at, " \t\r\n") : NULL;
    if (!at || !isdigit((unsigned char)at[0]) || isdigit((unsigned char)at[1]))
        return false;
    *at = '0';
    return true;
}

static int take_file(struct limefile_volumes *set, const struct limefile_record *r)
{
    int err = read_text(&set->volume[set->master], r, &set->text);
    set->text_bytes = (size_t)r->bytes;
    set->text_ordinal = (uint32_t)r->ordinal;
    if (!err)
        err = limefile_scidac_file_parse(set->text, set->text_bytes, &set->file);
    if (err)
        return err;
    set->sites = limefile_lattice_sites(&set->file.lattice);
    if (set->file.volfmt == 0)
        return LIMEFILE_E_VOLUME_NONE;
    return make_single(set->text) ? 0 : LIMEFILE_E_XML_VALUE;
}

/* ---- the master ---- */

/* The next data of the other volumes are of that field; 0: of a part. */
static int add_order(struct limefile_volumes *set, uint64_t field)
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
    int err = add_order(set, 0);
    void *parts = err ? NULL : reallocarray(set->part, set->parts + 1, sizeof *set->part);
    if (!parts)
        return -ENOMEM;
    set->part = parts;
    set->part[set->parts++] = (struct part){(uint32_t)data->ordinal, data->message, *stated};
    return 0;
}

static int add_field(struct limefile_volumes *set, const struct limefile_record *data,
                     const struct limefile_scidac_record *said)
{
    struct volume *master = &set->volume[set->master];
    int err = add_order(set, set->fields + 1);
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
    set->site_bytes[set->fields++] = said->typesize * said->datacount;
    return 0;
}

/* Data are described by the private record before them. */
static int take_data(struct limefile_volumes *set, const struct limefile_record *data,
                     const struct limefile_record *by)
{
    struct limefile_scidac_record said;
    char *text = NULL;
    if (!by->ordinal)
        return LIMEFILE_E_VOLUME_RECORDS;
    int err = read_text(&set->volume[set->master], by, &text);
    if (err)
        return err;
    err = limefile_scidac_record_parse(text, (size_t)by->bytes, &said);
    free(text);
    if (err)
        return err;
    if (said.recordtype == LIMEFILE_GLOBAL)
        return 0;
    return said.recordtype == LIMEFILE_FIELD ? add_field(set, data, &said)
                                             : add_part(set, data, &said);
}

static int take_master(struct limefile_volumes *set)
{
    const struct limefile_index *index = set->volume[set->master].index;
    struct limefile_record r, by = {0};
    int err = 0;
    for (uint64_t i = 1; !err && limefile_index_get(index, i, &r) == 0; i++) {
        if (strcmp(r.type, "scidac-private-file-xml") == 0)
            err = set->text ? LIMEFILE_E_VOLUME_MASTER : take_file(set, &r);
        else if (strcmp(r.type, "scidac-private-record-xml") == 0)
            by = r;
        else if (volumes_is_data(&r)) {
            err = take_data(set, &r, &by);
            by.ordinal = 0;
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

static int take_field_data(struct limefile_volumes *set, struct volume *v, uint64_t field,
                           const struct limefile_record *r)
{
    uint64_t n = r->bytes / set->site_bytes[field];
    if (r->bytes % set->site_bytes[field] || (field && n != v->sites) || n > set->sites)
        return LIMEFILE_E_VOLUME_RECORDS;
    v->sites = n;
    v->data[field] = r->data_offset;
    return 0;
}

/* The master's data are known by their descriptions. */
static int find_master_data(struct limefile_volumes *set, struct volume *v)
{
    struct limefile_record r;
    uint64_t at = 0;
    int err = 0;
    for (uint64_t i = 1; !err && limefile_index_get(v->index, i, &r) == 0; i++)
        if (at < set->fields && v->data[at] == r.data_offset && volumes_is_data(&r))
            err = take_field_data(set, v, at++, &r);
    return err;
}

static uint64_t count_data(const struct volume *v)
{
    struct limefile_record r;
    uint64_t count = 0;
    for (uint64_t i = 1; limefile_index_get(v->index, i, &r) == 0; i++)
        count += volumes_is_data(&r);
    return count;
}

/* The others have as many data as the master has fields and parts, in the same order; or no
 * parts, where they have no site of these. Global data are in the master alone. */
static int find_data(struct limefile_volumes *set, struct volume *v)
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
        if (!volumes_is_data(&r))
            continue;
        uint64_t field = has_parts ? set->order[at] : at + 1;
        at++;
        if (field)
            err = take_field_data(set, v, field - 1, &r);
    }
    return err;
}

static int take_volume(struct limefile_volumes *set, size_t number)
{
    struct volume *v = &set->volume[number];
    int err = number == set->master ? find_master_data(set, v) : find_data(set, v);
    if (err)
        return err;
    if (v->sites > UINT64_MAX / 8 ||
        (v->list.bytes != 4 * v->sites && v->list.bytes / 8 != v->sites))
        return LIMEFILE_E_VOLUME_LIST;
    return v->list.bytes != 4 * v->sites && v->list.bytes % 8 ? LIMEFILE_E_VOLUME_LIST : 0;
}

/* ---- the set ---- */

/* As many as the lattice has, whichever they are. */
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

/* All but the lists of sites. */
static int take_all(struct limefile_volumes *set, struct limefile_source *const *volumes,
                    size_t *bad)
{
    int err = 0;
    for (size_t i = 0; i < set->count; i++) {
        set->volume[i].source = volumes[i];
        err = open_volume(&set->volume[i]);
        if (err) {
            *bad = i;
            return err;
        }
    }
    err = find_master(set);
    if (err)
        return err;
    *bad = set->master;
    err = take_master(set);
    for (size_t i = 0; !err && i < set->count; i++) {
        *bad = i;
        err = take_volume(set, i);
    }
    if (err)
        return err;
    *bad = set->count;
    return count_sites(set);
}

static int take_lists(struct limefile_volumes *set, size_t *bad)
{
    int err = 0;
    for (size_t i = 0; !err && i < set->count; i++) {
        *bad = i;
        err = volumes_take_list(set, i);
    }
    if (err)
        return err;
    *bad = set->count;
    err = volumes_sort(set);
    return err ? err : volumes_join(set);
}

static int begin(struct limefile_source *const *volumes, size_t count,
                 const struct limefile_volumes_options *options, struct limefile_volumes **out,
                 size_t *bad)
{
    struct limefile_volumes *set = calloc(1, sizeof *set);
    *bad = count;
    if (!set)
        return -ENOMEM;
    set->source.ops = &volumes_ops;
    set->options = *options;
    set->volume = calloc(count ? count : 1, sizeof *set->volume);
    set->count = set->volume ? count : 0;
    *out = set;
    return !set->volume                        ? -ENOMEM
           : count == 0 || count >= UINT32_MAX ? LIMEFILE_E_VOLUME_MASTER
                                               : take_all(set, volumes, bad);
}

int limefile_volumes_open(struct limefile_source *const *volumes, size_t count,
                          const struct limefile_volumes_options *options,
                          struct limefile_volumes **out, size_t *bad)
{
    struct limefile_volumes *set = NULL;
    int err = begin(volumes, count, options, &set, bad);
    if (!err)
        err = take_lists(set, bad);
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

void limefile_volumes_facts(const struct limefile_volumes *set,
                            struct limefile_volumes_facts *out)
{
    *out = (struct limefile_volumes_facts){
        .volfmt = set->file.volfmt,
        .lattice = set->file.lattice,
        .volumes = set->count,
        .master = set->master,
        .fields = set->fields,
        .parts = set->parts,
    };
}

uint64_t limefile_volumes_part(const struct limefile_volumes *set, size_t i,
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

bool limefile_volumes_name(const char *name, size_t *stem, uint64_t *number)
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
