/* convert_plan.c - choose the target of each file that `lime convert` converts to a directory
 */
#define _GNU_SOURCE
#include "convert_plan.h"
#include "gaugefile.h"
#include "target_name.h"
#include "tool.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Returns a target's name, or NULL: ENODATA in errno, or another error after a message. */
static char *form_name(const struct convert_plan *plan, const struct pathlist_item *item,
                       const char *name, const uint64_t *number)
{
    if (!plan->pattern)
        return target_name_default(name, plan->format);
    char *target = target_name_form(plan->pattern, name, number);
    if (!target && errno == ENODATA)
        return NULL;
    if (!target)
        message_code(item->path, "plan", -ENOMEM);
    if (target && *target && strcmp(target, ".") != 0 && strcmp(target, "..") != 0)
        return target;
    if (target)
        message(item->path, "--name %s: '%s' is not a file name", plan->pattern, target);
    free(target);
    errno = EINVAL;
    return NULL;
}

/* Returns true if `path`, which need not exist, is the directory or in it. */
static bool is_inside_directory(const char *path, const char *directory)
{
    char *copy = strdup(path), *at = copy, *inner = NULL;
    char *outer = realpath(directory, NULL);
    while (copy && !(inner = realpath(at, NULL)) && errno == ENOENT && strcmp(at, ".") != 0)
        at = dirname(at);
    size_t n = outer ? strlen(outer) : 0;
    bool is_inside = inner && n && strncmp(inner, outer, n) == 0 &&
                     (inner[n] == '/' || inner[n] == '\0' || n == 1);
    free(inner);
    free(outer);
    free(copy);
    return is_inside;
}

/* Reports that the file was found in a directory that contains the targets' directory. */
static int check_source_directory(const struct convert_plan *plan,
                                  const struct pathlist_item *item)
{
    char *source = item->is_optional ? strndup(item->path, item->below) : NULL;
    bool is_inside = source && is_inside_directory(plan->directory, source);
    if (is_inside)
        message(plan->directory, "is in the source '%s'; choose another directory", source);
    free(source);
    return is_inside ? TOOL_UNUSABLE : TOOL_GOOD;
}

static int plan_file(const struct convert_plan *plan, const struct pathlist_item *item,
                     struct planned_target *target)
{
    const char *below = item->path + item->below, *slash = strrchr(below, '/');
    const char *name = slash ? slash + 1 : below;
    uint64_t number = 0;
    bool has_number = false;
    if (item->skipped || item->error)
        return TOOL_GOOD;
    if (check_source_directory(plan, item) != TOOL_GOOD)
        return TOOL_UNUSABLE;
    if (item->is_optional ||
        (plan->pattern && target_name_needs_trajectory(plan->pattern, name))) {
        bool is_found = gaugefile_probe(item->path, &has_number, &number);
        if (!is_found && item->is_optional)
            return TOOL_GOOD;
    }
    char *formed = form_name(plan, item, name, has_number ? &number : NULL);
    if (!formed && errno == ENODATA) {
        target->lacks_number = true;
        return TOOL_GOOD;
    }
    if (formed && asprintf(&target->path, "%s/%.*s%s", plan->directory, (int)(name - below),
                           below, formed) < 0)
        target->path = NULL;
    free(formed);
    return target->path ? TOOL_GOOD : TOOL_UNUSABLE;
}

/* ---- files that would be overwritten ---- */

struct planned_file {
    const struct pathlist_item *item;
    const char *target;
    dev_t device; /* of the source */
    ino_t inode;
};

static int compare_planned_targets(const void *a, const void *b)
{
    return strcmp(((const struct planned_file *)a)->target,
                  ((const struct planned_file *)b)->target);
}

static int compare_planned_sources(const void *a, const void *b)
{
    const struct planned_file *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Reports the first target of two files, and the first target that is a source. */
static int check_planned(struct planned_file *files, size_t count)
{
    struct planned_file key;
    struct stat st;
    qsort(files, count, sizeof *files, compare_planned_targets);
    for (size_t i = 1; i < count; i++)
        if (strcmp(files[i - 1].target, files[i].target) == 0) {
            message(files[i].target,
                    "both '%s' and '%s' would have this name; choose others with --name",
                    files[i - 1].item->path, files[i].item->path);
            return TOOL_UNUSABLE;
        }
    qsort(files, count, sizeof *files, compare_planned_sources);
    for (size_t i = 0; i < count; i++) {
        if (stat(files[i].target, &st) != 0)
            continue;
        key.device = st.st_dev;
        key.inode = st.st_ino;
        if (bsearch(&key, files, count, sizeof *files, compare_planned_sources)) {
            message(files[i].target, "is also a source; choose another directory or --name");
            return TOOL_BAD; /* as of one file */
        }
    }
    return TOOL_GOOD;
}

static int check_overwriting(const struct convert_plan *plan, const struct pathlist *sources)
{
    struct planned_file *files = calloc(plan->count + 1, sizeof *files);
    struct stat st;
    size_t count = 0;
    if (!files)
        return report_error(plan->directory, "plan", -ENOMEM);
    for (size_t i = 0; i < plan->count; i++) {
        const struct pathlist_item *item = &sources->items[i];
        bool is_known = stat(item->path, &st) == 0;
        if (plan->targets[i].path)
            files[count++] =
                (struct planned_file){item, plan->targets[i].path, is_known ? st.st_dev : 0,
                                      is_known ? st.st_ino : 0};
    }
    int status = check_planned(files, count);
    free(files);
    return status;
}

int convert_plan_make(struct convert_plan *plan, const struct pathlist *sources)
{
    int status = TOOL_GOOD;
    plan->count = 0;
    plan->targets = calloc(sources->count + 1, sizeof *plan->targets);
    if (!plan->targets)
        return report_error(plan->directory, "plan", -ENOMEM);
    for (; !status && plan->count < sources->count; plan->count++)
        status = plan_file(plan, &sources->items[plan->count], &plan->targets[plan->count]);
    return status ? status : check_overwriting(plan, sources);
}

void convert_plan_release(struct convert_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        free(plan->targets[i].path);
    free(plan->targets);
}

/* ---- directories ---- */

int convert_plan_make_directories(const char *target)
{
    char *path = strdup(target);
    int err = path ? 0 : -ENOMEM;
    for (char *slash = path; !err && (slash = strchr(slash + 1, '/')); *slash = '/') {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            err = -errno;
    }
    free(path);
    return err;
}
