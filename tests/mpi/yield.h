/*
 * yield.h - make MPICH's idle ranks release the processor
 *
 * They spin without ever yielding, and no setting changes that (4.0). With more ranks than
 * processors each message then waits for the scheduler's next tick, and a test that takes
 * seconds takes minutes. MPICH polls UCX while it waits; this function replaces UCX's and
 * sleeps for a moment after a while without events (to yield is not enough if other programs
 * are busy). MPIs that do not use UCX don't call it.
 */
#ifndef YIELD_H
#define YIELD_H

#include <dlfcn.h>
#include <unistd.h>

unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*real)(void *);
    static _Thread_local int idle;
    if (!real)
        real = (unsigned (*)(void *))dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD),
                                           "ucp_worker_progress");
    unsigned news = real(worker);
    idle = news ? 0 : idle + 1;
    if (idle > 200)
        usleep(1);
    return news;
}

#endif
