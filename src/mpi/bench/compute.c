/* compute.c - work for a processor */
#include "compute.h"

enum {
    CALIBRATION = 100, /* units */
};

static volatile double sink;

void bench_compute(double units)
{
    double x = sink;
    for (long i = 0; i < (long)(units * 1e6); i++)
        x = x * 0.999999 + 1e-6;
    sink = x;
}

double bench_compute_unit(MPI_Comm comm)
{
    MPI_Barrier(comm);
    double seconds = MPI_Wtime();
    bench_compute(CALIBRATION);
    MPI_Barrier(comm);
    seconds = MPI_Wtime() - seconds;
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, comm);
    return seconds / CALIBRATION;
}
