/* diff_tree.h - compare the files of two directories that have the same relative path */
#ifndef DIFF_TREE_H
#define DIFF_TREE_H

#include <stdbool.h>

struct command;

struct diff_tree {
    const struct command *command; /* for messages */
    char *const *directories;      /* two */
    bool quiet, json;

    /* Compares two files and prints the result. Returns TOOL_GOOD if they are the same,
     * TOOL_BAD if they differ, TOOL_UNUSABLE after a message. */
    int (*compare)(char *const *paths);

    /* Prints that there is only this file: on side 0 or 1. */
    void (*print_only)(char *path, int side);
};

/* Compares all files of the directories, prints a summary, and returns the worst exit status.
 * Skips files that are neither containers nor in another format that lime reads. */
int diff_tree_run(const struct diff_tree *);

#endif
