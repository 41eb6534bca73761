/*
 * report.h - results for people and for programs; by rank 0
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "measure.h"
#include "system.h"

#include <jansson.h>
#include <stdio.h>

/* What is measured, and the results, as text. */
void bench_text_head(const struct bench_run *, const struct bench_system *, FILE *to);
void bench_text_results(const struct bench_run *, FILE *to);

/* Both as a JSON object. */
json_t *bench_json_run(const struct bench_run *, const struct bench_system *);

#endif
