/* reply.c - attributes, entries and errors for the kernel */
#include "reply.h"
#include "exports.h"
#include "file.h"
#include "kernel_notify.h"
#include "tree.h"

#include <errno.h>
#include <linux/fuse.h>
#include <string.h>
#include <unistd.h>

int limefs_errno(int code)
{
    if (code >= 0)
        return 0;
    if (code == -EINTR) /* after EINTR programs would retry, but this error is permanent */
        return EIO;
    if (code > -4096)
        return -code;
    switch (code) {
    case LIMEFILE_E_NO_RECORD:
        return ENOENT;
    case LIMEFILE_E_NOT_FILE:
    case LIMEFILE_E_SHRUNK:
        return ESTALE;
    default:
        return EIO;
    }
}

static void set_stat_size(struct stat *st, uint64_t bytes)
{
    st->st_size = (off_t)bytes;
    st->st_blocks = (blkcnt_t)(bytes / 512 + (bytes % 512 != 0));
    st->st_blksize = 128 * 1024;
}

/* Changes the attributes *st of the container to those of the record. */
static void fill_record_stat(struct limefs *fs, struct limefs_snapshot *snap,
                             const struct limefile_record *record, struct stat *st)
{
    limefs_snapshot_note_mtime(fs, snap, &st->st_mtim);
    st->st_ino = limefs_visible_record_ino(fs, st, record->ordinal);
    st->st_mode = S_IFREG | (st->st_mode & 0666);
    st->st_nlink = 1;
    st->st_rdev = 0;
    set_stat_size(st, limefs_record_bytes(fs, snap, record));
}

void limefs_attr_node(const struct limefs *fs, const struct limefs_node *node,
                      const struct stat *st, struct stat *out)
{
    *out = *st;
    out->st_ino = limefs_visible_ino(fs, st->st_dev, st->st_ino);
    if (node->kind == LIMEFS_DIRECTORY)
        out->st_nlink = 1; /* "unknown": the real count does not include containers */
    if (node->kind != LIMEFS_CONTAINER)
        return;
    /* Read permission for the container implies search permission. */
    out->st_mode = S_IFDIR | (st->st_mode & 0666) | (st->st_mode & 0444) >> 2;
    out->st_nlink = 2;
    if (!node->parent)
        out->st_ino = 1;
    set_stat_size(out, 0);
}

static void fill_entry(const struct limefs *fs, uint64_t id, uint64_t generation,
                       struct fuse_entry_param *entry)
{
    entry->ino = id;
    entry->generation = generation;
    entry->attr_timeout = fs->options.attr_timeout;
    entry->entry_timeout = fs->options.entry_timeout;
}

/* Estimates the seconds that a program needs to list all records and to stat each. */
static double listing_seconds(struct limefs *fs, struct limefs_snapshot *snap)
{
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    double seconds = (double)limefile_index_count(index) / 50000;
    limefile_index_free(index);
    return seconds;
}

/* Makes entries stay valid while a long list is read, so that ls looks each up only once. */
static double extend_timeout(double listing, double timeout)
{
    return timeout > 0 && timeout < listing ? listing : timeout;
}

void limefs_entry_record(struct limefs *fs, struct limefs_snapshot *snap,
                         const struct limefile_record *record, struct fuse_entry_param *entry)
{
    memset(entry, 0, sizeof *entry);
    entry->attr = limefs_snapshot_stat(fs, snap);
    fill_record_stat(fs, snap, record, &entry->attr);
    limefs_snapshot_add_lookups(fs, snap, 1);
    fill_entry(fs, limefs_snapshot_record_id(fs, snap, record->ordinal),
               limefs_snapshot_generation(fs, snap, record->ordinal), entry);
    double listing = listing_seconds(fs, snap);
    entry->attr_timeout = extend_timeout(listing, entry->attr_timeout);
    entry->entry_timeout = extend_timeout(listing, entry->entry_timeout);
    if (fs->options.rw && entry->entry_timeout <= fs->options.entry_timeout)
        entry->entry_timeout = 0; /* a type names a record only until another has it, too */
}

/* In a writable mount, the entry expires at once: the file's id changes with the record. */
void limefs_entry_export(const struct limefs *fs, const struct limefs_export_entry *export,
                         struct fuse_entry_param *entry)
{
    memset(entry, 0, sizeof *entry);
    entry->attr = export->st;
    fill_entry(fs, export->id, export->generation, entry);
    if (fs->options.rw)
        entry->entry_timeout = 0;
}

static int fill_export(struct limefs *fs, int err, const struct limefs_export_entry *export,
                       struct fuse_entry_param *entry)
{
    if (!err)
        limefs_entry_export(fs, export, entry);
    return err;
}

static int lookup_in_container(struct limefs *fs, struct limefs_node *container,
                               const char *name, struct fuse_entry_param *entry)
{
    struct limefs_snapshot *snap;
    struct limefile_record record;
    struct limefs_export_entry file;
    int err = limefs_snapshot_find_record(fs, container, name, &snap, &record);
    if (err == LIMEFILE_E_NO_RECORD)
        return fill_export(fs, limefs_export_lookup(fs, container, name, &file), &file, entry);
    if (err)
        return err;
    limefs_entry_record(fs, snap, &record, entry);
    limefs_snapshot_count_name_lookups(fs, snap, 1);
    limefs_snapshot_unpin(fs, snap);
    return 0;
}

int limefs_entry_node(struct limefs *fs, struct limefs_node *directory, const char *name,
                      const struct limefs_tree_entry *found, struct fuse_entry_param *entry)
{
    struct limefs_node *node = limefs_node_lookup_child(fs, directory, name, found);
    if (!node)
        return -ENOMEM;
    memset(entry, 0, sizeof *entry);
    limefs_attr_node(fs, node, &found->st, &entry->attr);
    fill_entry(fs, limefs_inode_node_id(node), node->id, entry);
    return 0;
}

static int lookup_in_directory(struct limefs *fs, struct limefs_node *directory,
                               const char *name, struct fuse_entry_param *entry)
{
    struct limefs_tree_entry found;
    limefs_node_count_lookup(fs, directory);
    int err = limefs_tree_lookup(fs, directory, name, &found);
    if (err == -ENOENT)
        limefs_snapshot_note_removal(fs, directory, name);
    return err ? err : limefs_entry_node(fs, directory, name, &found, entry);
}

int limefs_entry_created(struct limefs *fs, struct limefs_node *directory, const char *name,
                         const struct stat *st, struct fuse_entry_param *entry)
{
    struct limefile_identity stamp = limefile_identify(st);
    struct limefs_tree_entry found = {.st = *st, .kind = LIMEFS_PLAIN};
    limefs_node_forget_file(fs, &stamp);
    return limefs_entry_node(fs, directory, name, &found, entry);
}

int limefs_entry_lookup(struct limefs *fs, uint64_t parent, const char *name,
                        struct fuse_entry_param *entry)
{
    struct limefs_export_entry file;
    struct limefs_inode inode = limefs_inode_find_current(fs, parent);
    if (inode.export)
        return fill_export(
            fs, limefs_export_lookup_child(fs, inode.export, inode.ordinal, name, &file), &file,
            entry);
    if (!inode.node || inode.node->kind == LIMEFS_PLAIN)
        return -ENOTDIR;
    return inode.node->kind == LIMEFS_CONTAINER
               ? lookup_in_container(fs, inode.node, name, entry)
               : lookup_in_directory(fs, inode.node, name, entry);
}

void limefs_forget(struct limefs *fs, uint64_t id, uint64_t n)
{
    struct limefs_inode inode = limefs_inode_find(fs, id);
    if (inode.node)
        limefs_node_forget(fs, inode.node, n);
    if (inode.snap)
        limefs_snapshot_forget(fs, inode.snap, n);
    if (inode.export)
        limefs_export_forget(fs, inode.export, n);
}

static int get_record_attr(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                           struct stat *out)
{
    struct limefile_record record;
    int err = limefs_snapshot_pin(fs, snap);
    if (err)
        return err;
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    err = limefile_index_get(index, ordinal, &record);
    if (!err)
        err = limefs_snapshot_check_record(fs, snap, &record, NULL);
    if (!err) { /* if the mtime is new, as after an append, the kernel drops its cached pages */
        *out = limefs_snapshot_stat_now(fs, snap);
        fill_record_stat(fs, snap, &record, out);
    }
    limefile_index_free(index);
    limefs_snapshot_unpin(fs, snap);
    return err;
}

/* Gets the attributes of an open file even if its name was removed or leads to another file. */
static int stat_node(struct limefs *fs, struct limefs_node *node, struct stat *st)
{
    int fd = node->kind == LIMEFS_PLAIN ? limefs_file_dup(fs, node) : -ENOENT;
    if (fd < 0) {
        int err = limefs_tree_stat(fs, node, st);
        if (!err && !limefs_node_is_current(fs, node, st))
            err = -ESTALE; /* makes the kernel look the name up again */
        return err;
    }
    int err = fstat(fd, st) == 0 ? 0 : -errno;
    if (!err && fs->options.rw) {
        limefs_notify_growth(fs, node, fd, st);
        limefs_notify_change(fs, node, st);
    }
    close(fd);
    return err;
}

static int get_node_attr(struct limefs *fs, struct limefs_node *node, struct stat *out)
{
    struct stat st;
    int err = stat_node(fs, node, &st);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    if (node->kind == LIMEFS_CONTAINER)
        limefs_node_note_attributes(fs, node, &st);
    limefs_attr_node(fs, node, &st, out);
    return 0;
}

int limefs_attr_get(struct limefs *fs, uint64_t id, struct stat *out)
{
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    return inode.node     ? get_node_attr(fs, inode.node, out)
           : inode.snap   ? get_record_attr(fs, inode.snap, inode.ordinal, out)
           : inode.export ? limefs_export_getattr(fs, inode.export, inode.ordinal, out)
                          : -ESTALE;
}
