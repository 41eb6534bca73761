/* face.c - faces used, and forgotten */
#include "face.h"
#include "fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void close_files(struct limefile_face *files)
{
    if (files)
        limefile_face_close(files);
}

/* ---- what a record is ---- */

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

uint64_t limefs_face_digest(const struct limefile_field *field)
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

int limefs_face_describe(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                         struct limefs_fields **fields, struct limefile_field *field)
{
    *fields = NULL;
    int err = limefs_fields_of(fs, view, fields);
    if (err)
        return err;
    return limefile_fields_of(&(*fields)->fields, ordinal, field) ? 0 : LIMEFILE_E_NO_RECORD;
}

int limefs_face_files_open(const struct limefile_field *field,
                           const struct limefile_facename *name, struct limefile_face **files)
{
    int err = limefile_face_open(field, name, files);
    if (!err && limefile_face_entries(*files) >= UINT32_MAX) {
        limefile_face_close(*files);
        err = LIMEFILE_E_STATE;
    }
    return err == LIMEFILE_E_STATE ? LIMEFILE_E_NO_RECORD : err;
}

/* ---- in use ---- */

void limefs_face_bury(struct limefs *fs, struct limefs_face *face)
{
    close_files(face->files);
    limefs_view_forget(fs, face->view, 1);
    free(face);
}

/* With fs->lock held; true: it is to be buried. */
static bool is_free(struct limefs *fs, struct limefs_face *face)
{
    if (face->lookups || face->users)
        return false;
    limefs_face_wake(fs, face); /* out of the list */
    limefs_face_drop(fs, face);
    limefs_slot_give(fs, face->slot);
    return true;
}

void limefs_face_let_go(struct limefs *fs, struct limefs_face *face)
{
    limefs_lock(&fs->lock);
    struct limefile_face *files = limefs_face_rest(fs, face);
    bool dead = is_free(fs, face);
    limefs_unlock(&fs->lock);
    close_files(files);
    if (dead)
        limefs_face_bury(fs, face);
}

int limefs_face_open_again(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    struct limefile_face *files = NULL;
    int err = limefs_face_describe(fs, face->view, face->ordinal, &fields, &field);
    if (!err && limefs_face_digest(&field) != face->digest)
        err = -ESTALE;
    if (!err)
        err = limefs_face_files_open(&field, &face->name, &files);
    limefs_fields_release(fields);
    if (err)
        return err == LIMEFILE_E_NO_RECORD ? -ESTALE : err;
    limefs_lock(&fs->lock);
    if (!face->files) {
        face->files = files;
        files = NULL;
    }
    limefs_unlock(&fs->lock);
    close_files(files);
    return 0;
}

int limefs_face_use(struct limefs *fs, struct limefs_face *face)
{
    limefs_lock(&fs->lock);
    limefs_face_wake(fs, face);
    bool open = face->files != NULL;
    limefs_unlock(&fs->lock);
    int err = limefs_view_pin(fs, face->view);
    if (err) {
        limefs_face_let_go(fs, face);
        return err;
    }
    err = open ? 0 : limefs_face_open_again(fs, face);
    if (err)
        limefs_face_leave(fs, face);
    return err;
}

void limefs_face_leave(struct limefs *fs, struct limefs_face *face)
{
    limefs_view_unpin(fs, face->view);
    limefs_face_let_go(fs, face);
}

int limefs_face_enter(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_view *current;
    int err = limefs_view_current(fs, face->view->node, &current);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    err = current == face->view ? limefs_face_check(fs, face) : -ESTALE;
    if (!err)
        err = limefs_face_use(fs, face);
    limefs_view_unpin(fs, current);
    return err;
}

int limefs_face_check(struct limefs *fs, const struct limefs_face *face)
{
    if (!fs->options.rw)
        return 0; /* others' changes make another view */
    limefs_lock(&fs->lock);
    bool stands = face->found && !limefs_face_is_changing(fs, face->view, face->ordinal);
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

/* ---- what the kernel is told ---- */

uint64_t limefs_face_inode(const struct limefs_face *face, uint64_t ordinal)
{
    return limefs_inode_of_record(face->slot, ordinal);
}

bool limefs_face_entry_of(const struct limefs_face *face, uint64_t ordinal,
                          struct limefile_face_entry *entry)
{
    bool directory = limefile_face_is_directory(&face->name);
    if (ordinal == 0 && directory) {
        *entry = (struct limefile_face_entry){.directory = true};
        return true;
    }
    if (ordinal == 0 || ordinal > limefile_face_entries(face->files))
        return false;
    limefile_face_entry(face->files, ordinal - 1, entry);
    return true;
}

/* Who may read the container may read it, and nobody may write to it. */
static void make_readable(struct stat *st, bool directory)
{
    st->st_mode = directory ? S_IFDIR | (st->st_mode & 0444) | (st->st_mode & 0444) >> 2
                            : S_IFREG | (st->st_mode & 0444);
    st->st_nlink = directory ? 2 : 1;
    st->st_rdev = 0;
}

ino_t limefs_face_shown(struct limefs *fs, const struct limefs_face *face, uint64_t ordinal)
{
    struct stat st = limefs_view_stat(fs, face->view);
    return limefs_shown_face(fs, &st, face->ordinal, limefs_face_code(&face->name), ordinal);
}

static void fill(struct limefs *fs, const struct limefs_face *face, uint64_t ordinal,
                 const struct limefile_face_entry *entry, struct stat *st)
{
    *st = limefs_view_stat(fs, face->view);
    st->st_ino =
        limefs_shown_face(fs, st, face->ordinal, limefs_face_code(&face->name), ordinal);
    make_readable(st, entry->directory);
    st->st_size = entry->directory ? 0 : (off_t)entry->bytes;
    st->st_blocks = st->st_size / 512 + (st->st_size % 512 != 0);
    st->st_blksize = 128 * 1024;
}

void limefs_face_take(struct limefs *fs, struct limefs_face *face, uint64_t ordinal,
                      const struct limefile_face_entry *entry, struct limefs_face_entry *out)
{
    limefs_lock(&fs->lock);
    face->lookups++;
    limefs_unlock(&fs->lock);
    out->id = limefs_face_inode(face, ordinal);
    out->generation = face->id;
    fill(fs, face, ordinal, entry, &out->st);
}

int limefs_face_attr(struct limefs *fs, struct limefs_face *face, uint64_t ordinal,
                     struct stat *out)
{
    struct limefile_face_entry entry;
    struct limefile_record record;
    struct stat st;
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
        fill(fs, face, ordinal, &entry, out);
        if (fstat(face->view->fd, &st) == 0) { /* as of a record */
            out->st_uid = st.st_uid;
            out->st_gid = st.st_gid;
            out->st_mtim = st.st_mtim;
            out->st_ctim = st.st_ctim;
            out->st_mode = st.st_mode;
            make_readable(out, entry.directory);
        }
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
        limefs_face_bury(fs, face);
}
