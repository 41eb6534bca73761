/*
 * progressbar.h - "write     42%  0:07 left" on a terminal, for what takes longer than a second
 */
#ifndef CHECKPOINT_PROGRESSBAR_H
#define CHECKPOINT_PROGRESSBAR_H

#include "world.h"

/* From now on rank 0 shows what it does, and how far it is itself of `total`; 0: nobody knows.
 * Nothing is shown if quiet, or where standard error is no terminal. Local, as all here. A
 * thread shows it: it calls nothing of MPI. */
void checkpoint_progress_begin(const struct checkpoint_world *, const char *what, int64_t total,
                               bool quiet);
void checkpoint_progress_to(int64_t done);

/* Before something else is printed; it comes again. */
void checkpoint_progress_hide(void);

void checkpoint_progress_end(void);

#endif
