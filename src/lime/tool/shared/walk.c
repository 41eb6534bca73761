/* walk.c - all that is in a folder and in the folders below it */
#define _GNU_SOURCE
#include "walk.h"
#include "limeoutput.h"
#include "nameorder.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct names {
    char **name;
    size_t count, capacity;
};

struct walker {
    bool (*is_whole)(const char *folder);
    bool (*each)(void *context, const struct walk_entry *);
    void *context;
};

static bool out_of_memory(const char *path)
{
    message_code(path, "list", -ENOMEM);
    return false;
}

static bool put(struct names *names, const char *name)
{
    if (names->count == names->capacity) {
        size_t more = names->capacity + names->capacity / 2 + 16;
        char **bigger = reallocarray(names->name, more, sizeof *bigger);
        if (!bigger)
            return false;
        names->name = bigger;
        names->capacity = more;
    }
    char *copy = strdup(name);
    if (copy)
        names->name[names->count++] = copy;
    return copy != NULL;
}

static void forget(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
}

static int by_name(const void *a, const void *b)
{
    return name_compare(*(char *const *)a, *(char *const *)b);
}

/* A link that has taken a folder's place meanwhile is not followed either. */
static DIR *open_folder(const char *path, bool follow)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !folder)
        close(fd);
    return folder;
}

/* 0, or why not all of it could be read. */
static int read_names(const char *path, bool follow, struct names *names)
{
    DIR *folder = open_folder(path, follow);
    struct dirent *entry;
    int err = folder ? 0 : errno;
    while (!err && (errno = 0, entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !put(names, entry->d_name))
            err = ENOMEM;
    if (folder && !err)
        err = errno;
    if (folder)
        closedir(folder);
    if (names->count)
        qsort(names->name, names->count, sizeof *names->name, by_name);
    return err;
}

static bool tell(const struct walker *walker, struct walk_entry *entry, int err)
{
    if (err)
        *entry = (struct walk_entry){entry->path, entry->name, WALK_FAULT, NULL, err};
    return walker->each(walker->context, entry);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* The temporary files of outputs, of changed containers and of lime stage; those of a series of
 * checkpoints, and its lock. */
bool walk_is_working_file(const char *name)
{
    return limefile_output_is_temporary(name) ||
           (name[0] == '.' &&
            (strstr(name, ".limefs-new") || ends_with(name, ".limefs-stage") ||
             ends_with(name, ".limefs-journal") || ends_with(name, ".part") ||
             ends_with(name, ".lock")));
}

static enum walk_kind kind_of(const struct stat *st, const char *name)
{
    return S_ISREG(st->st_mode)   ? (walk_is_working_file(name) ? WALK_WORKING : WALK_FILE)
           : S_ISDIR(st->st_mode) ? WALK_FOLDER
           : S_ISLNK(st->st_mode) ? WALK_LINK
                                  : WALK_OTHER;
}

static bool walk_in(const struct walker *, const char *path, bool follow);

static bool visit(const struct walker *walker, const char *path, const char *name, bool follow)
{
    struct stat st;
    struct walk_entry entry = {path, name, WALK_FAULT, &st, 0};
    if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
        return tell(walker, &entry, errno);
    entry.kind = kind_of(&st, name);
    if (entry.kind == WALK_FOLDER && walker->is_whole && walker->is_whole(path))
        entry.kind = walk_is_working_file(name) ? WALK_WORKING : WALK_WHOLE;
    return tell(walker, &entry, 0) &&
           (entry.kind != WALK_FOLDER || walk_in(walker, path, follow));
}

static bool walk_in(const struct walker *walker, const char *path, bool follow)
{
    struct names names = {0};
    const char *slash = path[0] && path[strlen(path) - 1] == '/' ? "" : "/";
    int err = read_names(path, follow, &names);
    bool good = err != ENOMEM || out_of_memory(path);
    for (size_t i = 0; good && i < names.count; i++) {
        char *below;
        if (asprintf(&below, "%s%s%s", path, slash, names.name[i]) < 0) {
            good = out_of_memory(path);
            break;
        }
        good = visit(walker, below, names.name[i], false);
        free(below);
    }
    if (good && err) {
        struct walk_entry entry = {path, path, WALK_FAULT, NULL, err};
        good = tell(walker, &entry, err);
    }
    forget(&names);
    return good;
}

bool walk(const char *root, bool (*is_whole)(const char *folder),
          bool (*each)(void *context, const struct walk_entry *), void *context)
{
    const struct walker walker = {is_whole, each, context};
    return visit(&walker, root, root, true);
}
