/* threads.h - the same work by several threads */
#ifndef LIMEFILE_THREADS_H
#define LIMEFILE_THREADS_H

/* That this process may use: 1 or more. */
unsigned limefile_processors(void);

/* Calls `run` from so many threads at once, or fewer if there are not so many to be had, and
 * waits for all. The caller is one of them, so that it works without any other, too. */
void limefile_run_threads(unsigned threads, void *(*run)(void *context), void *context);

#endif
