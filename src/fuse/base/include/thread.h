/* thread.h - threads of the daemon's own, beside those that serve requests */
#ifndef LIMEFS_THREAD_H
#define LIMEFS_THREAD_H

#include <pthread.h>

/* pthread_create(3), or -errno. Signals are for the loop, which they end: the thread gets none.
 * It begins with the rights of the one that starts it. */
int limefs_thread_start(pthread_t *, const pthread_attr_t *, void *(*run)(void *),
                        void *context);

#endif
