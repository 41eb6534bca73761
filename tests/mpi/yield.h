/*
 * yield.h - MPICH's idle ranks leave the processor to others
 *
 * They spin without ever yielding, and no setting changes that (4.0). With more ranks than
 * processors each message then waits for the scheduler's next tick, and a test that takes
 * seconds takes minutes. UCX is what MPICH asks for news while it waits: here it is asked by
 * way of this function, which sleeps a moment when there have been none for a while (to yield
 * is not enough where other programs are busy). MPIs that are not over UCX don't call it.
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
