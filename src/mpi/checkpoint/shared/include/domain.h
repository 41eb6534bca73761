/*
 * domain.h - cells for those who do not want to think about them, and writing with a word to
 * the user
 */
#ifndef CHECKPOINT_DOMAIN_H
#define CHECKPOINT_DOMAIN_H

#include "output.h"
#include "molecule.h"

/* As many in each dimension; the library's limit is for all together. */
#define CHECKPOINT_CELLS_MAX 1e9

/* About cubes of 1000 particles each, at most 2^21 of them, whatever the number of ranks. */
void checkpoint_cells_choose(LemonDomain *, int64_t particles);

/* checkpoint_output_write() and _finish(), timed, with a progress bar, and shown unless quiet.
 * After false the output has still to be dropped. */
bool checkpoint_write_shown(const struct checkpoint_world *, struct checkpoint_output *,
                            const char *header, const LemonDomain *, const LemonParticle *,
                            const struct checkpoint_particles *, int flags, bool quiet);

#endif
