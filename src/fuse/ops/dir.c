/* dir.c - directories listed */
#include "listing.h"
#include "descriptor.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- open and close ---- */

static int open_container(struct limefs *fs, struct limefs_dir *dir)
{
    limefs_dir_entered(fs, dir->node);
    int err = limefs_view_current(fs, dir->node, &dir->view);
    return err == -ENOENT ? -ESTALE : err;
}

static int open_directory(struct limefs *fs, struct limefs_dir *dir)
{
    int folder = limefs_tree_folder(fs, dir->node);
    if (folder < 0)
        return folder;
    int fd = limefile_reopen(folder, O_RDONLY | O_DIRECTORY);
    close(folder);
    if (fd < 0)
        return fd;
    limefs_lock(&fs->lock);
    dir->dev = dir->node->stamp.dev; /* which the folder was compared with */
    limefs_unlock(&fs->lock);
    dir->stream = fdopendir(fd);
    int err = dir->stream ? 0 : -errno;
    if (err)
        close(fd);
    return err;
}

int limefs_dir_open(struct limefs *fs, uint64_t id, struct limefs_dir **out)
{
    uint64_t ordinal;
    struct limefs_node *node = limefs_inode_node(fs, id);
    struct limefs_face *face = node ? NULL : limefs_inode_face(fs, id, &ordinal);
    if (!face && (!node || node->kind == LIMEFS_OTHER))
        return -ENOTDIR;
    struct limefs_dir *dir = calloc(1, sizeof *dir);
    if (!dir)
        return -ENOMEM;
    dir->node = node;
    dir->face = face;
    dir->ordinal = face ? ordinal : 0;
    int err = face                             ? limefs_dir_open_face(fs, dir)
              : node->kind == LIMEFS_CONTAINER ? open_container(fs, dir)
                                               : open_directory(fs, dir);
    if (err) {
        free(dir);
        return err;
    }
    limefs_lock_init(&dir->lock, LIMEFS_LOCK_DIR);
    limefs_handle_add(fs, &fs->dirs, &dir->handle);
    *out = dir;
    return 0;
}

void limefs_dir_close(struct limefs *fs, struct limefs_dir *dir)
{
    limefs_handle_remove(fs, &dir->handle);
    limefs_fields_release(dir->faces);
    if (dir->view)
        limefs_view_unpin(fs, dir->view);
    if (dir->face)
        limefs_face_leave(fs, dir->face);
    if (dir->stream)
        closedir(dir->stream);
    limefs_lock_destroy(&dir->lock);
    free(dir->ahead);
    free(dir);
}

int limefs_dir_sync(struct limefs_dir *dir)
{
    if (dir->face)
        return 0;
    limefs_lock(&dir->lock);
    int fd = dir->view ? dir->view->fd : dirfd(dir->stream);
    int err = fsync(fd) == 0 ? 0 : -errno;
    limefs_unlock(&dir->lock);
    return err;
}

void limefs_dirs_release(struct limefs *fs)
{
    while (fs->dirs)
        limefs_dir_close(fs, (struct limefs_dir *)fs->dirs);
}

/* ---- entries ---- */

void limefs_listing_add(struct limefs_listing *list, const char *name, const struct stat *st,
                        off_t next)
{
    size_t n = fuse_add_direntry(list->req, list->buf + list->used, list->cap - list->used,
                                 name, st, next);
    list->full = n > list->cap - list->used;
    if (!list->full)
        list->used += n;
}

void limefs_listing_add_plus(struct limefs_listing *list, const char *name,
                             const struct fuse_entry_param *entry, off_t next)
{
    size_t n = fuse_add_direntry_plus(list->req, list->buf + list->used, list->cap - list->used,
                                      name, entry, next);
    list->full = n > list->cap - list->used;
    if (!list->full)
        list->used += n;
}

void limefs_listing_add_name(struct limefs_listing *list, const char *name, ino_t shown,
                             mode_t type, off_t next)
{
    struct fuse_entry_param entry = {.attr = {.st_ino = shown, .st_mode = type}};
    if (list->plus)
        limefs_listing_add_plus(list, name, &entry, next);
    else
        limefs_listing_add(list, name, &entry.attr, next);
}

/* ---- a container: "." and ".." are entries 0 and 1, record n is entry n + 1 ---- */

enum {
    PLUS_ALWAYS = 50000, /* records that are listed with their attributes; of the others, */
    PLUS_FOR_ONE = 256,  /* so many for each that was looked up, but */
    PLUS_NOT_EACH = 128, /* for one of so many, that tells whether they are still wanted */
};

/* What the kernel does by itself where it has the choice, except that it knows of no reader who
 * takes names and attributes in turns of more than one reply. */
static bool wants_attributes(struct limefs_dir *dir, uint64_t ordinal)
{
    if (ordinal <= PLUS_ALWAYS)
        return true;
    if (dir->plus_left == 0 || ordinal % PLUS_NOT_EACH == 0)
        return false;
    dir->plus_left--;
    return true;
}

static void list_record(struct limefs *fs, struct limefs_dir *dir,
                        const struct limefile_index *index, struct limefs_listing *list,
                        uint64_t ordinal)
{
    char name[LIMEFILE_NAME_MAX + 1];
    struct limefile_record record;
    struct fuse_entry_param entry;
    off_t next = (off_t)ordinal + 2;
    limefile_index_get(index, ordinal, &record);
    limefile_name_of(&record, name);
    if (!list->plus || !wants_attributes(dir, ordinal)) {
        limefs_listing_add_name(list, name, limefs_shown_record(fs, &list->container, ordinal),
                                S_IFREG, next);
        return;
    }
    limefs_entry_record(fs, dir->view, &record, &entry);
    limefs_listing_add_plus(list, name, &entry, next);
    if (list->full)
        limefs_view_forget(fs, dir->view, 1);
}

/* Of "." and "..", in a container of a tree; a container mounted by itself is its own parent.
 */
static ino_t shown_dot(struct limefs *fs, const struct limefs_dir *dir,
                       const struct limefs_listing *list, uint64_t offset)
{
    if (!dir->node->parent)
        return 1;
    if (offset == 0)
        return limefs_shown_inode(fs, list->container.st_dev, list->container.st_ino);
    limefs_lock(&fs->lock); /* others move it */
    struct limefile_identity parent = dir->node->parent->stamp;
    limefs_unlock(&fs->lock);
    return limefs_shown_inode(fs, parent.dev, parent.ino);
}

/* Records that were looked up by name since the last reply. */
static void take_credit(struct limefs *fs, struct limefs_dir *dir)
{
    uint64_t asked = limefs_view_asked(fs, dir->view, 0);
    dir->plus_left += (asked - dir->asked) * PLUS_FOR_ONE;
    dir->asked = asked;
}

/* Where its faces are listed, too, the list is of the records that there were when it came to
 * them, so that each offset means the same for as long as it is read. */
static void list_container(struct limefs *fs, struct limefs_dir *dir,
                           struct limefs_listing *list, uint64_t offset)
{
    struct limefile_index *index = limefs_view_index(fs, dir->view);
    list->container = limefs_view_stat(fs, dir->view);
    take_credit(fs, dir);
    uint64_t there = limefile_index_count(index), count = dir->faces ? dir->records : there;
    for (; !list->full && offset < count + 2; offset++) {
        if (offset < 2)
            limefs_listing_add_name(list, offset ? ".." : ".", shown_dot(fs, dir, list, offset),
                                    S_IFDIR, (off_t)offset + 1);
        else if (offset - 1 <= there)
            list_record(fs, dir, index, list, offset - 1);
    }
    limefile_index_free(index);
    if (list->full || !fs->options.faces)
        return;
    if (!dir->faces)
        dir->records = count;
    limefs_dir_list_faces(fs, dir, list, offset);
}

bool limefs_dir_is_old(struct limefs *fs, struct limefs_dir *dir)
{
    limefs_lock(&dir->lock);
    bool old = dir->view && !limefs_view_is_unchanged(fs, dir->view);
    limefs_unlock(&dir->lock);
    return old;
}

void limefs_dir_renew(struct limefs *fs, struct limefs_dir *dir)
{
    struct limefs_view *view;
    if (limefs_view_current(fs, dir->node, &view) != 0)
        return; /* gone, or another's: the old list is as good as any */
    limefs_lock(&dir->lock);
    struct limefs_view *old = dir->view;
    dir->view = view;
    limefs_unlock(&dir->lock);
    limefs_view_unpin(fs, old);
}

ssize_t limefs_dir_read(struct limefs *fs, fuse_req_t req, struct limefs_dir *dir, char *buf,
                        size_t cap, off_t offset, bool plus)
{
    struct limefs_listing list = {.req = req, .buf = buf, .cap = cap, .plus = plus};
    if (offset < 0)
        return -EINVAL;
    int err = 0;
    limefs_lock(&dir->lock);
    if (offset == 0) { /* a new list, of what is there now */
        limefs_fields_release(dir->faces);
        dir->faces = NULL;
        dir->plus_left = 0;
        dir->asked = dir->view ? limefs_view_asked(fs, dir->view, 0) : 0;
    }
    if (dir->face)
        limefs_dir_list_face(fs, dir, &list, (uint64_t)offset);
    else if (dir->view)
        list_container(fs, dir, &list, (uint64_t)offset);
    else
        err = limefs_dir_list_folder(fs, dir, &list, offset);
    limefs_unlock(&dir->lock);
    return err ? err : (ssize_t)list.used;
}
