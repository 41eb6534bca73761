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

/* Their rules, for a struct pathlist_options. */
/* clang-format off */
#define PATHLIST_RULES(options)                          \
    FLAG_RULE("recursive", 'r', &(options).recursive),   \
    TEXT_RULE("files-from", 0, &(options).list),         \
    FLAG_RULE("null", '0', &(options).nul)
/* clang-format on */

/* ---- the list ---- */

/* Of what is left of the command line after its options, and of --files-from. Found files come
 * in natural order (name_compare()); links found are not followed, so that there is no way
 * round in a circle. An exit status, after a message if it is not TOOL_GOOD. */
int pathlist_make(struct pathlist *, const struct pathlist_options *, const struct command *,
                  int count, char **operands);

void pathlist_release(struct pathlist *);

/* ---- all that is in a directory and below it ---- */

/* Compares two names in natural order: a run of digits counts as a number, so that conf.9 comes
 * before conf.10; every other byte counts as it is, and a number in the place of '0' to '9'.
 * Names that differ in leading zeros alone are in the order of their bytes. Returns a number
 * less than, equal to or greater than 0. limefs._stack._natural is the same order in Python. */
int name_compare(const char *a, const char *b);

enum walk_kind {
    WALK_FILE,    /* a regular one */
    WALK_FOLDER,  /* told before what is in it */
    WALK_WHOLE,   /* a folder that is to be one thing: what is in it is not told */
    WALK_LINK,    /* a symbolic link: not followed */
    WALK_WORKING, /* a temporary file of a command that runs or was killed, or a lock */
    WALK_OTHER,
    WALK_FAULT, /* it cannot be looked at, or, after WALK_FOLDER, not be read to its end */
};

struct walk_entry {
    const char *path, *name; /* the path begins with the root's */
    enum walk_kind kind;
    const struct stat *st; /* NULL: a fault */
    int error;             /* an errno: of a fault */
};

/* Calls `each` for the root and all below it; a directory's entries come in the order of their
 * names (name_compare()). The root may be a link to a directory. `is_whole` returns true for a
 * directory that is not to be entered; NULL: all are. Returns false if `each` did, or without
 * memory, after a message. (fts(3) takes an error while it reads a directory for its end.) */
bool walk(const char *root, bool (*is_whole)(const char *folder),
          bool (*each)(void *context, const struct walk_entry *), void *context);

/* Returns true if a command of this project, running or killed, gives that name to a temporary
 * file or a lock. */
bool walk_is_working_file(const char *name);

#endif
