/* faces.c - looks up exports, keeps those that the kernel knows, and opens their files */
#include "faces.h"
#include "limesites.h"
#include "verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a container's metadata contain about its records; kept while the container is open. */
struct limefs_fields {
    atomic_uint holders;          /* references */
    struct limefile_index *index; /* `fields` points into it */
    struct limefile_fields fields;
};

struct limefs_face {
    uint32_t slot;
    uint64_t id;                  /* never used twice */
    struct limefs_view *view;     /* kept by a lookup that this holds */
    uint64_t ordinal, generation; /* of the record */
    uint64_t digest;              /* of the record's description */
    struct limefile_facename name;
    atomic_bool ready; /* its files can be read */

    /* Guarded by fs->lock. */
    bool found; /* it is in its bucket: the record has not changed */
    struct limefs_face *next;
    uint64_t lookups; /* the kernel's, of all its files together */
    unsigned users;
    struct limefile_face *files; /* NULL: closed, until it is used again */
};

/* ---- what the metadata contain ---- */

void limefs_fields_release(struct limefs_fields *fields)
{
    if (!fields || atomic_fetch_sub(&fields->holders, 1) > 1)
        return;
    limefile_fields_release(&fields->fields);
    limefile_index_free(fields->index);
    free(fields);
}

/* Called with fs->lock held, when the metadata change or the container is evicted. */
static void forget_fields(struct limefs_view *view)
{
    struct limefs_fields *fields = view->fields;
    view->fields = NULL;
    limefs_fields_release(fields);
}

static struct limefs_fields *hold_fields(struct limefs *fs, struct limefs_view *view,
                                         uint64_t *changes)
{
    limefs_lock(&fs->lock);
    struct limefs_fields *fields = view->fields;
    if (fields)
        atomic_fetch_add(&fields->holders, 1);
    *changes = view->changes;
    limefs_unlock(&fs->lock);
    return fields;
}

static int build_fields(struct limefs *fs, struct limefs_view *view, struct limefs_fields **out)
{
    struct limefile_fd file;
    struct limefs_fields *fields = calloc(1, sizeof *fields);
    if (!fields)
        return -ENOMEM;
    fields->index = limefs_view_index(fs, view);
    int err =
        limefile_fields_build(limefs_view_source(view, &file), fields->index, &fields->fields);
    if (err) {
        limefile_index_free(fields->index);
        free(fields);
        return err;
    }
    atomic_init(&fields->holders, 1);
    *out = fields;
    return 0;
}

/* Stores the fields in the view for later callers, unless the container has changed since. */
static void keep_fields(struct limefs *fs, struct limefs_view *view,
                        struct limefs_fields *fields, uint64_t changes)
{
    limefs_lock(&fs->lock);
    if (!view->fields && view->changes == changes) {
        atomic_fetch_add(&fields->holders, 1);
        view->fields = fields;
    }
    limefs_unlock(&fs->lock);
}

int limefs_fields_of(struct limefs *fs, struct limefs_view *view, struct limefs_fields **out)
{
    uint64_t changes;
    *out = hold_fields(fs, view, &changes);
    if (*out)
        return 0;
    limefs_lock(&view->describing);
    *out = hold_fields(fs, view, &changes);
    int err = *out ? 0 : build_fields(fs, view, out);
    if (!err)
        keep_fields(fs, view, *out, changes);
    limefs_unlock(&view->describing);
    return err;
}

struct limefs_faces {
    struct limefs_face **buckets; /* hash of (view, record): its exports share a bucket */
    size_t bucket_count, count;
    struct limefs_face_change *changes; /* under way */
};

int limefs_faces_begin(struct limefs *fs)
{
    static const struct limefs_view_watch watch = {
        .changed = forget_fields,
        .asleep = forget_fields,
        .freed = forget_fields,
    };
    struct limefs_faces *faces = calloc(1, sizeof *faces);
    if (!faces)
        return -ENOMEM;
    faces->bucket_count = 64;
    faces->buckets = calloc(faces->bucket_count, sizeof(struct limefs_face *));
    if (!faces->buckets) {
        free(faces);
        return -ENOMEM;
    }
    fs->faces = faces;
    limefs_view_watch(fs, &watch);
    return 0;
}

void limefs_faces_release(struct limefs *fs)
{
    if (!fs->faces)
        return;
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++)
        if (fs->inodes.slots[i].use == LIMEFS_SLOT_FACE) {
            struct limefs_face *face = fs->inodes.slots[i].what;
            limefile_face_close(face->files);
            free(face);
        }
    free(fs->faces->buckets);
    free(fs->faces);
    fs->faces = NULL;
}

/* Returns a different number, below 256, for each name that an export can have. */
static unsigned code_of(const struct limefile_facename *name)
{
    unsigned precision = name->precision == 32 ? 1 : name->precision == 64 ? 2 : 0;
    return (unsigned)name->kind | (name->even_odd ? 1u : 0) << 4 | precision << 5 |
           (name->little ? 1u : 0) << 7;
}

/* ---- the hash table: all with fs->lock held ---- */

static struct limefs_face **bucket_of(const struct limefs_faces *faces, uint32_t slot,
                                      uint64_t ordinal)
{
    uint64_t hash = ((uint64_t)slot << 32 ^ ordinal) * UINT64_C(0x9e3779b97f4a7c15);
    return &faces->buckets[(hash ^ hash >> 32) & (faces->bucket_count - 1)];
}

static struct limefs_face *find_face(struct limefs *fs, const struct limefs_view *view,
                                     uint64_t ordinal, const struct limefile_facename *name)
{
    struct limefs_face *face = *bucket_of(fs->faces, view->slot, ordinal);
    while (face && (face->view != view || face->ordinal != ordinal ||
                    code_of(&face->name) != code_of(name)))
        face = face->next;
    return face;
}

/* Doubles the number of buckets. Without memory it stays, and look-ups become slower. */
static void grow(struct limefs_faces *faces)
{
    struct limefs_face **old = faces->buckets;
    size_t count = faces->bucket_count;
    struct limefs_face **buckets = calloc(count * 2, sizeof(struct limefs_face *));
    if (!buckets)
        return;
    faces->buckets = buckets;
    faces->bucket_count = count * 2;
    for (size_t i = 0; i < count; i++)
        for (struct limefs_face *face = old[i], *next; face; face = next) {
            struct limefs_face **at = bucket_of(faces, face->view->slot, face->ordinal);
            next = face->next;
            face->next = *at;
            *at = face;
        }
    free(old);
}

static int put_face(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_faces *faces = fs->faces;
    int err = limefs_slot_take(fs, LIMEFS_SLOT_FACE, face, &face->slot);
    if (err)
        return err;
    if (faces->count >= faces->bucket_count)
        grow(faces);
    struct limefs_face **at = bucket_of(faces, face->view->slot, face->ordinal);
    face->next = *at;
    *at = face;
    face->found = true;
    face->id = ++fs->inodes.ids;
    faces->count++;
    return 0;
}

static void drop_face(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_face **at = bucket_of(fs->faces, face->view->slot, face->ordinal);
    if (!face->found)
        return;
    while (*at != face)
        at = &(*at)->next;
    *at = face->next;
    face->found = false;
    fs->faces->count--;
}

static void drop_faces(struct limefs *fs, const struct limefs_view *view, uint64_t ordinal)
{
    struct limefs_face *face = *bucket_of(fs->faces, view->slot, ordinal);
    while (face) {
        struct limefs_face *next = face->next;
        if (face->view == view && face->ordinal == ordinal)
            drop_face(fs, face);
        face = next;
    }
}

/* ---- changes of a record ---- */

static bool is_changing(struct limefs *fs, const struct limefs_view *view, uint64_t ordinal)
{
    const struct limefs_face_change *change = fs->faces->changes;
    while (change && (change->view != view || change->ordinal != ordinal))
        change = change->next;
    return change != NULL;
}

void limefs_face_change(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                        struct limefs_face_change *change)
{
    limefs_lock(&fs->lock);
    *change = (struct limefs_face_change){.next = fs->faces->changes,
                                          .at = &fs->faces->changes,
                                          .view = view,
                                          .ordinal = ordinal};
    if (change->next)
        change->next->at = &change->next;
    fs->faces->changes = change;
    drop_faces(fs, view, ordinal);
    limefs_unlock(&fs->lock);
}

/* The view's fields are dropped, too: the record may describe other records. */
void limefs_face_changed(struct limefs *fs, struct limefs_view *view,
                         struct limefs_face_change *change)
{
    limefs_lock(&fs->lock);
    *change->at = change->next;
    if (change->next)
        change->next->at = change->at;
    drop_faces(fs, view, change->ordinal);
    limefs_unlock(&fs->lock);
    limefs_view_changed(fs, view);
}

/* ---- the description of a record ---- */

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (const unsigned char *c = bytes; n > 0; n--, c++)
        hash = (hash ^ *c) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t add(uint64_t hash, uint64_t value)
{
    return add_bytes(hash, &value, sizeof value);
}

/* Hashes everything in a description that an export may depend on. */
static uint64_t digest_of(const struct limefile_field *field)
{
    uint64_t hash = add_bytes(UINT64_C(1469598103934665603), field->name,
                              strnlen(field->name, sizeof field->name) + 1);
    hash = add_bytes(hash, field->record.type, field->record.type_len);
    const uint64_t values[] = {
        field->record.bytes,   (uint64_t)field->kind, field->precision,
        field->lattice.dims,   field->halved,         field->boxed,
        field->sites,          field->site_bytes,     field->expected,
        field->has_checksum,   field->checksum.suma,  field->checksum.sumb,
        field->record.ordinal, field->disputed,       field->by_format != 0,
        field->datacount,      field->colors,         field->spins};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        hash = add(hash, values[i]);
    for (unsigned i = 0; i < field->lattice.dims && i < LIMEFILE_DIMS_MAX; i++) {
        hash = add(hash, field->lattice.extent[i]);
        if (field->boxed)
            hash = add(add(hash, field->lower[i]), field->upper[i]);
    }
    return hash;
}

/* Gets the description of a record of a pinned view. `field` points into `fields`, which the
 * caller releases, also after an error. LIMEFILE_E_NO_RECORD: the record is not a field. */
static int describe_record(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                           struct limefs_fields **fields, struct limefile_field *field)
{
    *fields = NULL;
    int err = limefs_fields_of(fs, view, fields);
    if (err)
        return err;
    return limefile_fields_of(&(*fields)->fields, ordinal, field) ? 0 : LIMEFILE_E_NO_RECORD;
}

/* Does the same for an export's record. -ESTALE: it has changed since the export was made. */
static int describe_again(struct limefs *fs, const struct limefs_face *face,
                          struct limefs_fields **fields, struct limefile_field *field)
{
    int err = describe_record(fs, face->view, face->ordinal, fields, field);
    return !err && digest_of(field) != face->digest ? -ESTALE : err;
}

/* Returns LIMEFILE_E_NO_RECORD if the field has no such export, or if that has more files than
 * there are ordinals. */
static int open_files(const struct limefile_field *field, const struct limefile_facename *name,
                      struct limefile_face **files)
{
    int err = limefile_face_open(field, name, files);
    if (!err && limefile_face_entries(*files) >= UINT32_MAX) {
        limefile_face_close(*files);
        err = LIMEFILE_E_STATE;
    }
    return err == LIMEFILE_E_STATE ? LIMEFILE_E_NO_RECORD : err;
}

/* ---- use ---- */

static void free_face(struct limefs *fs, struct limefs_face *face)
{
    limefile_face_close(face->files);
    limefs_view_forget(fs, face->view, 1);
    free(face);
}

/* Removes an export without lookups and users. Called with fs->lock held. If it returns true,
 * the caller must call free_face() after unlocking. */
static bool is_free(struct limefs *fs, struct limefs_face *face)
{
    if (face->lookups || face->users)
        return false;
    drop_face(fs, face);
    limefs_slot_give(fs, face->slot);
    return true;
}

/* Drops a user. With the last one the files are closed, except whole files, which take long to
 * prepare; and the export is freed if the kernel has no lookup of it. */
static void release_user(struct limefs *fs, struct limefs_face *face)
{
    struct limefile_face *files = NULL;
    limefs_lock(&fs->lock);
    if (--face->users == 0 && !limefile_face_is_whole(&face->name)) {
        files = face->files;
        face->files = NULL;
    }
    bool dead = is_free(fs, face);
    limefs_unlock(&fs->lock);
    limefile_face_close(files);
    if (dead)
        free_face(fs, face);
}

/* Opens the files of an export in use again; its view must be pinned. -ESTALE: the record has
 * changed. */
static int open_again(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    struct limefile_face *files = NULL;
    int err = describe_again(fs, face, &fields, &field);
    if (!err)
        err = open_files(&field, &face->name, &files);
    limefs_fields_release(fields);
    if (err)
        return err == LIMEFILE_E_NO_RECORD ? -ESTALE : err;
    limefs_lock(&fs->lock);
    if (!face->files) {
        face->files = files;
        files = NULL;
    }
    limefs_unlock(&fs->lock);
    limefile_face_close(files);
    return 0;
}

int limefs_face_use(struct limefs *fs, struct limefs_face *face)
{
    limefs_lock(&fs->lock);
    face->users++;
    bool open = face->files != NULL;
    limefs_unlock(&fs->lock);
    int err = limefs_view_pin(fs, face->view);
    if (err) {
        release_user(fs, face);
        return err;
    }
    err = open ? 0 : open_again(fs, face);
    if (err)
        limefs_face_leave(fs, face);
    return err;
}

void limefs_face_leave(struct limefs *fs, struct limefs_face *face)
{
    limefs_view_unpin(fs, face->view);
    release_user(fs, face);
}

int limefs_face_enter(struct limefs *fs, struct limefs_face *face, uint64_t ordinal,
                      struct limefile_face_entry *entry)
{
    struct limefs_view *current;
    int err = limefs_view_current(fs, face->view->node, &current);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    err = current == face->view ? limefs_face_check(fs, face) : -ESTALE;
    if (!err)
        err = limefs_face_use(fs, face);
    limefs_view_unpin(fs, current);
    if (err || limefs_face_entry_of(face, ordinal, entry))
        return err;
    limefs_face_leave(fs, face);
    return -ESTALE;
}

int limefs_face_check(struct limefs *fs, const struct limefs_face *face)
{
    if (!fs->options.rw)
        return 0; /* a change by another program makes a new view */
    limefs_lock(&fs->lock);
    bool stands = face->found && !is_changing(fs, face->view, face->ordinal);
    limefs_unlock(&fs->lock);
    stands =
        stands && limefs_view_generation(fs, face->view, face->ordinal) == face->generation;
    return stands ? 0 : -ESTALE;
}

const struct limefile_face *limefs_face_files(const struct limefs_face *face)
{
    return face->files;
}

struct limefs_view *limefs_face_view(const struct limefs_face *face)
{
    return face->view;
}

uint64_t limefs_face_record(const struct limefs_face *face)
{
    return face->ordinal;
}

/* ---- entries and attributes ---- */

bool limefs_face_entry_of(const struct limefs_face *face, uint64_t ordinal,
                          struct limefile_face_entry *entry)
{
    bool directory = limefile_face_is_directory(&face->name);
    if (ordinal == 0 && directory) {
        *entry = (struct limefile_face_entry){.is_dir = true};
        return true;
    }
    if (ordinal == 0 || ordinal > limefile_face_entries(face->files))
        return false;
    limefile_face_entry(face->files, ordinal - 1, entry);
    return true;
}

ino_t limefs_face_shown(struct limefs *fs, const struct limefs_face *face, uint64_t ordinal)
{
    struct stat st = limefs_view_stat(fs, face->view);
    return limefs_shown_face(fs, &st, face->ordinal, code_of(&face->name), ordinal);
}

/* Changes the attributes *st of the container to those of an entry: it has the container's read
 * permissions and no write permission. */
static void fill(struct limefs *fs, const struct limefs_face *face, uint64_t ordinal,
                 const struct limefile_face_entry *entry, struct stat *st)
{
    st->st_ino = limefs_shown_face(fs, st, face->ordinal, code_of(&face->name), ordinal);
    st->st_mode = entry->is_dir ? S_IFDIR | (st->st_mode & 0444) | (st->st_mode & 0444) >> 2
                                : S_IFREG | (st->st_mode & 0444);
    st->st_nlink = entry->is_dir ? 2 : 1;
    st->st_rdev = 0;
    st->st_size = entry->is_dir ? 0 : (off_t)entry->bytes;
    st->st_blocks = st->st_size / 512 + (st->st_size % 512 != 0);
    st->st_blksize = 128 * 1024;
}

void limefs_face_take(struct limefs *fs, struct limefs_face *face, uint64_t ordinal,
                      const struct limefile_face_entry *entry, struct limefs_face_entry *out)
{
    limefs_lock(&fs->lock);
    face->lookups++;
    limefs_unlock(&fs->lock);
    out->id = limefs_inode_of_face(face->slot, ordinal);
    out->generation = face->id;
    out->st = limefs_view_stat(fs, face->view);
    fill(fs, face, ordinal, entry, &out->st);
}

int limefs_face_attr(struct limefs *fs, struct limefs_face *face, uint64_t ordinal,
                     struct stat *out)
{
    struct limefile_face_entry entry;
    struct limefile_record record;
    int err = limefs_face_use(fs, face);
    if (err)
        return err;
    struct limefile_index *index = limefs_view_index(fs, face->view);
    err = limefile_index_get(index, face->ordinal, &record);
    if (!err)
        err = limefs_view_check(fs, face->view, &record, NULL);
    if (!err && !limefs_face_entry_of(face, ordinal, &entry))
        err = -ESTALE;
    if (!err)
        err = limefs_face_check(fs, face);
    if (!err) {
        *out = limefs_view_stat_now(fs, face->view);
        fill(fs, face, ordinal, &entry, out);
    }
    limefile_index_free(index);
    limefs_face_leave(fs, face);
    return err;
}

void limefs_face_forget(struct limefs *fs, struct limefs_face *face, uint64_t n)
{
    limefs_lock(&fs->lock);
    face->lookups -= n < face->lookups ? n : face->lookups;
    bool dead = is_free(fs, face);
    limefs_unlock(&fs->lock);
    if (dead)
        free_face(fs, face);
}

/* ---- look-ups ---- */

/* True if there are whole files of the field: it is SU(3) in four dimensions. */
static bool is_configuration(const struct limefile_field *field)
{
    return limefile_field_configuration(field, NULL) == LIMEFILE_CONFIGURATION;
}

/* The name, without suffix, of the whole file of a container's only configuration. */
#define WHOLE "conf"

/* Gets the known export if it still fits the record, else makes a new one, and adds a user.
 * Takes ownership of the files, also on error. */
static int make_face(struct limefs *fs, struct limefs_view *view,
                     const struct limefile_field *field, const struct limefile_facename *name,
                     struct limefile_face *files, struct limefs_face **out)
{
    struct limefs_face *face = calloc(1, sizeof *face), *other;
    if (!face) {
        limefile_face_close(files);
        return -ENOMEM;
    }
    *face = (struct limefs_face){.view = view,
                                 .ordinal = field->record.ordinal,
                                 .generation =
                                     limefs_view_generation(fs, view, field->record.ordinal),
                                 .digest = digest_of(field),
                                 .name = *name,
                                 .users = 1,
                                 .files = files};
    atomic_init(&face->ready, limefile_face_is_ready(files));
    limefs_view_lookup(fs, view, 1);
    limefs_lock(&fs->lock);
    other = find_face(fs, view, face->ordinal, name);
    bool known =
        other && other->digest == face->digest && other->generation == face->generation;
    if (known && !other->files) {
        other->files = files;
        face->files = NULL;
    }
    if (known)
        other->users++;
    else if (other)
        drop_face(fs, other);
    int err = known ? 0 : put_face(fs, face);
    limefs_unlock(&fs->lock);
    *out = known ? other : face;
    if (err || known)
        free_face(fs, face);
    return err;
}

/* Gets the export of a record of a pinned view, in use. */
static int face_of(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                   const struct limefile_facename *name, struct limefs_face **face)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    struct limefile_face *files;
    int err = describe_record(fs, view, ordinal, &fields, &field);
    if (!err)
        err = open_files(&field, name, &files);
    if (!err)
        err = make_face(fs, view, &field, name, files, face);
    limefs_fields_release(fields);
    return err;
}

/* Finds the only configuration. LIMEFILE_E_NO_RECORD: the container has not exactly one. */
static int only_configuration(const struct limefile_fields *fields,
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

static int find_configuration(struct limefs *fs, struct limefs_node *container,
                              struct limefs_view **view, struct limefile_record *record)
{
    struct limefs_fields *fields = NULL;
    int err = limefs_view_current(fs, container, view);
    if (err)
        return err;
    err = limefs_fields_of(fs, *view, &fields);
    if (!err)
        err = only_configuration(&fields->fields, record);
    limefs_fields_release(fields);
    if (err)
        limefs_view_unpin(fs, *view);
    return err;
}

/* Finds the record for an export's name, and pins its view. */
static int find_record(struct limefs *fs, struct limefs_node *container, const char *name,
                       struct limefile_facename *facename, struct limefs_view **view,
                       struct limefile_record *record)
{
    char stem[LIMEFILE_NAME_MAX + 1];
    size_t len;
    if (!limefile_facename_parse(name, facename, &len) || len == 0 || len >= sizeof stem)
        return LIMEFILE_E_NO_RECORD;
    memcpy(stem, name, len);
    stem[len] = '\0';
    int err = limefs_view_find(fs, container, stem, view, record);
    if (err == LIMEFILE_E_NO_RECORD && limefile_face_is_whole(facename) &&
        strcmp(stem, WHOLE) == 0)
        err = find_configuration(fs, container, view, record);
    return err;
}

/* Gets the export of that name, in use, and pins its view. */
static int find_named(struct limefs *fs, struct limefs_node *container, const char *name,
                      struct limefs_view **view, struct limefs_face **face)
{
    struct limefile_facename facename;
    struct limefile_record record;
    int err = find_record(fs, container, name, &facename, view, &record);
    if (err)
        return err;
    err = face_of(fs, *view, record.ordinal, &facename, face);
    if (err)
        limefs_view_unpin(fs, *view);
    return err;
}

int limefs_face_lookup(struct limefs *fs, struct limefs_node *container, const char *name,
                       struct limefs_face_entry *out)
{
    struct limefs_view *view;
    struct limefile_face_entry entry;
    struct limefs_face *face;
    int err = find_named(fs, container, name, &view, &face);
    if (err)
        return err;
    uint64_t ordinal = limefile_face_is_directory(&face->name) ? 0 : 1;
    if (limefs_face_entry_of(face, ordinal, &entry))
        limefs_face_take(fs, face, ordinal, &entry, out);
    else
        err = -EIO;
    release_user(fs, face);
    limefs_view_unpin(fs, view);
    return err;
}

bool limefs_face_is_there(struct limefs *fs, struct limefs_node *container, const char *name)
{
    struct limefs_view *view;
    struct limefile_record record;
    struct limefs_face *face;
    if (limefs_view_find(fs, container, name, &view, &record) == 0) {
        limefs_view_unpin(fs, view);
        return false; /* a record of that name comes first */
    }
    if (find_named(fs, container, name, &view, &face) != 0)
        return false;
    release_user(fs, face);
    limefs_view_unpin(fs, view);
    return true;
}

int limefs_face_lookup_in(struct limefs *fs, struct limefs_face *face, uint64_t parent,
                          const char *name, struct limefs_face_entry *out)
{
    uint64_t number;
    struct limefile_face_entry entry;
    int err = limefs_face_enter(fs, face, parent, &entry);
    if (err)
        return err;
    if (!entry.is_dir)
        err = -ENOTDIR;
    else if (!limefile_face_find(face->files, parent, name, &number) ||
             !limefs_face_entry_of(face, number + 1, &entry))
        err = -ENOENT;
    else
        limefs_face_take(fs, face, number + 1, &entry, out);
    limefs_face_leave(fs, face);
    return err;
}

/* ---- whole files, whose headers contain sums of all data ---- */

enum {
    MEMORY = 64 << 20, /* bytes that limefile_face_prepare() may use */
};

struct measuring {
    struct limefile_source *source;
    uint64_t data_offset;
    size_t site_bytes;
    atomic_bool *stop;
};

static int read_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct measuring *r = context;
    size_t n = (size_t)count * r->site_bytes;
    return limefile_read_exact(r->source, out, n, r->data_offset + first * r->site_bytes);
}

static bool goes_on_measuring(void *context, uint64_t sites_more)
{
    const struct measuring *r = context;
    (void)sites_more;
    return !atomic_load(r->stop);
}

static int measure(struct limefs *fs, struct limefs_face *face,
                   const struct limefile_field *field, atomic_bool *stop)
{
    struct limefile_fd fd;
    struct measuring reading = {.source = limefs_view_source(face->view, &fd),
                                .data_offset = field->record.data_offset,
                                .site_bytes = (size_t)field->site_bytes,
                                .stop = stop};
    int err = limefs_verify_settle(fs, face->view, &field->record);
    if (!err)
        err =
            limefile_face_prepare(face->files, MEMORY, read_sites, goes_on_measuring, &reading);
    if (!err) /* the container must be unchanged */
        err = limefs_view_check(fs, face->view, &field->record, NULL);
    return err ? err : limefs_face_check(fs, face);
}

bool limefs_face_is_ready(const struct limefs_face *face)
{
    return atomic_load(&face->ready);
}

bool limefs_face_jumps(const struct limefs_face *face)
{
    return face->name.kind == LIMEFILE_FACE_OPENQCD;
}

int limefs_face_prepare(struct limefs *fs, struct limefs_face *face, atomic_bool *stop)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    if (limefs_face_is_ready(face))
        return 0;
    int err = describe_again(fs, face, &fields, &field);
    if (!err)
        err = measure(fs, face, &field, stop);
    limefs_fields_release(fields);
    if (!err)
        atomic_store(&face->ready, true);
    return err;
}

/* ---- the names of all exports, for listings ---- */

/* Returns false if the name is longer than LIMEFILE_NAME_MAX. */
static bool name_of(const struct limefile_record *record, const struct limefile_facename *face,
                    char name[LIMEFILE_NAME_MAX + 1])
{
    char suffix[LIMEFILE_FACE_SUFFIX_MAX];
    size_t len = limefile_name_of(record, name);
    limefile_facename_print(face, suffix);
    if (len + strlen(suffix) > LIMEFILE_NAME_MAX)
        return false;
    strcpy(name + len, suffix);
    return true;
}

enum {
    EACH = 64, /* numbers for each field: more than it has exports */
};

/* Gets the i-th export of a field that is listed. False: it has fewer. */
static bool listed_name(const struct limefile_field *field, uint64_t i,
                        struct limefile_facename *face)
{
    struct limefile_array array;
    return i < EACH && limefile_array_of(field, &array) == 0 &&
           limefile_facename_of(&array, (unsigned)i, face) &&
           (!limefile_face_is_whole(face) || is_configuration(field));
}

bool limefs_face_listed(struct limefs *fs, struct limefs_view *view,
                        const struct limefs_fields *fields, uint64_t *i,
                        char name[LIMEFILE_NAME_MAX + 1], struct stat *st)
{
    struct limefile_field field;
    struct limefile_facename face;
    while (*i / EACH < fields->fields.count) {
        limefile_fields_get(&fields->fields, (size_t)(*i / EACH), &field);
        if (!listed_name(&field, *i % EACH, &face)) {
            *i += EACH - *i % EACH;
            continue;
        }
        ++*i;
        if (!name_of(&field.record, &face, name))
            continue;
        bool directory = limefile_face_is_directory(&face);
        struct stat container = limefs_view_stat(fs, view);
        memset(st, 0, sizeof *st);
        st->st_ino = limefs_shown_face(fs, &container, field.record.ordinal, code_of(&face),
                                       directory ? 0 : 1);
        st->st_mode = directory ? S_IFDIR : S_IFREG;
        return true;
    }
    return false;
}
