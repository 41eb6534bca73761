/* exports.c - looks up exports, keeps those that the kernel knows, and opens their files */
#include "exports.h"
#include "limesites.h"
#include "verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a container's metadata state about its fields. The snapshot holds one reference. */
struct limefs_fields {
    atomic_uint references;
    struct limefile_index *index; /* `fields` points into it */
    struct limefile_fields fields;
};

struct limefs_export {
    uint32_t slot;
    uint64_t id;                  /* never used twice */
    struct limefs_snapshot *snap; /* the export holds one lookup of it */
    uint64_t ordinal, generation; /* of the record */
    uint64_t digest;              /* of the record's description: hash_field() */
    struct limefile_export_spec spec;
    atomic_bool is_ready; /* its files can be read */

    /* Guarded by fs->lock. */
    bool is_current; /* it is in its bucket: the record has not changed */
    struct limefs_export *next;
    uint64_t lookups; /* by the kernel, of the export and all files in it together */
    unsigned user_count;
    struct limefile_export *files; /* NULL: closed until the next use */
};

/* ---- what the metadata contain ---- */

void limefs_fields_release(struct limefs_fields *fields)
{
    if (!fields || atomic_fetch_sub(&fields->references, 1) > 1)
        return;
    limefile_fields_release(&fields->fields);
    limefile_index_free(fields->index);
    free(fields);
}

/* Called with fs->lock held: the metadata have changed, or the snapshot is evicted or freed. */
static void drop_fields(struct limefs_snapshot *snap)
{
    struct limefs_fields *fields = snap->fields;
    snap->fields = NULL;
    limefs_fields_release(fields);
}

/* Returns a reference to the cached fields, or NULL. Sets *changes for cache_fields(). */
static struct limefs_fields *get_fields(struct limefs *fs, struct limefs_snapshot *snap,
                                        uint64_t *changes)
{
    limefs_lock(&fs->lock);
    struct limefs_fields *fields = snap->fields;
    if (fields)
        atomic_fetch_add(&fields->references, 1);
    *changes = snap->change_count;
    limefs_unlock(&fs->lock);
    return fields;
}

static int build_fields(struct limefs *fs, struct limefs_snapshot *snap,
                        struct limefs_fields **out)
{
    struct limefile_fd file;
    struct limefs_fields *fields = calloc(1, sizeof *fields);
    if (!fields)
        return -ENOMEM;
    fields->index = limefs_snapshot_index(fs, snap);
    int err = limefile_fields_build(limefs_snapshot_source(snap, &file), fields->index,
                                    &fields->fields);
    if (err) {
        limefile_index_free(fields->index);
        free(fields);
        return err;
    }
    atomic_init(&fields->references, 1);
    *out = fields;
    return 0;
}

/* Stores the fields in the snapshot, unless the container has changed since get_fields(). */
static void cache_fields(struct limefs *fs, struct limefs_snapshot *snap,
                         struct limefs_fields *fields, uint64_t changes)
{
    limefs_lock(&fs->lock);
    if (!snap->fields && snap->change_count == changes) {
        atomic_fetch_add(&fields->references, 1);
        snap->fields = fields;
    }
    limefs_unlock(&fs->lock);
}

int limefs_fields_get(struct limefs *fs, struct limefs_snapshot *snap,
                      struct limefs_fields **out)
{
    uint64_t changes;
    *out = get_fields(fs, snap, &changes);
    if (*out)
        return 0;
    limefs_lock(&snap->metadata_lock);
    *out = get_fields(fs, snap, &changes);
    int err = *out ? 0 : build_fields(fs, snap, out);
    if (!err)
        cache_fields(fs, snap, *out, changes);
    limefs_unlock(&snap->metadata_lock);
    return err;
}

struct limefs_exports {
    struct limefs_export **buckets; /* by (snapshot, record): exports of a record share one */
    size_t bucket_count, count;
    struct limefs_export_change *changes; /* in progress */
};

int limefs_exports_init(struct limefs *fs)
{
    static const struct limefs_snapshot_watch watch = {
        .changed = drop_fields,
        .evicted = drop_fields,
        .freed = drop_fields,
    };
    struct limefs_exports *exports = calloc(1, sizeof *exports);
    if (!exports)
        return -ENOMEM;
    exports->bucket_count = 64;
    exports->buckets = calloc(exports->bucket_count, sizeof(struct limefs_export *));
    if (!exports->buckets) {
        free(exports);
        return -ENOMEM;
    }
    fs->exports = exports;
    limefs_snapshot_add_watch(fs, &watch);
    return 0;
}

void limefs_exports_release(struct limefs *fs)
{
    if (!fs->exports)
        return;
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++)
        if (fs->inodes.slots[i].use == LIMEFS_SLOT_EXPORT) {
            struct limefs_export *export = fs->inodes.slots[i].object;
            limefile_export_close(export->files);
            free(export);
        }
    free(fs->exports->buckets);
    free(fs->exports);
    fs->exports = NULL;
}

/* Returns a different number, below 256, for each name that an export can have. */
static unsigned name_code(const struct limefile_export_spec *spec)
{
    unsigned precision = spec->precision == 32 ? 1 : spec->precision == 64 ? 2 : 0;
    return (unsigned)spec->kind | (spec->even_odd ? 1u : 0) << 4 | precision << 5 |
           (spec->little ? 1u : 0) << 7;
}

/* ---- the hash table: all with fs->lock held ---- */

static struct limefs_export **find_bucket(const struct limefs_exports *exports, uint32_t slot,
                                          uint64_t ordinal)
{
    uint64_t hash = ((uint64_t)slot << 32 ^ ordinal) * UINT64_C(0x9e3779b97f4a7c15);
    return &exports->buckets[(hash ^ hash >> 32) & (exports->bucket_count - 1)];
}

static struct limefs_export *find_export(struct limefs *fs, const struct limefs_snapshot *snap,
                                         uint64_t ordinal,
                                         const struct limefile_export_spec *spec)
{
    struct limefs_export *export = *find_bucket(fs->exports, snap->slot, ordinal);
    while (export && (export->snap != snap || export->ordinal != ordinal ||
                      name_code(&export->spec) != name_code(spec)))
        export = export->next;
    return export;
}

/* Doubles the number of buckets. If memory is short, keeps them: look-ups are only slower. */
static void grow_buckets(struct limefs_exports *exports)
{
    struct limefs_export **old = exports->buckets;
    size_t count = exports->bucket_count;
    struct limefs_export **buckets = calloc(count * 2, sizeof(struct limefs_export *));
    if (!buckets)
        return;
    exports->buckets = buckets;
    exports->bucket_count = count * 2;
    for (size_t i = 0; i < count; i++)
        for (struct limefs_export *export = old[i], *next; export; export = next) {
            struct limefs_export **at =
                find_bucket(exports, export->snap->slot, export->ordinal);
            next = export->next;
            export->next = *at;
            *at = export;
        }
    free(old);
}

static int insert_export(struct limefs *fs, struct limefs_export *export)
{
    struct limefs_exports *exports = fs->exports;
    int err = limefs_slot_allocate(fs, LIMEFS_SLOT_EXPORT, export, &export->slot);
    if (err)
        return err;
    if (exports->count >= exports->bucket_count)
        grow_buckets(exports);
    struct limefs_export **at = find_bucket(exports, export->snap->slot, export->ordinal);
    export->next = *at;
    *at = export;
    export->is_current = true;
    export->id = ++fs->inodes.ids;
    exports->count++;
    return 0;
}

static void remove_export(struct limefs *fs, struct limefs_export *export)
{
    struct limefs_export **at = find_bucket(fs->exports, export->snap->slot, export->ordinal);
    if (!export->is_current)
        return;
    while (*at != export)
        at = &(*at)->next;
    *at = export->next;
    export->is_current = false;
    fs->exports->count--;
}

static void remove_exports(struct limefs *fs, const struct limefs_snapshot *snap,
                           uint64_t ordinal)
{
    struct limefs_export *export = *find_bucket(fs->exports, snap->slot, ordinal);
    while (export) {
        struct limefs_export *next = export->next;
        if (export->snap == snap && export->ordinal == ordinal)
            remove_export(fs, export);
        export = next;
    }
}

/* ---- changes of a record ---- */

static bool is_changing(struct limefs *fs, const struct limefs_snapshot *snap, uint64_t ordinal)
{
    const struct limefs_export_change *change = fs->exports->changes;
    while (change && (change->snap != snap || change->ordinal != ordinal))
        change = change->next;
    return change != NULL;
}

void limefs_export_change_begin(struct limefs *fs, struct limefs_snapshot *snap,
                                uint64_t ordinal, struct limefs_export_change *change)
{
    limefs_lock(&fs->lock);
    *change = (struct limefs_export_change){.next = fs->exports->changes,
                                            .link = &fs->exports->changes,
                                            .snap = snap,
                                            .ordinal = ordinal};
    if (change->next)
        change->next->link = &change->next;
    fs->exports->changes = change;
    remove_exports(fs, snap, ordinal);
    limefs_unlock(&fs->lock);
}

/* limefs_snapshot_note_change() drops the fields, as the record may describe other records. */
void limefs_export_change_end(struct limefs *fs, struct limefs_snapshot *snap,
                              struct limefs_export_change *change)
{
    limefs_lock(&fs->lock);
    *change->link = change->next;
    if (change->next)
        change->next->link = change->link;
    remove_exports(fs, snap, change->ordinal);
    limefs_unlock(&fs->lock);
    limefs_snapshot_note_change(fs, snap);
}

/* ---- the description of a record ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (const unsigned char *c = bytes; n > 0; n--, c++)
        hash = (hash ^ *c) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t hash_value(uint64_t hash, uint64_t value)
{
    return hash_bytes(hash, &value, sizeof value);
}

/* Hashes everything in a description that an export may depend on. */
static uint64_t hash_field(const struct limefile_field *field)
{
    uint64_t hash = hash_bytes(UINT64_C(1469598103934665603), field->name,
                               strnlen(field->name, sizeof field->name) + 1);
    hash = hash_bytes(hash, field->record.type, field->record.type_len);
    const uint64_t values[] = {field->record.bytes,
                               (uint64_t)field->kind,
                               field->precision,
                               field->lattice.dims,
                               field->is_checkerboard,
                               field->is_box,
                               field->sites,
                               field->site_bytes,
                               field->expected,
                               field->has_checksum,
                               field->checksum.suma,
                               field->checksum.sumb,
                               field->record.ordinal,
                               field->descriptions_differ,
                               field->format_ordinal != 0,
                               field->datacount,
                               field->colors,
                               field->spins};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        hash = hash_value(hash, values[i]);
    for (unsigned i = 0; i < field->lattice.dims && i < LIMEFILE_DIMS_MAX; i++) {
        hash = hash_value(hash, field->lattice.extent[i]);
        if (field->is_box)
            hash = hash_value(hash_value(hash, field->lower[i]), field->upper[i]);
    }
    return hash;
}

/* Gets the description of a record of a pinned snapshot. `field` points into `fields`, which
 * the caller releases, also after an error. LIMEFILE_E_NO_RECORD: the record is not a field. */
static int find_field(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                      struct limefs_fields **fields, struct limefile_field *field)
{
    *fields = NULL;
    int err = limefs_fields_get(fs, snap, fields);
    if (err)
        return err;
    return limefile_fields_find(&(*fields)->fields, ordinal, field) ? 0 : LIMEFILE_E_NO_RECORD;
}

/* Calls find_field() for an export's record. -ESTALE: the field has changed since look-up. */
static int find_same_field(struct limefs *fs, const struct limefs_export *export,
                           struct limefs_fields **fields, struct limefile_field *field)
{
    int err = find_field(fs, export->snap, export->ordinal, fields, field);
    return !err && hash_field(field) != export->digest ? -ESTALE : err;
}

/* Returns LIMEFILE_E_NO_RECORD if the field has no such export, or if the export has too many
 * files for 32-bit ordinals. */
static int open_export_files(const struct limefile_field *field,
                             const struct limefile_export_spec *spec,
                             struct limefile_export **files)
{
    int err = limefile_export_open(field, spec, files);
    if (!err && limefile_export_entry_count(*files) >= UINT32_MAX) {
        limefile_export_close(*files);
        err = LIMEFILE_E_STATE;
    }
    return err == LIMEFILE_E_STATE ? LIMEFILE_E_NO_RECORD : err;
}

/* ---- use ---- */

/* Called without fs->lock, for an export that is not in the table. */
static void free_export(struct limefs *fs, struct limefs_export *export)
{
    limefile_export_close(export->files);
    limefs_snapshot_forget(fs, export->snap, 1);
    free(export);
}

/* Removes the export if it has neither lookups nor users. Called with fs->lock held. True: it
 * was removed, and the caller must call free_export() after unlocking. */
static bool remove_if_unused(struct limefs *fs, struct limefs_export *export)
{
    if (export->lookups || export->user_count)
        return false;
    remove_export(fs, export);
    limefs_slot_free(fs, export->slot);
    return true;
}

/* Drops a user. Without users, closes the files (not those of whole-file exports, which take
 * long to prepare) and, if the kernel has no lookup of it either, frees the export. */
static void drop_user(struct limefs *fs, struct limefs_export *export)
{
    struct limefile_export *files = NULL;
    limefs_lock(&fs->lock);
    if (--export->user_count == 0 && !limefile_export_is_whole_file(&export->spec)) {
        files = export->files;
        export->files = NULL;
    }
    bool is_unused = remove_if_unused(fs, export);
    limefs_unlock(&fs->lock);
    limefile_export_close(files);
    if (is_unused)
        free_export(fs, export);
}

/* Reopens the files of an export whose snapshot is pinned. -ESTALE: the record has changed. */
static int reopen_files(struct limefs *fs, struct limefs_export *export)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    struct limefile_export *files = NULL;
    int err = find_same_field(fs, export, &fields, &field);
    if (!err)
        err = open_export_files(&field, &export->spec, &files);
    limefs_fields_release(fields);
    if (err)
        return err == LIMEFILE_E_NO_RECORD ? -ESTALE : err;
    limefs_lock(&fs->lock);
    if (!export->files) {
        export->files = files;
        files = NULL;
    }
    limefs_unlock(&fs->lock);
    limefile_export_close(files);
    return 0;
}

int limefs_export_acquire(struct limefs *fs, struct limefs_export *export)
{
    limefs_lock(&fs->lock);
    export->user_count++;
    bool open = export->files != NULL;
    limefs_unlock(&fs->lock);
    int err = limefs_snapshot_pin(fs, export->snap);
    if (err) {
        drop_user(fs, export);
        return err;
    }
    err = open ? 0 : reopen_files(fs, export);
    if (err)
        limefs_export_release(fs, export);
    return err;
}

void limefs_export_release(struct limefs *fs, struct limefs_export *export)
{
    limefs_snapshot_unpin(fs, export->snap);
    drop_user(fs, export);
}

int limefs_export_acquire_entry(struct limefs *fs, struct limefs_export *export,
                                uint64_t ordinal, struct limefile_export_entry *entry)
{
    struct limefs_snapshot *current;
    int err = limefs_snapshot_get_current(fs, export->snap->node, &current);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    err = current == export->snap ? limefs_export_validate(fs, export) : -ESTALE;
    if (!err)
        err = limefs_export_acquire(fs, export);
    limefs_snapshot_unpin(fs, current);
    if (err || limefs_export_get_entry(export, ordinal, entry))
        return err;
    limefs_export_release(fs, export);
    return -ESTALE;
}

int limefs_export_validate(struct limefs *fs, const struct limefs_export *export)
{
    if (!fs->options.rw)
        return 0; /* a change by another program causes a new snapshot */
    limefs_lock(&fs->lock);
    bool is_valid = export->is_current && !is_changing(fs, export->snap, export->ordinal);
    limefs_unlock(&fs->lock);
    uint64_t generation = limefs_snapshot_generation(fs, export->snap, export->ordinal);
    return is_valid && generation == export->generation ? 0 : -ESTALE;
}

const struct limefile_export *limefs_export_files(const struct limefs_export *export)
{
    return export->files;
}

struct limefs_snapshot *limefs_export_snapshot(const struct limefs_export *export)
{
    return export->snap;
}

uint64_t limefs_export_record(const struct limefs_export *export)
{
    return export->ordinal;
}

/* ---- entries and attributes ---- */

bool limefs_export_get_entry(const struct limefs_export *export, uint64_t ordinal,
                             struct limefile_export_entry *entry)
{
    bool directory = limefile_export_is_directory(&export->spec);
    if (ordinal == 0 && directory) {
        *entry = (struct limefile_export_entry){.is_dir = true};
        return true;
    }
    if (ordinal == 0 || ordinal > limefile_export_entry_count(export->files))
        return false;
    limefile_export_entry(export->files, ordinal - 1, entry);
    return true;
}

ino_t limefs_export_visible_ino(struct limefs *fs, const struct limefs_export *export,
                                uint64_t ordinal)
{
    struct stat st = limefs_snapshot_stat(fs, export->snap);
    return limefs_visible_export_ino(fs, &st, export->ordinal, name_code(&export->spec),
                                     ordinal);
}

/* Changes the attributes *st of the container to those of an entry: the entry has the
 * container's read permissions, no write permission. */
static void fill_attributes(struct limefs *fs, const struct limefs_export *export,
                            uint64_t ordinal, const struct limefile_export_entry *entry,
                            struct stat *st)
{
    st->st_ino =
        limefs_visible_export_ino(fs, st, export->ordinal, name_code(&export->spec), ordinal);
    st->st_mode = entry->is_dir ? S_IFDIR | (st->st_mode & 0444) | (st->st_mode & 0444) >> 2
                                : S_IFREG | (st->st_mode & 0444);
    st->st_nlink = entry->is_dir ? 2 : 1;
    st->st_rdev = 0;
    st->st_size = entry->is_dir ? 0 : (off_t)entry->bytes;
    st->st_blocks = st->st_size / 512 + (st->st_size % 512 != 0);
    st->st_blksize = 128 * 1024;
}

void limefs_export_add_lookup(struct limefs *fs, struct limefs_export *export, uint64_t ordinal,
                              const struct limefile_export_entry *entry,
                              struct limefs_export_entry *out)
{
    limefs_lock(&fs->lock);
    export->lookups++;
    limefs_unlock(&fs->lock);
    out->id = limefs_inode_export_id(export->slot, ordinal);
    out->generation = export->id;
    out->st = limefs_snapshot_stat(fs, export->snap);
    fill_attributes(fs, export, ordinal, entry, &out->st);
}

int limefs_export_getattr(struct limefs *fs, struct limefs_export *export, uint64_t ordinal,
                          struct stat *out)
{
    struct limefile_export_entry entry;
    struct limefile_record record;
    int err = limefs_export_acquire(fs, export);
    if (err)
        return err;
    struct limefile_index *index = limefs_snapshot_index(fs, export->snap);
    err = limefile_index_get(index, export->ordinal, &record);
    if (!err)
        err = limefs_snapshot_check_record(fs, export->snap, &record, NULL);
    if (!err && !limefs_export_get_entry(export, ordinal, &entry))
        err = -ESTALE;
    if (!err)
        err = limefs_export_validate(fs, export);
    if (!err) {
        *out = limefs_snapshot_stat_now(fs, export->snap);
        fill_attributes(fs, export, ordinal, &entry, out);
    }
    limefile_index_free(index);
    limefs_export_release(fs, export);
    return err;
}

void limefs_export_forget(struct limefs *fs, struct limefs_export *export, uint64_t n)
{
    limefs_lock(&fs->lock);
    export->lookups -= n < export->lookups ? n : export->lookups;
    bool is_unused = remove_if_unused(fs, export);
    limefs_unlock(&fs->lock);
    if (is_unused)
        free_export(fs, export);
}

/* ---- look-ups ---- */

/* True if the field can be exported as a whole file: it is SU(3) in four dimensions. */
static bool is_configuration(const struct limefile_field *field)
{
    return limefile_field_configuration(field, NULL) == LIMEFILE_CONFIGURATION;
}

/* The name, without suffix, of the whole-file exports of a container's only configuration. */
#define CONFIGURATION_STEM "conf"

/* Gets the export from the table if it has the same description and generation, otherwise makes
 * a new one. Adds a user. Takes ownership of the files, also on error. */
static int find_or_create(struct limefs *fs, struct limefs_snapshot *snap,
                          const struct limefile_field *field,
                          const struct limefile_export_spec *spec,
                          struct limefile_export *files, struct limefs_export **out)
{
    struct limefs_export *export = calloc(1, sizeof *export), *other;
    if (!export) {
        limefile_export_close(files);
        return -ENOMEM;
    }
    *export = (struct limefs_export){
        .snap = snap,
        .ordinal = field->record.ordinal,
        .generation = limefs_snapshot_generation(fs, snap, field->record.ordinal),
        .digest = hash_field(field),
        .spec = *spec,
        .user_count = 1,
        .files = files};
    atomic_init(&export->is_ready, limefile_export_is_ready(files));
    limefs_snapshot_add_lookups(fs, snap, 1);
    limefs_lock(&fs->lock);
    other = find_export(fs, snap, export->ordinal, spec);
    bool known =
        other && other->digest == export->digest && other->generation == export->generation;
    if (known && !other->files) {
        other->files = files;
        export->files = NULL;
    }
    if (known)
        other->user_count++;
    else if (other)
        remove_export(fs, other);
    int err = known ? 0 : insert_export(fs, export);
    limefs_unlock(&fs->lock);
    *out = known ? other : export;
    if (err || known)
        free_export(fs, export);
    return err;
}

/* Gets the export of a record of a pinned snapshot, and adds a user. */
static int get_export(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                      const struct limefile_export_spec *spec, struct limefs_export **export)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    struct limefile_export *files;
    int err = find_field(fs, snap, ordinal, &fields, &field);
    if (!err)
        err = open_export_files(&field, spec, &files);
    if (!err)
        err = find_or_create(fs, snap, &field, spec, files, export);
    limefs_fields_release(fields);
    return err;
}

/* Finds the only configuration. LIMEFILE_E_NO_RECORD: the container has not exactly one. */
static int find_only_configuration(const struct limefile_fields *fields,
                                   struct limefile_record *record)
{
    struct limefile_field field;
    unsigned found = 0;
    for (size_t i = 0; i < fields->count && found < 2; i++) {
        limefile_fields_get(fields, i, &field);
        if (!is_configuration(&field))
            continue;
        *record = field.record;
        found++;
    }
    return found == 1 ? 0 : LIMEFILE_E_NO_RECORD;
}

static int pin_configuration(struct limefs *fs, struct limefs_node *container,
                             struct limefs_snapshot **snap, struct limefile_record *record)
{
    struct limefs_fields *fields = NULL;
    int err = limefs_snapshot_get_current(fs, container, snap);
    if (err)
        return err;
    err = limefs_fields_get(fs, *snap, &fields);
    if (!err)
        err = find_only_configuration(&fields->fields, record);
    limefs_fields_release(fields);
    if (err)
        limefs_snapshot_unpin(fs, *snap);
    return err;
}

/* Finds the record for an export's name, and pins its snapshot. */
static int pin_export_record(struct limefs *fs, struct limefs_node *container, const char *name,
                             struct limefile_export_spec *spec, struct limefs_snapshot **snap,
                             struct limefile_record *record)
{
    char stem[LIMEFILE_NAME_MAX + 1];
    size_t len;
    if (!limefile_export_parse(name, spec, &len) || len == 0 || len >= sizeof stem)
        return LIMEFILE_E_NO_RECORD;
    memcpy(stem, name, len);
    stem[len] = '\0';
    int err = limefs_snapshot_find_record(fs, container, stem, snap, record);
    if (err == LIMEFILE_E_NO_RECORD && limefile_export_is_whole_file(spec) &&
        strcmp(stem, CONFIGURATION_STEM) == 0)
        err = pin_configuration(fs, container, snap, record);
    return err;
}

/* Gets the export of that name, adds a user, and pins its snapshot. */
static int pin_named_export(struct limefs *fs, struct limefs_node *container, const char *name,
                            struct limefs_snapshot **snap, struct limefs_export **export)
{
    struct limefile_export_spec spec;
    struct limefile_record record;
    int err = pin_export_record(fs, container, name, &spec, snap, &record);
    if (err)
        return err;
    err = get_export(fs, *snap, record.ordinal, &spec, export);
    if (err)
        limefs_snapshot_unpin(fs, *snap);
    return err;
}

int limefs_export_lookup(struct limefs *fs, struct limefs_node *container, const char *name,
                         struct limefs_export_entry *out)
{
    struct limefs_snapshot *snap;
    struct limefile_export_entry entry;
    struct limefs_export *export;
    int err = pin_named_export(fs, container, name, &snap, &export);
    if (err)
        return err;
    uint64_t ordinal = limefile_export_is_directory(&export->spec) ? 0 : 1;
    if (limefs_export_get_entry(export, ordinal, &entry))
        limefs_export_add_lookup(fs, export, ordinal, &entry, out);
    else
        err = -EIO;
    drop_user(fs, export);
    limefs_snapshot_unpin(fs, snap);
    return err;
}

bool limefs_export_exists(struct limefs *fs, struct limefs_node *container, const char *name)
{
    struct limefs_snapshot *snap;
    struct limefile_record record;
    struct limefs_export *export;
    if (limefs_snapshot_find_record(fs, container, name, &snap, &record) == 0) {
        limefs_snapshot_unpin(fs, snap);
        return false; /* a record of that name has precedence */
    }
    if (pin_named_export(fs, container, name, &snap, &export) != 0)
        return false;
    drop_user(fs, export);
    limefs_snapshot_unpin(fs, snap);
    return true;
}

int limefs_export_lookup_child(struct limefs *fs, struct limefs_export *export, uint64_t parent,
                               const char *name, struct limefs_export_entry *out)
{
    uint64_t number;
    struct limefile_export_entry entry;
    int err = limefs_export_acquire_entry(fs, export, parent, &entry);
    if (err)
        return err;
    if (!entry.is_dir)
        err = -ENOTDIR;
    else if (!limefile_export_find(export->files, parent, name, &number) ||
             !limefs_export_get_entry(export, number + 1, &entry))
        err = -ENOENT;
    else
        limefs_export_add_lookup(fs, export, number + 1, &entry, out);
    limefs_export_release(fs, export);
    return err;
}

/* ---- whole files, whose headers contain sums of all data ---- */

enum {
    PREPARE_MEMORY = 64 << 20, /* bytes that limefile_export_prepare() may use */
};

struct site_reader {
    struct limefile_source *source;
    uint64_t data_offset;
    size_t site_bytes;
    atomic_bool *stop;
};

static int read_record_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct site_reader *reader = context;
    size_t n = (size_t)count * reader->site_bytes;
    return limefile_read_exact(reader->source, out, n,
                               reader->data_offset + first * reader->site_bytes);
}

/* Progress callback: returns false, which ends the pass over the sites, after a request to
 * stop. Any thread may call it. */
static bool is_not_stopped(void *context, uint64_t sites_more)
{
    const struct site_reader *reader = context;
    (void)sites_more;
    return !atomic_load(reader->stop);
}

static int prepare_files(struct limefs *fs, struct limefs_export *export,
                         const struct limefile_field *field, atomic_bool *stop)
{
    struct limefile_fd fd;
    struct site_reader reader = {.source = limefs_snapshot_source(export->snap, &fd),
                                 .data_offset = field->record.data_offset,
                                 .site_bytes = (size_t)field->site_bytes,
                                 .stop = stop};
    int err = limefs_verify_flush(fs, export->snap, &field->record);
    if (!err)
        err = limefile_export_prepare(export->files, PREPARE_MEMORY, read_record_sites,
                                      is_not_stopped, &reader);
    if (!err) /* the container must be unchanged */
        err = limefs_snapshot_check_record(fs, export->snap, &field->record, NULL);
    return err ? err : limefs_export_validate(fs, export);
}

bool limefs_export_is_ready(const struct limefs_export *export)
{
    return atomic_load(&export->is_ready);
}

bool limefs_export_is_reordered(const struct limefs_export *export)
{
    return export->spec.kind == LIMEFILE_EXPORT_OPENQCD;
}

int limefs_export_prepare(struct limefs *fs, struct limefs_export *export, atomic_bool *stop)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    if (limefs_export_is_ready(export))
        return 0;
    int err = find_same_field(fs, export, &fields, &field);
    if (!err)
        err = prepare_files(fs, export, &field, stop);
    limefs_fields_release(fields);
    if (!err)
        atomic_store(&export->is_ready, true);
    return err;
}

/* ---- the names of all exports, for listings ---- */

/* Returns false if the name is longer than LIMEFILE_NAME_MAX. */
static bool format_export_name(const struct limefile_record *record,
                               const struct limefile_export_spec *export,
                               char name[LIMEFILE_NAME_MAX + 1])
{
    char suffix[LIMEFILE_EXPORT_SUFFIX_MAX];
    size_t len = limefile_name_format(record, name);
    limefile_export_suffix(export, suffix);
    if (len + strlen(suffix) > LIMEFILE_NAME_MAX)
        return false;
    strcpy(name + len, suffix);
    return true;
}

enum { FIELD_EXPORTS_MAX = 64 }; /* place in a listing: field's index * this + export's index */

/* Gets the i-th export that listings show for a field. False: there are fewer. */
static bool get_listed_export(const struct limefile_field *field, uint64_t i,
                              struct limefile_export_spec *export)
{
    struct limefile_array array;
    return i < FIELD_EXPORTS_MAX && limefile_array_from_field(field, &array) == 0 &&
           limefile_export_get_listed(&array, (unsigned)i, export) &&
           (!limefile_export_is_whole_file(export) || is_configuration(field));
}

bool limefs_export_next_name(struct limefs *fs, struct limefs_snapshot *snap,
                             const struct limefs_fields *fields, uint64_t *i,
                             char name[LIMEFILE_NAME_MAX + 1], struct stat *st)
{
    struct limefile_field field;
    struct limefile_export_spec export;
    while (*i / FIELD_EXPORTS_MAX < fields->fields.count) {
        limefile_fields_get(&fields->fields, (size_t)(*i / FIELD_EXPORTS_MAX), &field);
        if (!get_listed_export(&field, *i % FIELD_EXPORTS_MAX, &export)) {
            *i += FIELD_EXPORTS_MAX - *i % FIELD_EXPORTS_MAX;
            continue;
        }
        ++*i;
        if (!format_export_name(&field.record, &export, name))
            continue;
        bool directory = limefile_export_is_directory(&export);
        struct stat container = limefs_snapshot_stat(fs, snap);
        memset(st, 0, sizeof *st);
        st->st_ino = limefs_visible_export_ino(fs, &container, field.record.ordinal,
                                               name_code(&export), directory ? 0 : 1);
        st->st_mode = directory ? S_IFDIR : S_IFREG;
        return true;
    }
    return false;
}
