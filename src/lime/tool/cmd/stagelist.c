/* stagelist.c - sources and targets */
#define _GNU_SOURCE
#include "stagelist.h"
#include "pathlist.h"
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

/* ---- items ---- */

/* Takes both names over. */
static bool add(struct stagelist *list, char *source, char *target, const struct stat *st)
{
    if (!array_reserve(&list->items, &list->capacity, list->count, sizeof *list->items)) {
        free(source);
        free(target);
        return out_of_memory();
    }
    uint64_t size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    list->items[list->count++] =
        (struct stage_item){source, target, size, st->st_dev, st->st_ino};
    list->bytes += size;
    return source && target ? true : out_of_memory();
}

/* The name that a path ends with: "b" of "a/b/", "." of "." */
static void last_name(const char *path, const char **name, int *length)
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

/* Not so "..", "." and "/": what ends with these goes into the folder itself, as with GNU cp.
 * By such a name it would be beside the folder, or be the folder. */
static bool is_a_name(const char *name, int length)
{
    return length > 0 && strncmp("..", name, (size_t)length) != 0;
}

static char *without_slashes(const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    return strndup(folder, end);
}

static char *inside(const char *folder, const char *path)
{
    const char *name;
    char *out;
    int length;
    last_name(path, &name, &length);
    if (!is_a_name(name, length))
        return without_slashes(folder);
    bool slash = folder[0] && folder[strlen(folder) - 1] == '/';
    return asprintf(&out, "%s%s%.*s", folder, slash ? "" : "/", length, name) < 0 ? NULL : out;
}

static bool add_file(struct stagelist *list, const char *source, char *target)
{
    struct stat st;
    /* What is missing or no file is found out when its turn comes. */
    if (stat(source, &st) != 0)
        st = (struct stat){0};
    return add(list, strdup(source), target, &st);
}

/* ---- trees ---- */

static void leave_out(struct stagelist *list, const char *path, const char *why)
{
    message(path, "left out: %s", why);
    list->bad = true;
}

/* Where it cannot be made, what is below fails when its turn comes. */
static void make_folder(struct stagelist *list, const char *path, const struct stat *like)
{
    struct stat st;
    char why[128];
    if (mkdir(path, (like->st_mode & 0777) | 0700) == 0)
        return;
    int err = errno;
    if (err == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return;
    snprintf(why, sizeof why, "mkdir: %s", limefile_strerror(-err));
    leave_out(list, path, why);
}

struct tree {
    struct stagelist *list;
    const char *top; /* where it will be */
    size_t skip;     /* the length of its old name, without slashes behind it */
};

/* A link to a file is that file; one that leads nowhere is told of when its turn comes. */
static bool is_file(struct stagelist *list, const struct walk_entry *entry)
{
    struct stat st;
    if (entry->kind != WALK_LINK || stat(entry->path, &st) != 0)
        return entry->kind == WALK_FILE || entry->kind == WALK_LINK;
    if (!S_ISREG(st.st_mode))
        leave_out(list, entry->path,
                  S_ISDIR(st.st_mode) ? "a link to a folder" : "not a regular file");
    return S_ISREG(st.st_mode);
}

static bool add_entry(void *context, const struct walk_entry *entry)
{
    const struct tree *tree = context;
    char *target;
    if (entry->kind == WALK_WORKING)
        return true;
    if (asprintf(&target, "%s%s", tree->top, entry->path + tree->skip) < 0)
        return out_of_memory();
    if (is_file(tree->list, entry))
        return add_file(tree->list, entry->path, target);
    if (entry->kind == WALK_FOLDER)
        make_folder(tree->list, target, entry->st);
    else if (entry->kind == WALK_FAULT)
        leave_out(tree->list, entry->path, strerror(entry->error));
    else if (entry->kind == WALK_OTHER)
        leave_out(tree->list, entry->path, "not a regular file");
    free(target);
    return true;
}

static bool add_tree(struct stagelist *list, char *source, const char *folder)
{
    char *top = inside(folder, source);
    size_t skip = strlen(source);
    while (skip > 0 && source[skip - 1] == '/')
        skip--;
    source[skip ? skip : 1] = '\0';
    struct tree tree = {list, top, skip};
    bool good = top ? walk(source, NULL, add_entry, &tree) : out_of_memory();
    free(top);
    return good;
}

/* ---- all of it ---- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

/* Where a target will be, however its folder is spelled. */
struct place {
    const struct stage_item *item;
    const char *name; /* in the folder: the end of the target */
    dev_t device;     /* of the folder; */
    ino_t inode;      /* 0: it cannot be looked at, and staging will say why */
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return strcmp(x->inode ? x->name : x->item->target, y->inode ? y->name : y->item->target);
}

static bool find_place(struct place *place, const struct stage_item *item)
{
    struct stat st;
    const char *slash = strrchr(item->target, '/');
    char *folder = folder_of(item->target);
    *place = (struct place){.item = item, .name = slash ? slash + 1 : item->target};
    if (!folder)
        return out_of_memory();
    if (stat(folder, &st) == 0) {
        place->device = st.st_dev;
        place->inode = st.st_ino;
    }
    free(folder);
    return true;
}

/* With --force one of two copies in one place would replace the other one, and both were told
 * to be there. */
static bool targets_differ(const struct stagelist *list)
{
    struct place *places = malloc((list->count + 1) * sizeof *places);
    bool differ = places ? true : out_of_memory();
    for (size_t i = 0; differ && i < list->count; i++)
        differ = find_place(&places[i], &list->items[i]);
    if (differ)
        qsort(places, list->count, sizeof *places, by_place);
    for (size_t i = 1; differ && i < list->count; i++)
        if (by_place(&places[i - 1], &places[i]) == 0) {
            message(places[i].item->target, "both %s and %s would have this name",
                    places[i - 1].item->source, places[i].item->source);
            differ = false;
        }
    free(places);
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

/* Returns another item whose source the target of `item` is, or NULL. An item whose target is
 * its own source fails later, and alone. */
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

/* With --force a copy would replace a file that is still to be copied, or the one that lists
 * the sources: an item without a source. */
static bool targets_are_no_sources(const struct stagelist *list)
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

/* Its copies would be found as further sources, without an end. */
static bool is_inside(const char *folder, const char *tree)
{
    char *inner = realpath(folder, NULL), *outer = realpath(tree, NULL);
    size_t n = outer ? strlen(outer) : 0;
    bool inside = inner && n > 0 && strncmp(inner, outer, n) == 0 &&
                  (inner[n] == '/' || inner[n] == '\0' || n == 1);
    free(inner);
    free(outer);
    return inside;
}

static bool add_source(struct stagelist *list, const char *source, const char *folder)
{
    struct stat st;
    if (stat(source, &st) != 0 || !S_ISDIR(st.st_mode))
        return add_file(list, source, inside(folder, source));
    if (!list->recursive) {
        leave_out(list, source, "a folder, and no -r was given");
        return true;
    }
    if (is_inside(folder, source)) {
        message(source, "the target, %s, is inside of it; nothing was staged", folder);
        return false;
    }
    char *copy = strdup(source);
    bool good = copy ? add_tree(list, copy, folder) : out_of_memory();
    free(copy);
    return good;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Why nothing can be put there. */
static void refuse_target(const char *path)
{
    struct stat st;
    int err = stat(path, &st) != 0 ? -errno : -ENOTDIR;
    if (err == -ENOENT && lstat(path, &st) == 0)
        message(path, "a link that leads nowhere");
    else if (err == -ENOENT)
        message(path, "the folder does not exist; make it first (mkdir -p)");
    else if (err == -ENOTDIR)
        message(path, "not a folder");
    else
        message_code(path, "open", err);
}

bool stagelist_make(struct stagelist *list, char *const *sources, size_t count,
                    const char *target)
{
    if (!is_folder(target)) {
        bool alone = count == 1 && !is_folder(sources[0]) &&
                     (!*target || target[strlen(target) - 1] != '/');
        list->folder = alone ? folder_of(target) : strdup(target);
        if (!list->folder)
            return out_of_memory();
        if (alone && is_folder(list->folder))
            return add_file(list, sources[0], strdup(target)) && targets_are_no_sources(list);
        refuse_target(list->folder);
        return false;
    }
    list->folder = strdup(target);
    for (size_t i = 0; i < count; i++)
        if (!add_source(list, sources[i], target))
            return false;
    if (!list->folder)
        return out_of_memory();
    return targets_differ(list) && targets_are_no_sources(list);
}

void stagelist_release(struct stagelist *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].source);
        free(list->items[i].target);
    }
    free(list->items);
    free(list->folder);
    *list = (struct stagelist){0};
}
