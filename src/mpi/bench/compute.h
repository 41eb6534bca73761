/*
 * compute.h - work for a processor
 */
#ifndef BENCH_COMPUTE_H
#define BENCH_COMPUTE_H

#include <mpi.h>

/* Arithmetic without memory: what is measured beside it is the transfer's own need of
 * processors. */
void bench_compute(double units);

/* How long a unit takes when all ranks compute, the same on each. Collective. */
double bench_compute_unit(MPI_Comm);

#endif
