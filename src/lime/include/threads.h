/* threads.h - run a function in several threads */
#ifndef LIMEFILE_THREADS_H
#define LIMEFILE_THREADS_H

/* Returns the number of processors that this process may use, at least 1. */
unsigned limefile_processors(void);

/* Calls `run` in `threads` threads at once, or in fewer if the system cannot create more, and
 * waits for all. The caller's thread is one of them, so at least that one runs. */
void limefile_run_threads(unsigned threads, void *(*run)(void *context), void *context);

#endif
