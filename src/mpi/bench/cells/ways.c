/* ways.c - which ways there are */
#include "ways.h"
#include "cells.h"

/* What the Makefile leaves out says why. */
#ifdef BENCH_WITHOUT_PNETCDF
static const char *no_pnetcdf(void)
{
    return BENCH_WITHOUT_PNETCDF;
}
const struct bench_backend bench_way_pnetcdf = {
    .name = "pnetcdf", .about = "PnetCDF, a variable for each cell", .absent = no_pnetcdf};
#endif

const struct bench_backend *const bench_cells_ways[] = {&bench_way_posix,   &bench_way_lime,
                                                        &bench_way_ascii,   &bench_way_binary,
                                                        &bench_way_pnetcdf, NULL};
