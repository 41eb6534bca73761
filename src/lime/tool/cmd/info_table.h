/* info_table.h - the table of `lime info --table`, a line for each gauge configuration
 *
 *     info_table_init      parses the names of the columns
 *     info_table_write     writes the lines of a file, normally in a child process
 *     info_table_print     sorts and prints the lines of all files
 *     info_table_release   frees the table */
#ifndef INFO_TABLE_H
#define INFO_TABLE_H

#include "limeildg.h"

#include <stdatomic.h>

struct command;

enum { TABLE_COLUMNS_MAX = 64 };

enum table_form { TABLE_ALIGNED, TABLE_CSV, TABLE_TSV };

struct table_column {
    char *name;                     /* owned */
    const struct known_column *how; /* how to find the value */
};

struct info_table {
    struct table_column columns[TABLE_COLUMNS_MAX];
    size_t count, shown; /* a column that is not shown has the values to sort by */
    size_t sort;         /* index of the column to sort by; SIZE_MAX: keeps the order */
    bool is_descending;
    bool hides_empty;          /* leaves out columns without any value */
    int spool;                 /* a memfd with the cells of all lines, each with a NUL */
    atomic_uint_fast64_t *end; /* of the spool, in memory shared with child processes */
};

/* Where the spool has the lines of a file. */
struct info_table_lines {
    uint64_t offset, bytes;
};

/* A file whose configurations are lines of the table. */
struct info_table_file {
    const char *path, *status; /* a word for its exit status */
    const char *format;        /* container.h; NULL: a LIME container */
    struct limefile_source *source;
    const struct limefile_index *index;
    const struct limefile_fields *fields;
};

/* The names of columns, for the rules of options that take them. */
#define INFO_TABLE_COLUMNS                                                                    \
    OPTION_WORDS("file", "status", "record", "type", "lattice", "precision", "bytes", "beta", \
                 "kappa", "mu", "mass", "csw", "u0", "trajectory", "plaquette", "linktrace",  \
                 "checksum", "sums", "ensemble", "program", "date", "lfn")

/* columns: names separated by commas; NULL: the usual ones. sort: a name, with '-' before it
 * for descending order; NULL: the order of the files. Returns an exit status, after a message.
 */
int info_table_init(struct info_table *, const struct command *, const char *columns,
                    const char *sort);
void info_table_release(struct info_table *);

/* Writes a line for each configuration of the file or, if it is not good and has none, one line
 * without values. source NULL: the file could not be opened. Returns 0 or an error. */
int info_table_write(const struct info_table *, const struct info_table_file *,
                     struct info_table_lines *out);

/* Prints a header and the lines of `count` files on stdout. Returns 0 or an error. */
int info_table_print(const struct info_table *, const struct info_table_lines *, size_t count,
                     enum table_form);

#endif
