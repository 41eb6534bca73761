/* info_table.h - the table of `lime info --table`, a line for each gauge configuration
 *
 *     info_table_init        parses the names of the columns
 *     info_table_write       writes the cells of a file's lines, normally in a child process
 *     info_table_add         adds these cells to the table
 *     info_table_print       sorts and prints the lines
 *     info_table_release     frees the table */
#ifndef INFO_TABLE_H
#define INFO_TABLE_H

#include "limeildg.h"

#include <stdio.h>

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
    bool hides_empty; /* leaves out columns without any value */
    FILE *out;        /* collects `text`: all cells, each with a NUL, line after line */
    char *text;
    size_t bytes;
};

/* A file whose configurations are lines of the table. */
struct info_table_file {
    const char *path, *status; /* a word for its exit status */
    struct limefile_source *source;
    const struct limefile_index *index;
    const struct limefile_fields *fields;
};

/* columns: names separated by commas; NULL: the usual ones. sort: a name, with '-' before it
 * for descending order; NULL: the order of the files. Returns an exit status, after a message.
 */
int info_table_init(struct info_table *, const struct command *, const char *columns,
                    const char *sort);
void info_table_release(struct info_table *);

/* Writes a line for each configuration of the file or, if it is not good and has none, one line
 * without values. source NULL: the file could not be opened. Returns 0 or an error of a read.
 */
int info_table_write(const struct info_table *, const struct info_table_file *, FILE *out);

/* Adds n bytes that info_table_write() has written. */
void info_table_add(struct info_table *, const char *cells, size_t n);

/* Prints a header and the lines on stdout. Returns 0 or -ENOMEM. */
int info_table_print(struct info_table *, enum table_form);

#endif
