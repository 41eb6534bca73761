/* pathlist.h - list the files that a command works on: operands, --files-from, -r */
#ifndef PATHLIST_H
#define PATHLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command;

struct pathlist_item {
    char *path;       /* owned by the list */
    size_t below;     /* offset in `path` of the part below the directory that was listed, or of
                         the last component */
    uint64_t size;    /* bytes; 0: unknown */
    bool is_optional; /* found in a directory, so it need not be a container */

    /* Only with pathlist_options.all: an entry that cannot be examined. */
    const char *skipped; /* the reason, such as "symbolic link" */
    int error;           /* errno of the file or directory that could not be read */
};

/* Built by pathlist_init(). */
struct pathlist {
    struct pathlist_item *items;
    size_t count, capacity;
    bool has_failed; /* a read has failed, as a message or an item's `error` reports */
    bool recursive;  /* a directory means all regular files and mounted containers in it */
    bool all;        /* as in pathlist_options */
    bool open_ended; /* -r or --files-from was given: any number of files is possible */
    const char *directory; /* private: the directory that is being listed, or NULL */
};

/* ---- options ---- */

struct pathlist_options {
    const char *list;    /* --files-from; "-": standard input */
    bool nul, recursive; /* nul: in the file `list`, a NUL ends each path, not a newline */
    bool all;            /* the list also has skipped and unreadable files */
};

/* Option rules for a struct pathlist_options. */
/* clang-format off */
#define PATHLIST_RULES(options)                          \
    FLAG_RULE("recursive", 'r', &(options).recursive),   \
    TEXT_RULE("files-from", 0, &(options).list),         \
    FLAG_RULE("null", '0', &(options).nul)
/* clang-format on */

/* ---- the list ---- */

/* Lists the `operands` and the paths of --files-from. With -r, files found in directories come
 * in natural order (limefile_natural_compare()); links found there are not followed. Returns
 * TOOL_GOOD, or another exit status after a message; call pathlist_release() after both. */
int pathlist_init(struct pathlist *, const struct pathlist_options *, const struct command *,
                  int count, char **operands);

void pathlist_release(struct pathlist *);

/* ---- walk through a directory ---- */

enum walk_kind {
    WALK_FILE,      /* a regular file */
    WALK_DIRECTORY, /* reported before its entries */
    WALK_OPAQUE, /* a directory for which is_opaque() is true; its entries are not reported */
    WALK_LINK,   /* a symbolic link, not followed */
    WALK_TEMPORARY, /* a temporary file or lock of a running or killed command */
    WALK_OTHER,
    WALK_ERROR, /* cannot be examined; also: a WALK_DIRECTORY that cannot be read to its end */
};

struct walk_entry {
    const char *path, *name; /* path begins with the root's path */
    enum walk_kind kind;
    const struct stat *st; /* NULL for WALK_ERROR */
    int error;             /* errno for WALK_ERROR */
};

/* Calls `each` for the root and all entries below it; a directory's entries come in the order
 * of limefile_natural_compare(). The root may be a link to a directory. `is_opaque` returns
 * true for a directory that is not to be entered; NULL: enters all. Ends and returns false if
 * `each` returns false, or after a message if memory is exhausted. Unlike fts(3), reports the
 * read errors of directories. */
bool walk_tree(const char *root, bool (*is_opaque)(const char *dir),
               bool (*each)(void *context, const struct walk_entry *), void *context);

/* Returns true for the name of a temporary file or lock of this project's commands. */
bool walk_is_temporary(const char *name);

#endif
