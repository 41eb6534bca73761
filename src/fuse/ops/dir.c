/* dir.c - lists directories: of the source tree, of a container, of an export */
#define _GNU_SOURCE
#include "dir.h"
#include "descriptor.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES_BYTES = 32768 }; /* size of one read from a source directory */

struct limefs_dir {
    struct limefs_handle handle; /* first: fs->dirs points to it */
    struct limefs_node *node;
    struct limefs_export *export; /* the export of the directory (acquired), or NULL */
    uint64_t ordinal;             /* of the directory in the export */

    struct limefs_lock lock;       /* guards the fields below */
    struct limefs_snapshot *snap;  /* pinned: the container's; NULL: not a container */
    struct limefs_fields *exports; /* fields whose exports are listed; NULL: not reached yet */
    uint64_t records;      /* if `exports` is set: number of records before the exports */
    uint64_t lookups;      /* limefs_snapshot_count_name_lookups() at the latest reply */
    uint64_t plus_left;    /* number of further records to list with attributes */
    unsigned lookups_left; /* number of names that the listing may still look up */
    int fd;                /* of a directory of the source tree; else -1 */
    uint64_t dev;          /* device of that directory */
    off_t offset;          /* of the entry at `next` */
    size_t next, filled;   /* in `entries`: the next one to list; end of those read */
    size_t prefetched;     /* in `entries`: end of those whose files are being read */
    _Alignas(struct dirent64) char entries[]; /* of a directory of the source tree */
};

/* A reply that is being filled. full: an entry did not fit. */
struct limefs_listing {
    fuse_req_t req;
    char *buf;
    size_t cap, used;
    bool full, plus;
    struct stat container; /* attributes of the container that is listed */
};

/* A listing shows that a file is a container only if the daemon looks the name up, for which it
 * reads the first bytes of the file. The daemon does this if programs have looked up names of
 * this directory after earlier listings, or names of any listed directory in recent_seconds. */
enum {
    LOOKUPS_MAX = 16384, /* in one listing; the results of more would expire before use */
    PREFETCHED_FILES = 32,
};

/* A lookup that takes disk_lookup_seconds has read the file from the disk. If so, the listing
 * starts to read the first bytes of the next PREFETCHED_FILES files. A lookup that takes
 * slow_lookup_seconds is the listing's last: the storage may have to fetch files from tape. */
static const double recent_seconds = 2, disk_lookup_seconds = 50e-6, slow_lookup_seconds = 0.1;

static int enter_export_dir(struct limefs *fs, struct limefs_dir *dir)
{
    struct limefile_export_entry entry;
    int err = limefs_export_acquire_entry(fs, dir->export, dir->ordinal, &entry);
    if (err || entry.is_dir)
        return err;
    limefs_export_release(fs, dir->export);
    return -ENOTDIR;
}

static int open_container_dir(struct limefs *fs, struct limefs_dir *dir)
{
    limefs_node_count_open(fs, dir->node);
    int err = limefs_snapshot_get_current(fs, dir->node, &dir->snap);
    return err == -ENOENT ? -ESTALE : err;
}

static int open_tree_dir(struct limefs *fs, struct limefs_dir *dir)
{
    int fd_path = limefs_tree_open_dir(fs, dir->node);
    if (fd_path < 0)
        return fd_path;
    dir->fd = limefile_reopen(fd_path, O_RDONLY | O_DIRECTORY);
    close(fd_path);
    if (dir->fd < 0)
        return dir->fd;
    limefs_lock(&fs->lock);
    dir->dev = dir->node->stamp.dev; /* limefs_tree_open_dir() has checked the stamp */
    limefs_unlock(&fs->lock);
    return 0;
}

int limefs_dir_open(struct limefs *fs, uint64_t id, struct limefs_dir **out)
{
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    if (!inode.export && (!inode.node || inode.node->kind == LIMEFS_PLAIN))
        return -ENOTDIR;
    bool is_source = !inode.export && inode.node->kind != LIMEFS_CONTAINER;
    struct limefs_dir *dir = calloc(1, sizeof *dir + (is_source ? ENTRIES_BYTES : 0));
    if (!dir)
        return -ENOMEM;
    dir->node = inode.node;
    dir->export = inode.export;
    dir->ordinal = inode.ordinal;
    dir->fd = -1;
    int err = inode.export                           ? enter_export_dir(fs, dir)
              : inode.node->kind == LIMEFS_CONTAINER ? open_container_dir(fs, dir)
                                                     : open_tree_dir(fs, dir);
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
    limefs_fields_release(dir->exports);
    if (dir->snap)
        limefs_snapshot_unpin(fs, dir->snap);
    if (dir->export)
        limefs_export_release(fs, dir->export);
    if (dir->fd >= 0)
        close(dir->fd);
    limefs_lock_destroy(&dir->lock);
    free(dir);
}

int limefs_dir_sync(struct limefs_dir *dir)
{
    if (dir->export)
        return 0;
    limefs_lock(&dir->lock);
    int fd = dir->snap ? dir->snap->fd : dir->fd;
    int err = fsync(fd) == 0 ? 0 : -errno;
    limefs_unlock(&dir->lock);
    return err;
}

void limefs_dirs_release(struct limefs *fs)
{
    while (fs->dirs)
        limefs_dir_close(fs, (struct limefs_dir *)fs->dirs);
}

static void add_dirent(struct limefs_listing *list, const char *name,
                       const struct fuse_entry_param *entry, off_t next)
{
    char *at = list->buf + list->used;
    size_t room = list->cap - list->used;
    size_t n = list->plus ? fuse_add_direntry_plus(list->req, at, room, name, entry, next)
                          : fuse_add_direntry(list->req, at, room, name, &entry->attr, next);
    list->full = n > room;
    if (!list->full)
        list->used += n;
}

/* Adds an entry without attributes, which takes no lookup. */
static void add_name(struct limefs_listing *list, const char *name, ino_t ino, mode_t type,
                     off_t next)
{
    struct fuse_entry_param entry = {.attr = {.st_ino = ino, .st_mode = type}};
    add_dirent(list, name, &entry, next);
}

/* ---- an export: "." and ".." are entries 0 and 1, file n is entry n + 2 ---- */

/* Adds "." or "..". In the top directory of an export, both have the same inode number. */
static void list_export_dot(struct limefs *fs, const struct limefs_dir *dir,
                            struct limefs_listing *list, uint64_t offset)
{
    struct limefile_export_entry entry;
    uint64_t ordinal = dir->ordinal;
    if (offset == 1 && limefs_export_get_entry(dir->export, dir->ordinal, &entry))
        ordinal = entry.parent;
    add_name(list, offset ? ".." : ".", limefs_export_visible_ino(fs, dir->export, ordinal),
             S_IFDIR, (off_t)offset + 1);
}

static void list_child(struct limefs *fs, struct limefs_dir *dir, struct limefs_listing *list,
                       uint64_t number, const struct limefile_export_entry *entry)
{
    struct limefs_export_entry listed_entry;
    struct fuse_entry_param param;
    if (!list->plus) {
        add_name(list, entry->name, limefs_export_visible_ino(fs, dir->export, number + 1),
                 entry->is_dir ? S_IFDIR : S_IFREG, (off_t)number + 3);
        return;
    }
    limefs_export_add_lookup(fs, dir->export, number + 1, entry, &listed_entry);
    limefs_entry_export(fs, &listed_entry, &param);
    add_dirent(list, entry->name, &param, (off_t)number + 3);
    if (list->full)
        limefs_export_forget(fs, dir->export, 1);
}

static void list_export(struct limefs *fs, struct limefs_dir *dir, struct limefs_listing *list,
                        uint64_t offset)
{
    const struct limefile_export *files = limefs_export_files(dir->export);
    struct limefile_export_entry entry;
    uint64_t count = limefile_export_entry_count(files);
    for (; !list->full && offset < count + 2; offset++) {
        if (offset < 2) {
            list_export_dot(fs, dir, list, offset);
            continue;
        }
        limefile_export_entry(files, offset - 2, &entry);
        if (entry.parent > dir->ordinal)
            break; /* skip the rest, perhaps 2^30 slices: entries are sorted by parent */
        if (entry.parent == dir->ordinal)
            list_child(fs, dir, list, offset - 2, &entry);
    }
}

/* ---- the exports of all records ---- */

static void list_all_exports(struct limefs *fs, struct limefs_dir *dir,
                             struct limefs_listing *list, uint64_t offset)
{
    char name[LIMEFILE_NAME_MAX + 1];
    struct stat st;
    uint64_t first = dir->records + 2, next = offset - first;
    if (!dir->exports && limefs_fields_get(fs, dir->snap, &dir->exports) != 0)
        return; /* the metadata cannot be read, so no export exists */
    while (!list->full &&
           limefs_export_next_name(fs, dir->snap, dir->exports, &next, name, &st))
        add_name(list, name, st.st_ino, st.st_mode, (off_t)(first + next));
}

/* ---- a directory of the source tree ---- */

bool limefs_dir_is_source(const struct limefs_dir *dir)
{
    return dir->fd >= 0;
}

/* Called when a listing starts. Returns true if the listing should look names up. */
static bool wants_lookups(struct limefs *fs, struct limefs_node *directory)
{
    if (fs->options.entry_timeout <= 0 || fs->options.attr_timeout <= 0)
        return false; /* the kernel would look the names up again */
    limefs_lock(&fs->lock);
    bool use_lookups =
        directory->dir.prefetch_lists > 0 ||
        (fs->last_lookup > 0 && limefs_clock_seconds() - fs->last_lookup < recent_seconds);
    if (directory->dir.prefetch_lists > 0)
        directory->dir.prefetch_lists--;
    directory->dir.listed = true;
    directory->dir.lookups = 0;
    limefs_unlock(&fs->lock);
    return use_lookups;
}

/* Returns 0 (unknown) for a regular file: only its content shows whether it is a container. */
static mode_t entry_type(const struct dirent64 *entry)
{
    return entry->d_type == DT_REG ? 0 : (mode_t)entry->d_type << 12;
}

static const struct dirent64 *entry_at(const struct limefs_dir *dir, size_t position)
{
    return (const struct dirent64 *)(dir->entries + position);
}

/* Reads more entries if all were listed. Returns 1, 0 at the directory's end, or -errno. */
static int read_entries(struct limefs_dir *dir)
{
    if (dir->next < dir->filled)
        return 1;
    ssize_t n = getdents64(dir->fd, dir->entries, ENTRIES_BYTES);
    dir->next = dir->prefetched = 0;
    dir->filled = n > 0 ? (size_t)n : 0;
    return n < 0 ? -errno : n > 0;
}

/* Starts to read the first bytes of the next regular files, with the thread's rights. */
static void prefetch_files(struct limefs_dir *dir)
{
    size_t at = dir->next;
    if (at < dir->prefetched)
        return;
    for (int i = 0; i < PREFETCHED_FILES && at < dir->filled; i++) {
        const struct dirent64 *entry = entry_at(dir, at);
        int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC;
        int fd = entry->d_type == DT_REG ? openat(dir->fd, entry->d_name, flags) : -1;
        if (fd >= 0) {
            posix_fadvise(fd, 0, LIMEFILE_HEADER_BYTES, POSIX_FADV_WILLNEED);
            close(fd);
        }
        at += entry->d_reclen;
    }
    dir->prefetched = at;
}

static ino_t mount_ino(const struct limefs *fs, const struct limefs_dir *dir, uint64_t ino)
{
    return limefs_visible_ino(fs, dir->dev, ino);
}

/* If the next entry may be a container, looks its name up with the thread's rights and adds it.
 * Returns false if it has not added the entry, as for a file that this mount writes to. */
static bool list_with_lookup(struct limefs *fs, struct limefs_dir *dir,
                             struct limefs_listing *list)
{
    struct limefs_tree_entry found;
    struct fuse_entry_param entry;
    const struct dirent64 *at = entry_at(dir, dir->next);
    bool is_regular =
        at->d_type == DT_REG || (at->d_type == DT_UNKNOWN && strcmp(at->d_name, ".") != 0 &&
                                 strcmp(at->d_name, "..") != 0);
    if (!list->plus || !is_regular || dir->lookups_left == 0)
        return false;
    dir->lookups_left--;
    limefs_lock(&fs->lock);
    const struct limefs_node *node = limefs_node_find_child(fs, dir->node, at->d_name);
    bool is_known = node,
         is_written = node && (node->container.made_by_mkdir || node->plain.writers);
    enum limefs_node_kind old_kind = node ? node->kind : LIMEFS_PLAIN;
    limefs_unlock(&fs->lock);
    double begin = limefs_clock_seconds();
    if (is_written || limefs_tree_lookup(fs, dir->node, at->d_name, &found) != 0)
        return false;
    double seconds = limefs_clock_seconds() - begin;
    if (seconds > slow_lookup_seconds)
        dir->lookups_left = 0;
    else if (seconds > disk_lookup_seconds)
        prefetch_files(dir);
    bool is_new_kind = is_known && found.kind != old_kind; /* the kernel knows the old kind */
    if (found.kind != LIMEFS_CONTAINER && !is_new_kind) {
        add_name(list, at->d_name, mount_ino(fs, dir, at->d_ino), found.st.st_mode & S_IFMT,
                 at->d_off);
        return true;
    }
    if (limefs_entry_node(fs, dir->node, at->d_name, &found, &entry) != 0)
        return false;
    add_dirent(list, at->d_name, &entry, at->d_off);
    if (list->full)
        limefs_forget(fs, entry.ino, 1);
    return true;
}

static int list_source_dir(struct limefs *fs, struct limefs_dir *dir,
                           struct limefs_listing *list, off_t offset)
{
    int got;
    if (offset != dir->offset) {
        dir->next = dir->filled = dir->prefetched = 0;
        if (lseek(dir->fd, offset, SEEK_SET) < 0)
            return -errno;
        dir->offset = offset;
    }
    while ((got = read_entries(dir)) == 1) {
        const struct dirent64 *entry = entry_at(dir, dir->next);
        if (!list_with_lookup(fs, dir, list))
            add_name(list, entry->d_name, mount_ino(fs, dir, entry->d_ino), entry_type(entry),
                     entry->d_off);
        if (list->full)
            return 0;
        dir->offset = entry->d_off;
        dir->next += entry->d_reclen;
    }
    return list->used == 0 ? got : 0;
}

/* ---- a container: "." and ".." are entries 0 and 1, record n is entry n + 1 ---- */

enum {
    PLUS_ALWAYS = 50000,   /* first records: always listed with attributes */
    PLUS_PER_LOOKUP = 256, /* further records with attributes, for each lookup of a record */
    PLUS_SKIP_EVERY = 128, /* one in 128 has none: a lookup of it shows that more are needed */
};

/* Returns true if a record is listed with its attributes. The kernel's READDIRPLUS_AUTO decides
 * similarly, but not well for a program that reads several replies before any attributes. */
static bool wants_attributes(struct limefs_dir *dir, uint64_t ordinal)
{
    if (ordinal <= PLUS_ALWAYS)
        return true;
    if (dir->plus_left == 0 || ordinal % PLUS_SKIP_EVERY == 0)
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
    limefile_name_format(&record, name);
    if (!list->plus || !wants_attributes(dir, ordinal)) {
        add_name(list, name, limefs_visible_record_ino(fs, &list->container, ordinal), S_IFREG,
                 next);
        return;
    }
    limefs_entry_record(fs, dir->snap, &record, &entry);
    add_dirent(list, name, &entry, next);
    if (list->full)
        limefs_snapshot_forget(fs, dir->snap, 1);
}

/* Returns the inode number of "." or "..". A container that is mounted is its own parent. */
static ino_t container_dot_ino(struct limefs *fs, const struct limefs_dir *dir,
                               const struct limefs_listing *list, uint64_t offset)
{
    if (!dir->node->parent)
        return 1;
    if (offset == 0)
        return limefs_visible_ino(fs, list->container.st_dev, list->container.st_ino);
    limefs_lock(&fs->lock); /* another thread may move the node */
    struct limefile_identity parent = dir->node->parent->stamp;
    limefs_unlock(&fs->lock);
    return limefs_visible_ino(fs, parent.dev, parent.ino);
}

/* Allows more records with attributes for each lookup of a record since the latest reply. */
static void add_plus_budget(struct limefs *fs, struct limefs_dir *dir)
{
    uint64_t lookups = limefs_snapshot_count_name_lookups(fs, dir->snap, 0);
    dir->plus_left += (lookups - dir->lookups) * PLUS_PER_LOOKUP;
    dir->lookups = lookups;
}

/* Once the listing has reached the exports, its number of records is fixed, because an offset
 * must mean the same entry until the listing ends. */
static void list_container(struct limefs *fs, struct limefs_dir *dir,
                           struct limefs_listing *list, uint64_t offset)
{
    struct limefile_index *index = limefs_snapshot_index(fs, dir->snap);
    list->container = limefs_snapshot_stat(fs, dir->snap);
    add_plus_budget(fs, dir);
    uint64_t total = limefile_index_count(index), count = dir->exports ? dir->records : total;
    for (; !list->full && offset < count + 2; offset++) {
        if (offset < 2)
            add_name(list, offset ? ".." : ".", container_dot_ino(fs, dir, list, offset),
                     S_IFDIR, (off_t)offset + 1);
        else if (offset - 1 <= total)
            list_record(fs, dir, index, list, offset - 1);
    }
    limefile_index_free(index);
    if (list->full || !fs->options.list_exports)
        return;
    if (!dir->exports)
        dir->records = count;
    list_all_exports(fs, dir, list, offset);
}

bool limefs_dir_is_stale(struct limefs *fs, struct limefs_dir *dir)
{
    limefs_lock(&dir->lock);
    bool is_stale = dir->snap && !limefs_snapshot_is_unchanged(fs, dir->snap);
    limefs_unlock(&dir->lock);
    return is_stale;
}

void limefs_dir_renew(struct limefs *fs, struct limefs_dir *dir)
{
    struct limefs_snapshot *snap;
    if (limefs_snapshot_get_current(fs, dir->node, &snap) != 0)
        return; /* the container was removed or is not readable: keep the old snapshot */
    limefs_lock(&dir->lock);
    struct limefs_snapshot *old_snap = dir->snap;
    dir->snap = snap;
    limefs_unlock(&dir->lock);
    limefs_snapshot_unpin(fs, old_snap);
}

ssize_t limefs_dir_read(struct limefs *fs, fuse_req_t req, struct limefs_dir *dir, char *buf,
                        size_t cap, off_t offset, bool plus)
{
    struct limefs_listing list = {.req = req, .buf = buf, .cap = cap, .plus = plus};
    if (offset < 0)
        return -EINVAL;
    int err = 0;
    limefs_lock(&dir->lock);
    if (offset == 0) { /* a new listing starts */
        limefs_fields_release(dir->exports);
        dir->exports = NULL;
        dir->plus_left = 0;
        dir->lookups_left =
            dir->fd >= 0 && plus && wants_lookups(fs, dir->node) ? LOOKUPS_MAX : 0;
        dir->lookups = dir->snap ? limefs_snapshot_count_name_lookups(fs, dir->snap, 0) : 0;
    }
    if (dir->export)
        list_export(fs, dir, &list, (uint64_t)offset);
    else if (dir->snap)
        list_container(fs, dir, &list, (uint64_t)offset);
    else
        err = list_source_dir(fs, dir, &list, offset);
    limefs_unlock(&dir->lock);
    return err ? err : (ssize_t)list.used;
}
