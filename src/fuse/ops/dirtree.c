/* dirtree.c - directories of the tree listed, and their names looked up meanwhile */
#define _GNU_SOURCE
#include "sniff.h"
#include "listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/*
 * The list of a folder says what a name is only if somebody looks, 144 bytes of each file.
 * Whether its reader wants to know, shows after he has read the list, or in the folders before.
 */
enum {
    LOOKS = 4,           /* names of a folder that are looked up, or entered: they are wanted */
    LISTS_AHEAD = 8,     /* times that it is listed with them, before that must show again */
    NAMES_AHEAD = 16384, /* of one list; what is known of more is forgotten before it is used */
};

/* Seconds for which it is so in other folders, too. */
static const double looks_seconds = 2;

bool limefs_dir_is_folder(const struct limefs_dir *dir)
{
    return dir->stream != NULL;
}

static void count_look(struct limefs *fs, struct limefs_node *directory)
{
    if (directory->listed && ++directory->looks >= LOOKS) {
        directory->ahead = LISTS_AHEAD;
        fs->looked = limefs_seconds();
    }
}

void limefs_dir_looked_up(struct limefs *fs, struct limefs_node *directory)
{
    limefs_lock(&fs->lock);
    count_look(fs, directory);
    limefs_unlock(&fs->lock);
}

/* Others move it, and may remove where it was. */
void limefs_dir_entered(struct limefs *fs, const struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    if (node->parent)
        count_look(fs, node->parent);
    limefs_unlock(&fs->lock);
}

/* A new list. */
static bool wants_names(struct limefs *fs, struct limefs_node *directory)
{
    if (fs->options.entry_timeout <= 0 || fs->options.attr_timeout <= 0)
        return false; /* they would be looked up all the same */
    limefs_lock(&fs->lock);
    bool wanted = directory->ahead > 0 ||
                  (fs->looked > 0 && limefs_seconds() - fs->looked < looks_seconds);
    if (directory->ahead > 0)
        directory->ahead--;
    directory->listed = true;
    directory->looks = 0;
    limefs_unlock(&fs->lock);
    return wanted;
}

void limefs_dir_look_ahead(struct limefs *fs, struct limefs_dir *dir, off_t offset)
{
    struct stat st;
    limefs_lock(&dir->lock);
    if (offset == 0)
        dir->ahead_left = wants_names(fs, dir->node) ? NAMES_AHEAD : 0;
    if (dir->ahead_left > 0 && !dir->ahead)
        dir->ahead = malloc(sizeof *dir->ahead);
    dir->may_search = dir->ahead_left > 0 && dir->ahead &&
                      fstatat(dirfd(dir->stream), ".", &st, AT_SYMLINK_NOFOLLOW) == 0;
    limefs_unlock(&dir->lock);
}

/* ---- names alone ---- */

/* The type of a plain file stays open: only a look inside tells a container. */
static mode_t type_of(const struct dirent *entry)
{
    return entry->d_type == DT_REG ? 0 : (mode_t)entry->d_type << 12;
}

/* The next entry, or NULL; it stays the next one until dir->entry is NULL. */
static struct dirent *next_entry(struct limefs_dir *dir)
{
    if (!dir->entry) {
        errno = 0;
        dir->entry = readdir(dir->stream);
    }
    return dir->entry;
}

static ino_t shown(const struct limefs *fs, const struct limefs_dir *dir, uint64_t ino)
{
    return limefs_shown_inode(fs, dir->dev, ino);
}

static int list_names(struct limefs *fs, struct limefs_dir *dir, struct limefs_listing *list)
{
    while (next_entry(dir)) {
        limefs_listing_add_name(list, dir->entry->d_name, shown(fs, dir, dir->entry->d_ino),
                                type_of(dir->entry), dir->entry->d_off);
        if (list->full)
            return 0;
        dir->offset = dir->entry->d_off;
        dir->entry = NULL;
    }
    return errno && list->used == 0 ? -errno : 0;
}

/* ---- names that are looked up ---- */

static void put_name(struct limefs_sniff_name *name, const struct dirent *entry)
{
    strcpy(name->name, entry->d_name);
    name->ino = entry->d_ino;
    name->type = type_of(entry);
    name->next = entry->d_off;
    name->wanted = entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN;
    name->wanted =
        name->wanted && strcmp(name->name, ".") != 0 && strcmp(name->name, "..") != 0;
    name->known = name->sure = name->seen = false;
}

/* As many as there is room for in the reply, and before one that is longer than a name may be
 * (a file system below has it all the same). False at the end of the folder. */
static bool take_names(struct limefs_dir *dir, const struct limefs_listing *list)
{
    size_t used = list->used;
    const struct dirent *entry;
    dir->ahead->count = 0;
    while (dir->ahead->count < LIMEFS_SNIFF_MOST && (entry = next_entry(dir))) {
        if (strlen(entry->d_name) > NAME_MAX)
            return true;
        used += fuse_add_direntry_plus(list->req, NULL, 0, entry->d_name, NULL, 0);
        if (used > list->cap)
            return true;
        put_name(&dir->ahead->names[dir->ahead->count++], entry);
        dir->entry = NULL;
    }
    return dir->ahead->count == LIMEFS_SNIFF_MOST;
}

/* What is known already need not be looked into; what this mount writes is left to look-ups. */
static void recall(struct limefs *fs, struct limefs_dir *dir)
{
    limefs_lock(&fs->lock);
    for (size_t i = 0; i < dir->ahead->count; i++) {
        struct limefs_sniff_name *name = &dir->ahead->names[i];
        const struct limefs_node *node =
            name->wanted ? limefs_node_find(fs, dir->node, name->name) : NULL;
        if (!node)
            continue;
        name->wanted = !node->fresh && !node->writers;
        name->known = true;
        name->was = node->kind;
        name->sure = node->sure;
        name->stamp = node->stamp;
    }
    limefs_unlock(&fs->lock);
}

static void list_seen(struct limefs *fs, struct limefs_dir *dir, struct limefs_listing *list,
                      const struct limefs_sniff_name *name)
{
    struct fuse_entry_param entry;
    enum limefs_kind kind = name->found.kind;
    bool renewed = name->known && kind != name->was; /* the kernel does not know yet */
    if (name->seen && (kind == LIMEFS_CONTAINER || renewed) &&
        limefs_entry_node(fs, dir->node, name->name, &name->found, &entry) == 0) {
        limefs_listing_add_plus(list, name->name, &entry, name->next);
        if (list->full)
            limefs_forget(fs, entry.ino, 1);
        return;
    }
    bool plain = name->seen && S_ISREG(name->found.st.st_mode) && kind == LIMEFS_OTHER;
    limefs_listing_add_name(list, name->name, shown(fs, dir, name->ino),
                            plain ? S_IFREG : name->type, name->next);
}

/* The names that were taken; false if one did not fit after all. */
static bool list_taken(struct limefs *fs, struct limefs_dir *dir, struct limefs_listing *list)
{
    for (size_t i = 0; i < dir->ahead->count; i++) {
        list_seen(fs, dir, list, &dir->ahead->names[i]);
        if (list->full) {
            dir->offset = -1; /* the stream stands elsewhere */
            dir->entry = NULL;
            return false;
        }
        dir->offset = dir->ahead->names[i].next;
    }
    return true;
}

static int list_ahead(struct limefs *fs, struct limefs_dir *dir, struct limefs_listing *list)
{
    for (bool more = true; more && !list->full;) {
        more = take_names(dir, list);
        if (dir->ahead->count == 0) /* the end, or what does not fit, or is no such name */
            return list_names(fs, dir, list);
        recall(fs, dir);
        size_t count = dir->ahead->count;
        bool all = limefs_sniff_look(fs, dirfd(dir->stream), dir->ahead);
        dir->ahead_left =
            all && dir->ahead_left > count ? dir->ahead_left - (unsigned)count : 0;
        if (!list_taken(fs, dir, list) || dir->ahead_left == 0)
            break;
    }
    return 0;
}

int limefs_dir_list_folder(struct limefs *fs, struct limefs_dir *dir,
                           struct limefs_listing *list, off_t offset)
{
    if (offset != dir->offset) {
        seekdir(dir->stream, offset);
        dir->entry = NULL;
        dir->offset = offset;
    }
    bool ahead = list->plus && dir->may_search && dir->ahead_left > 0;
    int err = ahead ? list_ahead(fs, dir, list) : list_names(fs, dir, list);
    free(dir->ahead); /* many folders may be open */
    dir->ahead = NULL;
    dir->may_search = false;
    return err;
}
