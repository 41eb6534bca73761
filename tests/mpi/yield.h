/*
 * yield.h - MPICH's idle ranks leave the processor to others
 *
 * They spin without ever yielding, and no setting changes that (4.0). With more ranks than
 * processors each message then waits for the scheduler's next tick, and a test that takes
 * seconds takes minutes. UCX is what MPICH asks for news while it waits: here it is asked by
 * way of this function, which yields when there are none. MPIs that are not over UCX don't call
 * it.
 */
#ifndef YIELD_H
#define YIELD_H

#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*real)(void *);
    if (!real)
        real = (unsigned (*)(void *))dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD),
                                           "ucp_worker_progress");
    unsigned news = real(worker);
    if (news == 0)
        sched_yield();
    return news;
}

#endif
