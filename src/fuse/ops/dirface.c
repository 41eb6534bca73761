/* dirface.c - faces listed: of a container's records (-o faces), and what is in one of them */
#include "listing.h"

#include <errno.h>

int limefs_dir_open_face(struct limefs *fs, struct limefs_dir *dir)
{
    struct limefile_face_entry entry;
    int err = limefs_face_enter(fs, dir->face);
    if (err)
        return err;
    if (!limefs_face_entry_of(dir->face, dir->ordinal, &entry))
        err = -ESTALE;
    else if (!entry.directory)
        err = -ENOTDIR;
    if (err)
        limefs_face_leave(fs, dir->face);
    return err;
}

/* ---- what is in a face: "." and ".." are entries 0 and 1, number n of its files n + 2 ---- */

/* Of "..": of the container's own directory it is not known here, and nobody asks. */
static void list_dot(struct limefs *fs, const struct limefs_dir *dir,
                     struct limefs_listing *list, uint64_t offset)
{
    struct limefile_face_entry entry;
    uint64_t ordinal = dir->ordinal;
    if (offset == 1 && limefs_face_entry_of(dir->face, dir->ordinal, &entry))
        ordinal = entry.parent;
    limefs_listing_add_name(list, offset ? ".." : ".",
                            limefs_face_shown(fs, dir->face, ordinal), S_IFDIR,
                            (off_t)offset + 1);
}

static void list_entry(struct limefs *fs, struct limefs_dir *dir, struct limefs_listing *list,
                       uint64_t number, const struct limefile_face_entry *entry)
{
    struct limefs_face_entry seen;
    struct fuse_entry_param param;
    if (!list->plus) {
        limefs_listing_add_name(list, entry->name, limefs_face_shown(fs, dir->face, number + 1),
                                entry->directory ? S_IFDIR : S_IFREG, (off_t)number + 3);
        return;
    }
    limefs_face_take(fs, dir->face, number + 1, entry, &seen);
    limefs_entry_face(fs, &seen, &param);
    limefs_listing_add_plus(list, entry->name, &param, (off_t)number + 3);
    if (list->full)
        limefs_face_forget(fs, dir->face, 1);
}

void limefs_dir_list_face(struct limefs *fs, struct limefs_dir *dir,
                          struct limefs_listing *list, uint64_t offset)
{
    const struct limefile_face *files = limefs_face_files(dir->face);
    struct limefile_face_entry entry;
    uint64_t count = limefile_face_entries(files);
    for (; !list->full && offset < count + 2; offset++) {
        if (offset < 2) {
            list_dot(fs, dir, list, offset);
            continue;
        }
        limefile_face_entry(files, offset - 2, &entry);
        if (entry.parent > dir->ordinal)
            break; /* parents ascend, and there may be 2^30 slices */
        if (entry.parent == dir->ordinal)
            list_entry(fs, dir, list, offset - 2, &entry);
    }
}

/* ---- the faces of all records ---- */

void limefs_dir_list_faces(struct limefs *fs, struct limefs_dir *dir,
                           struct limefs_listing *list, uint64_t offset)
{
    char name[LIMEFILE_NAME_MAX + 1];
    struct stat st;
    uint64_t first = dir->records + 2, next = offset - first;
    if (!dir->faces && limefs_fields_of(fs, dir->view, &dir->faces) != 0)
        return; /* what it has cannot be known */
    while (!list->full && limefs_face_listed(fs, dir->view, dir->faces, &next, name, &st))
        limefs_listing_add_name(list, name, st.st_ino, st.st_mode, (off_t)(first + next));
}
