/*
 * balance.h - how evenly ranks would share a checkpoint's particles, by its index
 */
#ifndef CHECKPOINT_BALANCE_H
#define CHECKPOINT_BALANCE_H

#include "input.h"

struct checkpoint_balance {
    int ranks, empty; /* how many have none */
    double least, mean, most;
};

/* Collective: the work is divided. Of a regular decomposition the particles of a cell that is
 * cut count by volume, so it is an estimate. LEMON_SUCCESS, or an error on all ranks. */
int checkpoint_balance(const struct checkpoint_world *, const LemonCells *, int ranks,
                       enum checkpoint_decomposition, struct checkpoint_balance *);

/* Collective: the same of what each rank really has. */
void checkpoint_balance_of(const struct checkpoint_world *, int64_t count,
                           struct checkpoint_balance *);

#endif
