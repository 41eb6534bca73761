/* lattice.h - random lattices over grids of ranks, for the parts of Lemon without MPI */
#ifndef LATTICE_H
#define LATTICE_H

#include <stdlib.h>
#include <string.h>

#include "suite.h"

#include "grid.h"
#include "splitmix64.h"

enum {
    LATTICE_DIMS = 6,
    LATTICE_RANKS = 24,
};

struct lattice {
    int ranks;
    int64_t bytes;
    struct lemon_grid division;
    struct lemon_box boxes[LATTICE_RANKS];
};

/* The same numbers in every run, so that a failure can be reproduced. */
static uint64_t chance = 1;

static inline uint64_t chance_below(uint64_t n)
{
    return mix64(chance += MIX64_STEP) % n;
}

/* Returns the number of attempts of a test. */
static inline int chance_times(int n)
{
    return getenv("STRESS") && *getenv("STRESS") ? 20 * n : n;
}

static inline void shuffle(int *mapping, int n)
{
    for (int i = 0; i < n; i++)
        mapping[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)chance_below((uint64_t)i + 1), other = mapping[j];
        mapping[j] = mapping[i];
        mapping[i] = other;
    }
}

/* 1 to 6 dimensions, each divided among 1 to 3 ranks (or more than sites), in any order. */
static inline void lattice_by_chance(struct lattice *lattice, int64_t sites_max, int site_max)
{
    int dims = 1 + (int)chance_below(LATTICE_DIMS), mapping[LATTICE_DIMS];
    int grid[LATTICE_DIMS], extent[LATTICE_DIMS], at[LATTICE_DIMS] = {0};
    int64_t sites = 1, site_bytes = 1 + (int64_t)chance_below(site_max);
    lattice->ranks = 1;
    shuffle(mapping, dims);
    for (int d = 0; d < dims; d++) {
        grid[d] = 1 + (int)chance_below(3);
        extent[d] = 1 + (int)chance_below(dims < 3 ? 40 : 8);
        if (lattice->ranks * grid[d] > LATTICE_RANKS)
            grid[d] = 1;
        if (sites * extent[d] > sites_max)
            extent[d] = 1;
        lattice->ranks *= grid[d];
        sites *= extent[d];
    }
    lattice->bytes = sites * site_bytes;
    lemon_grid_init(&lattice->division, dims, site_bytes, extent, grid, mapping);
    for (int rank = 0; rank < lattice->ranks; rank++) {
        struct lemon_box *box = &lattice->boxes[rank];
        *box = (struct lemon_box){.dims = dims, .site_bytes = site_bytes};
        for (int i = 0; i < dims; i++) {
            int d = mapping[i];
            box->extent[i] = extent[d];
            lemon_box_split(extent[d], grid[d], at[d], &box->start[i], &box->sites[i]);
        }
        for (int d = dims - 1; d >= 0; d--) { /* ranks are numbered as in MPI */
            if (++at[d] < grid[d])
                break;
            at[d] = 0;
        }
    }
}

#endif
