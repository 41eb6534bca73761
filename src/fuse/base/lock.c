/* lock.c - locks, threads and the clock; with LOCKS=1 also checks of the lock order */
#include "lock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

void limefs_lock_init(struct limefs_lock *lock, enum limefs_lock_rank rank)
{
    pthread_mutex_init(&lock->mutex, NULL);
    lock->rank = rank;
}

void limefs_lock_destroy(struct limefs_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

void limefs_rwlock_init(struct limefs_rwlock *lock, enum limefs_lock_rank rank)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    lock->rank = rank;
}

void limefs_rwlock_destroy(struct limefs_rwlock *lock)
{
    pthread_rwlock_destroy(&lock->lock);
}

void limefs_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &clock);
    pthread_condattr_destroy(&clock);
}

int limefs_thread_start(pthread_t *thread, const pthread_attr_t *attributes,
                        void *(*start)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(thread, attributes, start, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

double limefs_clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct timespec limefs_clock_timespec(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    return time;
}

#ifdef LIMEFS_LOCKS

static _Thread_local unsigned held_ranks; /* one bit for each rank */

static const char *rank_name(unsigned rank)
{
    static const char *const names[] = {
        "dir",   "readahead", "node", "metadata", "append", "writer users", "writer",
        "close", "file",      "job",  "fs",       "checks", "work queue",   "log"};
    _Static_assert(sizeof names / sizeof names[0] == LIMEFS_LOCK_COUNT, "one for each rank");
    return names[rank];
}

static unsigned highest_rank(void)
{
    unsigned rank = 0;
    while (held_ranks >> rank >> 1)
        rank++;
    return rank;
}

/* A background daemon has no stderr; therefore tests/run sets LIMEFS_LOCK_REPORT. */
void limefs_report_violation(const char *rule)
{
    const char *path = getenv("LIMEFS_LOCK_REPORT");
    held_ranks = 0; /* opening the report is not checked */
    FILE *report = path ? fopen(path, "ae") : NULL;
    FILE *const outputs[] = {stderr, report};
    for (int i = 0; i < 2; i++)
        if (outputs[i])
            fprintf(outputs[i], "limefs: %s\n", rule);
    if (report)
        fclose(report);
    abort();
}

static void fail_lock_check(const char *step)
{
    char text[128];
    snprintf(text, sizeof text, "locks: %s while %s is held", step, rank_name(highest_rank()));
    limefs_report_violation(text);
}

void limefs_lockcheck_acquire(enum limefs_lock_rank rank)
{
    if (held_ranks >> rank)
        fail_lock_check(rank_name(rank));
    held_ranks |= 1u << rank;
}

void limefs_lockcheck_release(enum limefs_lock_rank rank)
{
    held_ranks &= ~(1u << rank);
}

/* tests/helpers/waits.c calls this before each call that may wait for a file system. */
void limefs_lockcheck_blocking(const char *call);
void limefs_lockcheck_blocking(const char *call)
{
    if (held_ranks >> LIMEFS_LOCK_JOB)
        fail_lock_check(call);
}

#endif
