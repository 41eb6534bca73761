/* pathlist.c - list files from operands, from --files-from and below directories */
#define _GNU_SOURCE
#include "pathlist.h"
#include "limeoutput.h"
#include "mounted_container.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct names {
    char **name;
    size_t count, capacity;
};

struct walker {
    bool (*is_opaque)(const char *dir);
    bool (*each)(void *context, const struct walk_entry *);
    void *context;
};

static bool report_no_memory(const char *path)
{
    message_code(path, "list", -ENOMEM);
    return false;
}

static int add_name(void *context, const char *name)
{
    struct names *names = context;
    if (!limefile_reserve(&names->name, &names->capacity, names->count + 1,
                          sizeof *names->name))
        return -ENOMEM;
    char *copy = strdup(name);
    if (copy)
        names->name[names->count++] = copy;
    return copy ? 0 : -ENOMEM;
}

static void release_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
}

static int compare_names(const void *a, const void *b)
{
    return limefile_natural_compare(*(char *const *)a, *(char *const *)b);
}

/* follow: `path` may be a link; if false, a link that has just replaced the directory is an
 * error. Returns 0 or an errno. */
static int read_names(const char *path, bool follow, struct names *names)
{
    int err = directory_each(AT_FDCWD, path, follow ? 0 : O_NOFOLLOW, add_name, names);
    if (names->count)
        qsort(names->name, names->count, sizeof *names->name, compare_names);
    return -err;
}

/* Calls walker->each. err: 0, or the errno to report as WALK_ERROR. */
static bool report_entry(const struct walker *walker, struct walk_entry *entry, int err)
{
    if (err)
        *entry = (struct walk_entry){entry->path, entry->name, WALK_ERROR, NULL, err};
    return walker->each(walker->context, entry);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Temporary files of outputs, rewrites, lime stage and checkpoint series; locks of series. */
bool walk_is_temporary(const char *name)
{
    return limefile_output_is_temporary(name) ||
           (name[0] == '.' &&
            (strstr(name, ".limefs-new") || ends_with(name, ".limefs-stage") ||
             ends_with(name, ".part") || ends_with(name, ".lock")));
}

static enum walk_kind classify_entry(const struct stat *st, const char *name)
{
    return S_ISREG(st->st_mode)   ? (walk_is_temporary(name) ? WALK_TEMPORARY : WALK_FILE)
           : S_ISDIR(st->st_mode) ? WALK_DIRECTORY
           : S_ISLNK(st->st_mode) ? WALK_LINK
                                  : WALK_OTHER;
}

static bool walk_directory(const struct walker *, const char *path, bool follow);

/* Reports `path` and, if it is a directory that is not opaque, its entries. */
static bool visit(const struct walker *walker, const char *path, const char *name, bool follow)
{
    struct stat st;
    struct walk_entry entry = {path, name, WALK_ERROR, &st, 0};
    if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
        return report_entry(walker, &entry, errno);
    entry.kind = classify_entry(&st, name);
    if (entry.kind == WALK_DIRECTORY && walker->is_opaque && walker->is_opaque(path))
        entry.kind = walk_is_temporary(name) ? WALK_TEMPORARY : WALK_OPAQUE;
    return report_entry(walker, &entry, 0) &&
           (entry.kind != WALK_DIRECTORY || walk_directory(walker, path, follow));
}

static bool walk_directory(const struct walker *walker, const char *path, bool follow)
{
    struct names names = {0};
    const char *slash = path[0] && path[strlen(path) - 1] == '/' ? "" : "/";
    int err = read_names(path, follow, &names);
    bool good = err != ENOMEM || report_no_memory(path);
    for (size_t i = 0; good && i < names.count; i++) {
        char *below;
        if (asprintf(&below, "%s%s%s", path, slash, names.name[i]) < 0) {
            good = report_no_memory(path);
            break;
        }
        good = visit(walker, below, names.name[i], false);
        free(below);
    }
    if (good && err) {
        struct walk_entry entry = {path, path, WALK_ERROR, NULL, err};
        good = report_entry(walker, &entry, err);
    }
    release_names(&names);
    return good;
}

bool walk_tree(const char *root, bool (*is_opaque)(const char *dir),
               bool (*each)(void *context, const struct walk_entry *), void *context)
{
    const struct walker walker = {is_opaque, each, context};
    return visit(&walker, root, root, true);
}

/* Returns item->below for a path. */
static size_t find_below(const struct pathlist *list, const char *path)
{
    size_t n = list->directory ? strlen(list->directory) : 0;
    const char *slash = strrchr(path, '/');
    if (n && path[n])
        return path[n] == '/' ? n + 1 : n;
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool add_list_item(struct pathlist *list, struct pathlist_item item)
{
    bool fits =
        limefile_reserve(&list->items, &list->capacity, list->count + 1, sizeof *list->items);
    char *copy = fits ? strdup(item.path) : NULL;
    if (!copy) {
        message_code(item.path, "list", -ENOMEM);
        return false;
    }
    item.path = copy;
    item.below = find_below(list, copy);
    list->items[list->count++] = item;
    return true;
}

/* ---- directories ---- */

static bool add_unreadable(struct pathlist *list, const struct walk_entry *entry)
{
    list->has_failed = true;
    if (list->all)
        return add_list_item(
            list, (struct pathlist_item){.path = (char *)entry->path, .error = entry->error});
    message_code(entry->path, "read", -entry->error);
    return true;
}

static bool add_skipped(struct pathlist *list, const struct walk_entry *entry)
{
    const char *why = entry->kind == WALK_LINK        ? "symbolic link"
                      : entry->kind == WALK_TEMPORARY ? "temporary file of a command"
                                                      : "not a regular file";
    return !list->all || add_list_item(list, (struct pathlist_item){.path = (char *)entry->path,
                                                                    .skipped = why});
}

static bool add_walk_entry(void *context, const struct walk_entry *entry)
{
    struct pathlist *list = context;
    struct pathlist_item item = {.path = (char *)entry->path};
    switch (entry->kind) {
    case WALK_FILE:
        item.size = (uint64_t)entry->st->st_size;
        item.is_optional = true;
        return add_list_item(list, item);
    case WALK_DIRECTORY:
        return true;
    case WALK_OPAQUE:
        item.is_optional = true;
        return add_list_item(list, item);
    case WALK_ERROR:
        return add_unreadable(list, entry);
    default:
        return add_skipped(list, entry);
    }
}

static bool add_path(struct pathlist *list, const char *path)
{
    struct stat st;
    bool known = stat(path, &st) == 0;
    if (list->recursive && known && S_ISDIR(st.st_mode)) {
        list->directory = path;
        bool good = walk_tree(path, mounted_is_container, add_walk_entry, list);
        list->directory = NULL;
        return good;
    }
    uint64_t size = known && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return add_list_item(list, (struct pathlist_item){.path = (char *)path, .size = size});
}

/* Removes the CR of a line that ends with CR LF, unless a file has the name with the CR. */
static void remove_cr(char *line)
{
    struct stat st;
    size_t n = strlen(line);
    if (n > 0 && line[n - 1] == '\r' && lstat(line, &st) != 0)
        line[n - 1] = '\0';
}

/* Adds each nonempty line of the file `name`, or (nul) each text that ends with a NUL. */
static bool add_listed_paths(struct pathlist *list, const char *name, bool nul)
{
    char *line = NULL;
    size_t capacity = 0;
    int end = nul ? '\0' : '\n';
    bool must_close = strcmp(name, "-") != 0, good = true;
    FILE *file = must_close ? fopen(name, "re") : stdin;
    if (!file) {
        message_code(name, "open", -errno);
        return false;
    }
    errno = 0;
    for (ssize_t n; good && (n = getdelim(&line, &capacity, end, file)) > 0;) {
        if (line[n - 1] == end)
            line[n - 1] = '\0';
        if (!nul)
            remove_cr(line);
        if (*line)
            good = add_path(list, line);
    }
    if (good && ferror(file)) {
        message_code(name, "read", errno ? -errno : -EIO);
        good = false;
    }
    free(line);
    if (must_close)
        fclose(file);
    return good;
}

int pathlist_init(struct pathlist *list, const struct pathlist_options *o,
                  const struct command *command, int count, char **operands)
{
    bool good = true;
    *list = (struct pathlist){
        .recursive = o->recursive, .all = o->all, .open_ended = o->recursive || o->list};
    if (o->nul && !o->list)
        return usage_error(command, "-0 requires --files-from");
    if (count == 0 && !o->list)
        return usage_error(command, "no FILE given");
    for (int i = 0; good && i < count; i++)
        good = add_path(list, operands[i]);
    if (good && o->list)
        good = add_listed_paths(list, o->list, o->nul);
    return good ? TOOL_GOOD : TOOL_UNUSABLE;
}

void pathlist_release(struct pathlist *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (struct pathlist){.count = 0};
}
