/* pathlist.c - files by name, from a list, from folders */
#define _GNU_SOURCE
#include "pathlist.h"
#include "tool.h"

#include <errno.h>
#include <fts.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool put(struct pathlist *list, const char *path, uint64_t size, bool found)
{
    if (list->count == list->capacity) {
        size_t more = list->capacity + list->capacity / 2 + 16;
        void *bigger = reallocarray(list->items, more, sizeof *list->items);
        if (bigger) {
            list->items = bigger;
            list->capacity = more;
        }
    }
    char *copy = list->count < list->capacity ? strdup(path) : NULL;
    if (!copy) {
        message_code(path, "list", -ENOMEM);
        return false;
    }
    list->items[list->count++] = (struct pathlist_item){copy, size, found};
    return true;
}

/* ---- folders ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool take(struct pathlist *list, const FTSENT *entry)
{
    switch (entry->fts_info) {
    case FTS_F:
        return put(list, entry->fts_path, (uint64_t)entry->fts_statp->st_size,
                   entry->fts_level > 0);
    case FTS_D:
    case FTS_DP:
        return true;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        message_code(entry->fts_path, "read", -entry->fts_errno);
        list->incomplete = true;
        return true;
    default:
        if (entry->fts_level == 0) /* asked for: what is wrong with it will be told */
            return put(list, entry->fts_path, 0, false);
        list->skipped++;
        return true;
    }
}

static bool walk(struct pathlist *list, const char *path)
{
    char *root = strdup(path), *roots[] = {root, NULL};
    FTS *tree =
        root ? fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name) : NULL;
    bool good = tree != NULL;
    if (!good)
        message_code(path, "read", -errno);
    errno = 0;
    for (FTSENT *entry; good && (entry = fts_read(tree));)
        good = take(list, entry);
    if (good && errno) { /* it has ended before its end */
        message_code(path, "read", -errno);
        list->incomplete = true;
    }
    if (tree)
        fts_close(tree);
    free(root);
    return good;
}

/* ---- all ways ---- */

static bool add(struct pathlist *list, const char *path)
{
    struct stat st;
    bool known = stat(path, &st) == 0;
    if (list->walk && known && S_ISDIR(st.st_mode))
        return walk(list, path);
    return put(list, path, known && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0, false);
}

static bool add_line(void *context, const char *line)
{
    return add(context, line);
}

bool pathlist_lines(const char *name, bool nul, bool (*each)(void *context, const char *line),
                    void *context)
{
    char *line = NULL;
    size_t capacity = 0;
    int end = nul ? '\0' : '\n';
    bool own = strcmp(name, "-") != 0, good = true;
    FILE *file = own ? fopen(name, "re") : stdin;
    if (!file) {
        message_code(name, "open", -errno);
        return false;
    }
    errno = 0;
    for (ssize_t n; good && (n = getdelim(&line, &capacity, end, file)) > 0;) {
        if (line[n - 1] == end)
            line[n - 1] = '\0';
        if (*line)
            good = each(context, line);
    }
    if (good && ferror(file)) {
        message_code(name, "read", errno ? -errno : -EIO);
        good = false;
    }
    free(line);
    if (own)
        fclose(file);
    return good;
}

int pathlist_option(struct pathlist_options *o, int opt, const struct command *command,
                    char **argv)
{
    switch (opt) {
    case 'r':
        o->recursive = true;
        return TOOL_GOOD;
    case 'F':
        o->list = optarg;
        return TOOL_GOOD;
    case '0':
        o->nul = true;
        return TOOL_GOOD;
    default:
        return option_error(command, argv);
    }
}

int pathlist_make(struct pathlist *list, const struct pathlist_options *o,
                  const struct command *command, int argc, char **argv)
{
    bool good = true;
    *list = (struct pathlist){.walk = o->recursive, .open_ended = o->recursive || o->list};
    if (o->nul && !o->list)
        return usage_error(command, "-0 is for --files-from");
    if (optind == argc && !o->list)
        return usage_error(command, "no file named");
    for (int i = optind; good && i < argc; i++)
        good = add(list, argv[i]);
    if (good && o->list)
        good = pathlist_lines(o->list, o->nul, add_line, list);
    return good ? TOOL_GOOD : TOOL_UNUSABLE;
}

void pathlist_release(struct pathlist *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (struct pathlist){.count = 0};
}
