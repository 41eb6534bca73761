/* report.h - print the results as text and as JSON; all functions run on rank 0 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "measure.h"
#include "system.h"

#include <jansson.h>
#include <stdio.h>

/* The first prints what will be measured, the second the results. */
void bench_print_head(const struct bench_run *, const struct bench_system *, FILE *to);
void bench_print_results(const struct bench_run *, FILE *to);

/* Returns the parameters and the results as a new JSON object. */
json_t *bench_run_json(const struct bench_run *, const struct bench_system *);

#endif
