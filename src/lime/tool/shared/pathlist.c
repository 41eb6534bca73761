/* pathlist.c - files by name, from a list, from folders */
#define _GNU_SOURCE
#include "mounted.h"
#include "pathlist.h"
#include "tool.h"
#include "walk.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Adds the item with a copy of its path. */
static bool put(struct pathlist *list, struct pathlist_item item)
{
    if (list->count == list->capacity) {
        size_t more = list->capacity + list->capacity / 2 + 16;
        void *bigger = reallocarray(list->items, more, sizeof *list->items);
        if (bigger) {
            list->items = bigger;
            list->capacity = more;
        }
    }
    char *copy = list->count < list->capacity ? strdup(item.path) : NULL;
    if (!copy) {
        message_code(item.path, "list", -ENOMEM);
        return false;
    }
    item.path = copy;
    list->items[list->count++] = item;
    return true;
}

/* ---- folders ---- */

static bool put_fault(struct pathlist *list, const struct walk_entry *entry)
{
    list->incomplete = true;
    if (list->all)
        return put(list,
                   (struct pathlist_item){.path = (char *)entry->path, .error = entry->error});
    message_code(entry->path, "read", -entry->error);
    return true;
}

static bool put_skipped(struct pathlist *list, const struct walk_entry *entry)
{
    const char *why = entry->kind == WALK_LINK      ? "symbolic link"
                      : entry->kind == WALK_WORKING ? "working file of a command"
                                                    : "not a regular file";
    return !list->all ||
           put(list, (struct pathlist_item){.path = (char *)entry->path, .skipped = why});
}

static bool take(void *context, const struct walk_entry *entry)
{
    struct pathlist *list = context;
    struct pathlist_item item = {.path = (char *)entry->path};
    switch (entry->kind) {
    case WALK_FILE:
        item.size = (uint64_t)entry->st->st_size;
        item.found = true;
        return put(list, item);
    case WALK_FOLDER:
        return true;
    case WALK_WHOLE:
        return put(list, item);
    case WALK_FAULT:
        return put_fault(list, entry);
    default:
        return put_skipped(list, entry);
    }
}

/* ---- all ways ---- */

static bool add(struct pathlist *list, const char *path)
{
    struct stat st;
    bool known = stat(path, &st) == 0;
    if (list->walk && known && S_ISDIR(st.st_mode))
        return walk(path, mounted_is, take, list);
    return put(list, (struct pathlist_item){
                         .path = (char *)path,
                         .size = known && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0,
                     });
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
    *list = (struct pathlist){
        .walk = o->recursive, .all = o->all, .open_ended = o->recursive || o->list};
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
