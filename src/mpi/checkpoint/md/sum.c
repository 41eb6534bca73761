/* sum.c - sums of numbers with a fixed point: whole numbers, so no order changes them */
#include "md.h"

#include <math.h>

enum {
    FRACTION = 40, /* bits */
    SUMS_MAX = 8,
    PARTS = 3, /* of 32, 32 and 64 bits: sums of 2^31 ranks' do not overflow */
};

#define GREATEST 0x1p49

void md_sum_add(struct md_sum *sum, double value)
{
    if (value > -GREATEST && value < GREATEST)
        sum->value += (md_wide)(value * 0x1p40);
    else
        sum->bad = true;
}

static double to_double(md_wide value)
{
    return ldexp((double)value, -FRACTION);
}

void md_sum_all(struct md_sum *sum, int count, double *values)
{
    int64_t parts[SUMS_MAX * PARTS + 1];
    int n = 0;
    parts[n++] = 0;
    for (int i = 0; i < count; i++) {
        parts[0] += sum[i].bad ? INT64_C(1) << i : 0;
        parts[n++] = (int64_t)(sum[i].value & 0xffffffff);
        parts[n++] = (int64_t)((sum[i].value >> 32) & 0xffffffff);
        parts[n++] = (int64_t)(sum[i].value >> 64);
    }
    int64_t bad = parts[0];
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT64_T, MPI_BOR, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, parts + 1, n - 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        const int64_t *p = parts + 1 + PARTS * i;
        md_wide all = ((md_wide)p[2] * ((md_wide)1 << 64)) + ((md_wide)p[1] << 32) + p[0];
        values[i] = bad >> i & 1 ? (double)NAN : to_double(all);
    }
}
