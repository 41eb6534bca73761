/*
 * report.h - results for people and for programs; by rank 0
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "measure.h"
#include "system.h"

#include <jansson.h>
#include <stdio.h>

/* ---- text ---- */

/* What is measured, and the results. */
void bench_text_head(const struct bench_run *, const struct bench_system *, FILE *to);
void bench_text_results(const struct bench_run *, FILE *to);

/* The same as times: a heading, and a line without its end. */
void bench_text_times_heading(FILE *to);
void bench_text_times(const struct bench_run *, const struct bench_entry *,
                      enum bench_operation, bool named, FILE *to);

/* The median time as a multiple of what the back end of that name took; 0 if that is not
 * measured. */
double bench_time_ratio(const struct bench_run *, const struct bench_entry *,
                        enum bench_operation, const char *name);

/* "lattice 32 x 16 x 16 x 16 of 576-byte sites, grid 2 x 1 x 1 x 1" */
void bench_text_lattice(const struct bench_pattern *, FILE *to);

/* ", key=value" for each. */
void bench_text_hints(const struct bench_task *, FILE *to);

/* ---- a line that says what goes on: on a terminal, and not in the first seconds ---- */

/* Whether standard error, or that of the mpirun above, is a terminal. */
void bench_progress_start(const struct bench_options *, const struct bench_world *);
void bench_progress(const struct bench_run *, const struct bench_entry *, enum bench_operation,
                    int repetition);
void bench_progress_clear(void);

/* ---- JSON ---- */

/* An open file for --json, or NULL after a message; standard output for "-". */
FILE *bench_json_open(const char *name);

/* False after a message. The object is given away; the file is closed. */
bool bench_json_write(FILE *, const char *name, json_t *);

/* "program", "version", "time" and "system": what all objects begin with. */
json_t *bench_json_head(const struct bench_system *);

/* A list of numbers; a list of the lattice's 4. */
json_t *bench_json_numbers(const double *values, int n);
json_t *bench_json_extents(const int extents[BENCH_DIMS]);
json_t *bench_json_hints(const struct bench_task *);

json_t *bench_json_run(const struct bench_run *, const struct bench_system *);

#endif
