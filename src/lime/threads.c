/* threads.c - run a function in several threads */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

unsigned limefile_processors(void)
{
    cpu_set_t set;
    long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                         : sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

void limefile_run_threads(unsigned threads, void *(*run)(void *context), void *context)
{
    pthread_t *others = calloc(threads, sizeof *others);
    unsigned started = 0;
    while (others && started + 1 < threads &&
           pthread_create(&others[started], NULL, run, context) == 0)
        started++;
    run(context);
    while (started)
        pthread_join(others[--started], NULL);
    free(others);
}
