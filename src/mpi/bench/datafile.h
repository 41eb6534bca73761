/*
 * datafile.h - the files of data that lime-bench creates and removes
 */
#ifndef BENCH_DATAFILE_H
#define BENCH_DATAFILE_H

#include <stdbool.h>

/* Returns whether no file has the name; if one has, prints a message. An empty file counts,
 * too, as the measurement would remove it. */
bool bench_datafile_is_free(const char *path);

#endif
