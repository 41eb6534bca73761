/*
 * model.h - what a plan does on many ranks, without any I/O
 */
#ifndef BENCH_MODEL_H
#define BENCH_MODEL_H

/* `lime-bench model`, on one rank; argv[0] is "model". Returns the exit status. */
int bench_model(int argc, char **argv);

#endif
