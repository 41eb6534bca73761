/* libc_functions.c - find the functions that the library overrides, in libc or elsewhere */
#define _GNU_SOURCE
#include "run.h"

#include <dlfcn.h>
#include <pthread.h>

#pragma weak pthread_testcancel /* missing without threads in glibc before 2.34 */
#pragma weak pthread_setcancelstate

static struct limefs_run_libc libc;
static atomic_bool ready;

#define FIND(member, name) *(void **)&libc.member = dlsym(RTLD_NEXT, name)

/* Several threads may do this at once: they store the same pointers. */
static void find_functions(void)
{
    FIND(open, "open");
    FIND(open_2, "__open_2");
    FIND(openat, "openat");
    FIND(openat_2, "__openat_2");
    FIND(close, "close");
    FIND(fclose, "fclose");
    FIND(freopen, "freopen");
    FIND(close_range, "close_range");
    FIND(closefrom, "closefrom");
    FIND(dup, "dup");
    FIND(dup2, "dup2");
    FIND(dup3, "dup3");
    FIND(fcntl, "fcntl");
    FIND(read, "read");
    FIND(pread, "pread");
    FIND(read_chk, "__read_chk");
    FIND(pread_chk, "__pread_chk");
    FIND(readv, "readv");
    FIND(preadv, "preadv");
    FIND(preadv2, "preadv2");
    atomic_store(&ready, true);
}

const struct limefs_run_libc *limefs_run_libc(void)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire))
        find_functions(); /* called by another library's constructor before ours has run */
    return &libc;
}

void limefs_run_test_cancel(void)
{
    if (pthread_testcancel)
        pthread_testcancel();
}

int limefs_run_disable_cancel(void)
{
    int before = 0;
    if (pthread_setcancelstate)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void limefs_run_restore_cancel(int before)
{
    if (pthread_setcancelstate)
        pthread_setcancelstate(before, NULL);
}

void limefs_run_block_interrupts(struct limefs_run_interrupts *quiet)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &quiet->signals);
    quiet->cancel = limefs_run_disable_cancel();
}

void limefs_run_restore_interrupts(const struct limefs_run_interrupts *quiet)
{
    limefs_run_restore_cancel(quiet->cancel);
    sigprocmask(SIG_SETMASK, &quiet->signals, NULL);
}
