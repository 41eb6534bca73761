/* thread.c - threads of the daemon's own */
#include "thread.h"

#include <signal.h>

int limefs_thread_start(pthread_t *thread, const pthread_attr_t *attributes,
                        void *(*run)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(thread, attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}
