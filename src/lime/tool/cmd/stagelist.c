/* stagelist.c - the files that lime stage copies, each with its target */
#define _GNU_SOURCE
#include "stagelist.h"
#include "array.h"
#include "files.h"
#include "mounted_container.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool out_of_memory(void)
{
    message_code("stage", "list", -ENOMEM);
    return false;
}

/* Takes ownership of both names. Returns false, after a message, if memory is exhausted. */
static bool add_stage_item(struct stagelist *list, char *source, char *target,
                           const struct stat *st)
{
    if (!limefile_reserve(&list->items, &list->capacity, list->count + 1,
                          sizeof *list->items)) {
        free(source);
        free(target);
        return out_of_memory();
    }
    uint64_t size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    list->items[list->count++] = (struct stage_item){.source = source,
                                                     .target = target,
                                                     .size = size,
                                                     .device = st->st_dev,
                                                     .inode = st->st_ino};
    list->bytes += size;
    return source && target ? true : out_of_memory();
}

/* Finds the last component of a path: "b" of "a/b/", "." of ".". */
static void split_last_name(const char *path, const char **name, int *length)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *name = path + begin;
    *length = (int)(end - begin);
}

/* Returns false for "..", "." and "/" (length 0), because DIR/.. is outside of DIR, the target.
 * Files of a source with such a name are copied into DIR itself, as by GNU cp. */
static bool is_usable_name(const char *name, int length)
{
    return length > 0 && strncmp("..", name, (size_t)length) != 0;
}

static char *trim_slashes(const char *dir)
{
    size_t end = strlen(dir);
    while (end > 1 && dir[end - 1] == '/')
        end--;
    return strndup(dir, end);
}

/* Returns DIR/NAME for the last component of `path`, or NULL. The caller frees the result. */
static char *target_path(const char *dir, const char *path)
{
    const char *name;
    char *out;
    int length;
    split_last_name(path, &name, &length);
    if (!is_usable_name(name, length))
        return trim_slashes(dir);
    bool slash = dir[0] && dir[strlen(dir) - 1] == '/';
    return asprintf(&out, "%s%s%.*s", dir, slash ? "" : "/", length, name) < 0 ? NULL : out;
}

/* Takes ownership of target, as add_stage_item() does. */
static bool add_file(struct stagelist *list, const char *source, char *target)
{
    struct stat st;
    /* A source that is missing or not a regular file is reported when it is staged. */
    if (stat(source, &st) != 0)
        st = (struct stat){0};
    return add_stage_item(list, strdup(source), target, &st);
}

static void report_not_copied(struct stagelist *list, const char *path, const char *why)
{
    message(path, "not copied: %s", why);
    list->incomplete = true;
}

/* Reports a failure. Staging the files below the directory then fails, too. */
static void make_directory(struct stagelist *list, const char *path, const struct stat *like)
{
    struct stat st;
    char why[128];
    if (mkdir(path, (like->st_mode & 0777) | 0700) == 0)
        return;
    int err = errno;
    if (err == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return;
    snprintf(why, sizeof why, "mkdir: %s", limefile_strerror(-err));
    report_not_copied(list, path, why);
}

/* Adds the file that a mount shows as the directory `path`. `target` as in add_file(); NULL:
 * the file's own name, in the directory `dir`. */
static bool add_mounted(struct stagelist *list, const char *path, char *target, const char *dir)
{
    char *file = mounted_file(path);
    if (!file) {
        report_not_copied(list, path,
                          "a container in a mount; stage the file that the mount shows");
        free(target);
        return true;
    }
    bool good = add_file(list, file, target ? target : target_path(dir, file));
    free(file);
    return good;
}

struct tree {
    struct stagelist *list;
    const char *top; /* the target of the tree */
    size_t skip;     /* the length of the source's name, without trailing slashes */
};

/* Returns true for a regular file, a link to a regular file, and a dangling link. A dangling
 * link is reported when it is staged; this function reports links to anything else. */
static bool is_file_entry(struct stagelist *list, const struct walk_entry *entry)
{
    struct stat st;
    if (entry->kind != WALK_LINK || stat(entry->path, &st) != 0)
        return entry->kind == WALK_FILE || entry->kind == WALK_LINK;
    if (!S_ISREG(st.st_mode))
        report_not_copied(list, entry->path,
                          S_ISDIR(st.st_mode) ? "a link to a directory" : "not a regular file");
    return S_ISREG(st.st_mode);
}

static bool add_tree_entry(void *context, const struct walk_entry *entry)
{
    const struct tree *tree = context;
    char *target;
    if (entry->kind == WALK_TEMPORARY)
        return true;
    if (asprintf(&target, "%s%s", tree->top, entry->path + tree->skip) < 0)
        return out_of_memory();
    if (is_file_entry(tree->list, entry)) {
        if (!add_file(tree->list, entry->path, target))
            return false;
        tree->list->items[tree->list->count - 1].is_other = file_is_other(entry->path, true);
        return true;
    }
    if (entry->kind == WALK_OPAQUE)
        return add_mounted(tree->list, entry->path, target, NULL);
    if (entry->kind == WALK_DIRECTORY)
        make_directory(tree->list, target, entry->st);
    else if (entry->kind == WALK_ERROR)
        report_not_copied(tree->list, entry->path, strerror(entry->error));
    else if (entry->kind == WALK_OTHER)
        report_not_copied(tree->list, entry->path, "not a regular file");
    free(target);
    return true;
}

/* Makes the directories of a tree and adds its files. Cuts trailing slashes from `source`. */
static bool add_tree(struct stagelist *list, char *source, const char *dir)
{
    char *top = target_path(dir, source);
    size_t skip = strlen(source);
    while (skip > 0 && source[skip - 1] == '/')
        skip--;
    source[skip ? skip : 1] = '\0';
    struct tree tree = {list, top, skip};
    bool good =
        top ? walk_tree(source, mounted_is_container, add_tree_entry, &tree) : out_of_memory();
    free(top);
    return good;
}

static char *copy_dirname(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

/* Identifies a target, however the path of its directory is spelled. */
struct target_key {
    const struct stage_item *item;
    const char *name; /* the last component of the target's path */
    dev_t device;     /* of the target's directory; so is inode */
    ino_t inode;      /* 0: stat() has failed; staging will report the reason */
};

static int compare_targets(const void *a, const void *b)
{
    const struct target_key *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return strcmp(x->inode ? x->name : x->item->target, y->inode ? y->name : y->item->target);
}

static bool fill_target_key(struct target_key *key, const struct stage_item *item)
{
    struct stat st;
    const char *slash = strrchr(item->target, '/');
    char *dir = copy_dirname(item->target);
    *key = (struct target_key){.item = item, .name = slash ? slash + 1 : item->target};
    if (!dir)
        return out_of_memory();
    if (stat(dir, &st) == 0) {
        key->device = st.st_dev;
        key->inode = st.st_ino;
    }
    free(dir);
    return true;
}

/* Returns false, after a message, if two sources have the same target: with --force, the second
 * copy would replace the first, but both would count as staged. */
static bool targets_are_distinct(const struct stagelist *list)
{
    struct target_key *keys = malloc((list->count + 1) * sizeof *keys);
    bool differ = keys ? true : out_of_memory();
    for (size_t i = 0; differ && i < list->count; i++)
        differ = fill_target_key(&keys[i], &list->items[i]);
    if (differ)
        qsort(keys, list->count, sizeof *keys, compare_targets);
    for (size_t i = 1; differ && i < list->count; i++)
        if (compare_targets(&keys[i - 1], &keys[i]) == 0) {
            message(keys[i].item->target, "both %s and %s would have this name",
                    keys[i - 1].item->source, keys[i].item->source);
            differ = false;
        }
    free(keys);
    return differ;
}

static int compare_sources(const void *a, const void *b)
{
    const struct stage_item *x = *(struct stage_item *const *)a;
    const struct stage_item *y = *(struct stage_item *const *)b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Returns the item whose source is the target of `item`, or NULL. Also returns NULL if it is
 * `item` itself: then only that item fails. sorted: by compare_sources(). */
static const struct stage_item *find_source(const struct stage_item **sorted, size_t count,
                                            const struct stage_item *item)
{
    struct stat st;
    if (lstat(item->target, &st) != 0 ||
        (st.st_dev == item->device && st.st_ino == item->inode))
        return NULL;
    const struct stage_item *key =
        &(struct stage_item){.device = st.st_dev, .inode = st.st_ino};
    const struct stage_item **found =
        bsearch(&key, sorted, count, sizeof *sorted, compare_sources);
    return found ? *found : NULL;
}

/* Returns false, after a message, if with --force a copy would replace another item's source or
 * the file that lists the sources. In `sorted`, that file is an item whose source is NULL. */
static bool targets_are_not_sources(const struct stagelist *list)
{
    struct stat st;
    const char *path = list->listing;
    struct stage_item listing = {.source = NULL};
    size_t count = 0;
    if (!list->force)
        return true;
    const struct stage_item **sorted = malloc((list->count + 1) * sizeof *sorted);
    if (!sorted)
        return out_of_memory();
    for (size_t i = 0; i < list->count; i++)
        sorted[count++] = &list->items[i];
    if (path && stat(strcmp(path, "-") == 0 ? "/dev/stdin" : path, &st) == 0) {
        listing.device = st.st_dev;
        listing.inode = st.st_ino;
        sorted[count++] = &listing;
    }
    qsort(sorted, count, sizeof *sorted, compare_sources);
    const struct stage_item *found = NULL;
    for (size_t i = 0; !found && i < list->count; i++) {
        const struct stage_item *item = &list->items[i];
        found = find_source(sorted, count, item);
        if (found)
            message(item->target, "the copy of %s would replace the %s%s; nothing was staged",
                    item->source, found->source ? "source " : "list of the sources",
                    found->source ? found->source : "");
    }
    free(sorted);
    return !found;
}

/* Returns true if `dir` is `tree` or in it: copying the tree there would never end. */
static bool is_inside_tree(const char *dir, const char *tree)
{
    char *inner = realpath(dir, NULL), *outer = realpath(tree, NULL);
    size_t n = outer ? strlen(outer) : 0;
    bool is_inside = inner && n > 0 && strncmp(inner, outer, n) == 0 &&
                     (inner[n] == '/' || inner[n] == '\0' || n == 1);
    free(inner);
    free(outer);
    return is_inside;
}

/* Adds a file or, with -r, the files of a directory; the targets are in `dir`. */
static bool add_source(struct stagelist *list, const char *source, const char *dir)
{
    struct stat st;
    if (stat(source, &st) != 0 || !S_ISDIR(st.st_mode))
        return add_file(list, source, target_path(dir, source));
    if (mounted_is_container(source))
        return add_mounted(list, source, NULL, dir);
    if (!list->recursive) /* fails when it is staged */
        return add_file(list, source, target_path(dir, source));
    if (is_inside_tree(dir, source)) {
        message(source, "the target %s is inside it; nothing was staged", dir);
        return false;
    }
    char *copy = strdup(source);
    bool good = copy ? add_tree(list, copy, dir) : out_of_memory();
    free(copy);
    return good;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Prints why `path` is not a directory into which files can be copied. */
static void report_bad_target(const char *path)
{
    struct stat st;
    int err = stat(path, &st) != 0 ? -errno : -ENOTDIR;
    if (err == -ENOENT && lstat(path, &st) == 0)
        message(path, "a dangling link");
    else if (err == -ENOENT)
        message(path, "no such directory; create it first (mkdir -p)");
    else if (err == -ENOTDIR)
        message(path, "not a directory");
    else
        message_code(path, "open", err);
}

bool stagelist_init(struct stagelist *list, const struct pathlist *sources, const char *target)
{
    const struct pathlist_item *source = sources->items;
    if (!is_directory(target)) {
        bool is_mounted = sources->count == 1 && mounted_is_container(source->path);
        bool alone = sources->count == 1 && (is_mounted || !is_directory(source->path)) &&
                     (!*target || target[strlen(target) - 1] != '/');
        list->dir = alone ? copy_dirname(target) : strdup(target);
        if (!list->dir)
            return out_of_memory();
        if (alone && is_directory(list->dir))
            return (is_mounted ? add_mounted(list, source->path, strdup(target), NULL)
                               : add_file(list, source->path, strdup(target))) &&
                   targets_are_not_sources(list);
        report_bad_target(list->dir);
        return false;
    }
    list->dir = strdup(target);
    for (; source < sources->items + sources->count; source++)
        if (!add_source(list, source->path, target))
            return false;
    if (!list->dir)
        return out_of_memory();
    return targets_are_distinct(list) && targets_are_not_sources(list);
}

void stagelist_release(struct stagelist *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].source);
        free(list->items[i].target);
    }
    free(list->items);
    free(list->dir);
    *list = (struct stagelist){0};
}
