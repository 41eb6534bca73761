/* piecepass.h - a pass over a lattice of which no planes fit into memory; inside of
 * src/lime/formats */
#ifndef LIMEFILE_PIECEPASS_H
#define LIMEFILE_PIECEPASS_H

#include "limegauge.h"

/*
 * Does what limefile_gauge_run() does, in pieces of a few MiB: a lattice that is long in x has
 * planes of gigabytes. It reads the sites twice or more. Takes about 9 MiB a thread, whatever
 * the lattice. Results as of limefile_gauge_run(); plaquette and link trace can differ from
 * those of planes in their last digits.
 */
int piecepass_run(const struct limefile_gauge_pass *, struct limefile_gauge_totals *out);

#endif
