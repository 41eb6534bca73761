/* diff_tree.c - compare the files of two directories that have the same relative path */
#include "diff_tree.h"
#include "files.h"
#include "jsonout.h"
#include "pathlist.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tree_tally {
    size_t same, different, failed, skipped, only[2];
    int status;
    bool has_printed;
};

/* The files of one directory. */
struct side {
    struct pathlist list;
    struct pathlist_item **sorted; /* by the path below the directory */
    bool *has_pair;                /* list.items[i] is also in the other directory */
};

static const char *path_below(const struct pathlist_item *item)
{
    return item->path + item->below;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(path_below(*(struct pathlist_item *const *)a),
                  path_below(*(struct pathlist_item *const *)b));
}

/* Returns an exit status; call release_side() after any. */
static int list_side(const struct diff_tree *tree, struct side *side, char *directory)
{
    const struct pathlist_options options = {.recursive = true};
    int status = pathlist_init(&side->list, &options, tree->command, 1, &directory);
    side->sorted = calloc(side->list.count + 1, sizeof(struct pathlist_item *));
    side->has_pair = calloc(side->list.count + 1, sizeof *side->has_pair);
    if (!side->sorted || !side->has_pair)
        return report_error(directory, "list", -ENOMEM);
    for (size_t i = 0; i < side->list.count; i++)
        side->sorted[i] = &side->list.items[i];
    qsort(side->sorted, side->list.count, sizeof *side->sorted, compare_items);
    return status ? status : side->list.has_failed ? TOOL_UNUSABLE : TOOL_GOOD;
}

static void release_side(struct side *side)
{
    pathlist_release(&side->list);
    free(side->sorted);
    free(side->has_pair);
}

/* Prints a blank line between the texts about two pairs. */
static void begin_result(const struct diff_tree *tree, struct tree_tally *tally)
{
    if (!tree->quiet && !tree->json && tally->has_printed)
        print_line(NULL, "%s", "");
    tally->has_printed = true;
}

static void compare_pair(const struct diff_tree *tree, char *a, char *b,
                         struct tree_tally *tally)
{
    char *const paths[2] = {a, b};
    if (file_is_other(a, true) && file_is_other(b, true)) {
        tally->skipped++;
        return;
    }
    begin_result(tree, tally);
    if (!tree->quiet && !tree->json)
        print_line(NULL, "%s and %s:", a, b);
    int status = tree->compare(paths);
    tally->same += status == TOOL_GOOD;
    tally->different += status == TOOL_BAD;
    tally->failed += status == TOOL_UNUSABLE;
    tally->status = worse_status(tally->status, status);
    flush_stdout();
}

static void report_only(const struct diff_tree *tree, char *path, int side,
                        struct tree_tally *tally)
{
    if (file_is_other(path, true)) {
        tally->skipped++;
        return;
    }
    begin_result(tree, tally);
    tree->print_only(path, side);
    tally->only[side]++;
    tally->status = worse_status(tally->status, TOOL_BAD);
}

static void print_tree_summary(const struct diff_tree *tree, struct tree_tally *t)
{
    size_t different = t->different + t->only[0] + t->only[1];
    size_t files = t->same + different + t->failed + t->skipped;
    if (tree->json) {
        jsonout_print(stdout,
                      json_pack("{s:{s:o, s:o, s:o, s:o, s:o}}", "summary", "files",
                                jsonout_integer(files), "same", jsonout_integer(t->same),
                                "different", jsonout_integer(different), "error",
                                jsonout_integer(t->failed), "skipped",
                                jsonout_integer(t->skipped)));
        putchar('\n');
    } else if (!tree->quiet) {
        begin_result(tree, t);
        print_line(NULL,
                   "%zu file%s: %zu same, %zu different, %zu only in %s, %zu only in %s, %zu "
                   "unreadable, %zu skipped",
                   files, plural(files), t->same, t->different, t->only[0],
                   tree->directories[0], t->only[1], tree->directories[1], t->failed,
                   t->skipped);
    }
}

/* In the order of the first directory; then the files that are only in the second one. */
static void compare_sides(const struct diff_tree *tree, struct side side[2],
                          struct tree_tally *tally)
{
    struct side *b = &side[1];
    for (size_t i = 0; i < side[0].list.count; i++) {
        struct pathlist_item *item = &side[0].list.items[i], **found;
        found = bsearch(&item, b->sorted, b->list.count, sizeof *b->sorted, compare_items);
        if (found) {
            b->has_pair[*found - b->list.items] = true;
            compare_pair(tree, item->path, (*found)->path, tally);
        } else {
            report_only(tree, item->path, 0, tally);
        }
    }
    for (size_t i = 0; i < b->list.count; i++)
        if (!b->has_pair[i])
            report_only(tree, b->list.items[i].path, 1, tally);
}

int diff_tree_run(const struct diff_tree *tree)
{
    struct side side[2] = {{.sorted = NULL}, {.sorted = NULL}};
    struct tree_tally tally = {.status = TOOL_GOOD};
    for (int i = 0; i < 2; i++)
        tally.status =
            worse_status(tally.status, list_side(tree, &side[i], tree->directories[i]));
    if (side[0].has_pair && side[1].has_pair) {
        compare_sides(tree, side, &tally);
        print_tree_summary(tree, &tally);
    }
    release_side(&side[0]);
    release_side(&side[1]);
    return tally.status;
}
