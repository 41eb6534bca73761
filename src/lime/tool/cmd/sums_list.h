/* sums_list.h - read and write lists of the sums of files, a line each, in the formats of
 * md5sum(1), sha256sum(1), cksum(1) and xrdadler32(1)
 *
 * A path in a list is absolute, or relative to the directory of the list. */
#ifndef SUMS_LIST_H
#define SUMS_LIST_H

#include "limeoutput.h"
#include "sums.h"

struct sums_entry {
    char *path; /* owned */
    enum stage_sum_kind kind;
    char sum[STAGE_SUM_CHARS]; /* as stage_digest_format() prints it */
};

struct sums_list {
    struct sums_entry *entries; /* in the order of the list */
    size_t count, capacity;
    size_t *sorted; /* entries by path, of those that sums_list_resolve() found */
    size_t sorted_count;
    unsigned kinds; /* of all entries */
};

/* The names of the kinds of sums, and NULL; sum_words[i] is the kind 1 << i. */
extern const char *const sum_words[];

/* Returns the path with links in its directory resolved, or a copy of the path if the directory
 * does not exist. NULL: memory is exhausted. The caller frees the result. */
char *sums_resolve_path(const char *path);

/* Returns the directory of such a path of the list `name`, with a '/' at its end. */
char *sums_list_directory(const char *name);

/* Reads a list; "-": standard input. The paths are those in the list. Returns TOOL_GOOD, or
 * TOOL_UNUSABLE after a message; the valid lines are in the list. Call sums_list_release(). */
int sums_list_read(struct sums_list *, const char *name);

/* Replaces each path by dir/path, and sorts the entries. below: if true, absolute paths and
 * those with ".." also become paths below `dir`, and the leading directories that all paths
 * share are left out as far as `dir` does not have them; if false, absolute paths stay. Returns
 * false, after a message, if memory is exhausted. */
bool sums_list_resolve(struct sums_list *, const char *dir, bool below);

/* Returns the number of entries with this path, which are consecutive in `sorted`, and sets
 * *first to the subscript of the first of them in `sorted`. */
size_t sums_list_find(const struct sums_list *, const char *path, size_t *first);

void sums_list_release(struct sums_list *);

/* ---- writing ---- */

struct sums_output {
    struct limefile_output file;
    struct sums_list list; /* the paths are those of sums_resolve_path() */
    char *directory;       /* sums_list_directory() */
    const char *name;
    bool is_stdout; /* the name is "-" */
};

/* Prepares to write a list; "-": to standard output. A file that exists must be a list, or
 * empty. update: keeps its entries that are not set again; else `force` is required to replace
 * it. Returns an exit status, after a message if it is not TOOL_GOOD; then nothing is open. */
int sums_output_open(struct sums_output *, const char *name, bool update, bool force);

/* Adds the sum of a file, or replaces it. Returns false, after a message, if memory is
 * exhausted. */
bool sums_output_set(struct sums_output *, const char *path, enum stage_sum_kind,
                     const char *sum);

/* Writes the list, unless it is empty, and releases it. Returns an exit status. */
int sums_output_commit(struct sums_output *);

#endif
