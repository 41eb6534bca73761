/* pathlist.h - the files that a command works on: named, listed in a file, found in folders */
#ifndef PATHLIST_H
#define PATHLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command;

struct pathlist_item {
    char *path;    /* owned by the list */
    uint64_t size; /* 0 if it cannot be told */
    bool found;    /* in a directory: it need not be a container */

    /* Only in a list with pathlist_options.all: what is not a file to be examined. */
    const char *skipped; /* why not: a symbolic link ... */
    int error;           /* errno: the file or directory could not be read */
};

/* Filled by pathlist_make(). */
struct pathlist {
    struct pathlist_item *items;
    size_t count, capacity;
    bool incomplete; /* something could not be read: after a message, or there is an item for it
                      */
    bool walk;       /* a directory means all regular files below it, and mounted containers */
    bool all;        /* as in pathlist_options */
    bool open_ended; /* by -r or --files-from: there may be any number of files */
};

/* ---- the options that name them ---- */

struct pathlist_options {
    const char *list; /* --files-from; '-': standard input */
    bool nul, recursive;
    bool all; /* the list also has what is skipped or cannot be read */
};

/* For getopt_long(), with 'r' and '0' among the short ones. */
/* clang-format off */
#define PATHLIST_LONG_OPTIONS                     \
    {"recursive", no_argument, NULL, 'r'},        \
    {"files-from", required_argument, NULL, 'F'}, \
    {"null", no_argument, NULL, '0'}
/* clang-format on */

/* Takes one of these. Another one is an option_error(). */
int pathlist_option(struct pathlist_options *, int opt, const struct command *, char **argv);

/* ---- the list ---- */

/* Of what is left of the command line after its options, and of --files-from. Found files come
 * in the order of their names; links found are not followed, so that there is no way round in a
 * circle. An exit status, after a message if it is not TOOL_GOOD. */
int pathlist_make(struct pathlist *, const struct pathlist_options *, const struct command *,
                  int argc, char **argv);

/* Each line of the file `name` that is not empty, or (nul) what ends with a NUL, until `each`
 * returns false, which is after a message. False after a message. */
bool pathlist_lines(const char *name, bool nul, bool (*each)(void *context, const char *line),
                    void *context);

void pathlist_release(struct pathlist *);

#endif
