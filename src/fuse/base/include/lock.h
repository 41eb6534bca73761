/*
 * lock.h - the daemon's locks, the one order in which they are taken, its threads and its
 * clock.
 *
 * A thread that holds a lock takes only locks of higher rank, so no two threads ever wait for
 * each other. Under the ranks from LIMEFS_LOCK_JOB on nobody touches a file system: a store
 * that hangs would stop whoever wants to look up anything. Built with LOCKS=1 (as with
 * sanitizers), the daemon ends with a message where either, or another rule of its own, is
 * broken; else these are the system's own locks. docs/architecture.md says what each guards.
 */
#ifndef LIMEFS_LOCK_H
#define LIMEFS_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum limefs_rank {
    LIMEFS_LOCK_DIR,   /* an open directory */
    LIMEFS_LOCK_AHEAD, /* what is read ahead */
    LIMEFS_LOCK_NODE,  /* a container that is opened or indexed; a plain file that is dated */
    LIMEFS_LOCK_DESCRIBING, /* a view whose metadata are read */
    LIMEFS_LOCK_APPEND,     /* where the bytes of a plain file are */
    LIMEFS_LOCK_LIFE,       /* of a writer: who is its first or last user */
    LIMEFS_LOCK_WRITER,     /* shared: bytes are moved; alone: records are */
    LIMEFS_LOCK_PARTING,    /* who waits for a record to be closed */
    LIMEFS_LOCK_FILE,       /* an open file's stream and last check */
    LIMEFS_LOCK_JOB,        /* from here on no I/O */
    LIMEFS_LOCK_FS,
    LIMEFS_LOCK_PROOFS,
    LIMEFS_LOCK_ERRANDS,
    LIMEFS_LOCK_LOG, /* but a line to stderr or the system's log */
    LIMEFS_LOCK_COUNT,
};

struct limefs_lock {
    pthread_mutex_t mutex;
    enum limefs_rank rank;
};

/* Shared, or alone; who wants it alone comes first. */
struct limefs_rwlock {
    pthread_rwlock_t lock;
    enum limefs_rank rank;
};

#ifdef LIMEFS_LOCKS
void limefs_lock_taken(enum limefs_rank);
void limefs_lock_left(enum limefs_rank);

/* A rule of the daemon's own was broken: said where tests look for it, and the end. */
void limefs_broken(const char *rule);
#else
static inline void limefs_lock_taken(enum limefs_rank rank)
{
    (void)rank;
}
static inline void limefs_lock_left(enum limefs_rank rank)
{
    (void)rank;
}
static inline void limefs_broken(const char *rule)
{
    (void)rule;
}
#endif

void limefs_lock_init(struct limefs_lock *, enum limefs_rank);
void limefs_lock_destroy(struct limefs_lock *);
void limefs_rwlock_init(struct limefs_rwlock *, enum limefs_rank);
void limefs_rwlock_destroy(struct limefs_rwlock *);

/* A condition that goes by the clock that nobody sets (limefs_clock_time()). */
void limefs_condition_init(pthread_cond_t *);

static inline void limefs_lock(struct limefs_lock *lock)
{
    limefs_lock_taken(lock->rank);
    pthread_mutex_lock(&lock->mutex);
}

static inline void limefs_unlock(struct limefs_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    limefs_lock_left(lock->rank);
}

/* The lock is let go meanwhile; false: it is later than `until`. */
static inline void limefs_wait(pthread_cond_t *condition, struct limefs_lock *lock)
{
    pthread_cond_wait(condition, &lock->mutex);
}
static inline bool limefs_wait_until(pthread_cond_t *condition, struct limefs_lock *lock,
                                     const struct timespec *until)
{
    return pthread_cond_timedwait(condition, &lock->mutex, until) == 0;
}

static inline void limefs_share(struct limefs_rwlock *lock)
{
    limefs_lock_taken(lock->rank);
    pthread_rwlock_rdlock(&lock->lock);
}

static inline void limefs_take(struct limefs_rwlock *lock)
{
    limefs_lock_taken(lock->rank);
    pthread_rwlock_wrlock(&lock->lock);
}

static inline void limefs_leave(struct limefs_rwlock *lock)
{
    pthread_rwlock_unlock(&lock->lock);
    limefs_lock_left(lock->rank);
}

/* ---- threads and the clock ---- */

/* pthread_create(3), or -errno. Signals are for the loop, which they end: the thread gets none.
 * It begins with the rights of the one that starts it. */
int limefs_thread_start(pthread_t *, const pthread_attr_t *, void *(*run)(void *),
                        void *context);

/* Seconds of a clock that nobody sets, since some moment; and as limefs_wait_until() has them.
 */
double limefs_seconds(void);
struct timespec limefs_clock_time(double seconds);

#endif
