/*
 * lock.h - the daemon's locks, the order in which they are acquired, its threads, its clock.
 *
 * A thread that holds a lock acquires only locks of higher rank, so no two threads wait for
 * each other. A thread that holds a lock of rank LIMEFS_LOCK_JOB or higher does no file system
 * access: slow storage would block all lookups. In a build with LOCKS=1 (implied by sanitizers)
 * the daemon checks these rules and aborts with a message if it breaks one; in other builds
 * these are plain pthread locks. docs/architecture.md lists what each lock guards.
 */
#ifndef LIMEFS_LOCK_H
#define LIMEFS_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum limefs_lock_rank {
    LIMEFS_LOCK_DIR,          /* an open directory */
    LIMEFS_LOCK_READAHEAD,    /* blocks that are read ahead */
    LIMEFS_LOCK_NODE,         /* opening or indexing a container; setting a plain file's time */
    LIMEFS_LOCK_METADATA,     /* reading the metadata of a snapshot */
    LIMEFS_LOCK_APPEND,       /* offsets in a plain file that is appended to */
    LIMEFS_LOCK_WRITER_USERS, /* opening a writer for its first user, closing after the last */
    LIMEFS_LOCK_WRITER,       /* shared: to read or write data; exclusive: to change records */
    LIMEFS_LOCK_CLOSE,        /* waiting until a record is closed */
    LIMEFS_LOCK_FILE,         /* an open file's latest check (file.h) */
    LIMEFS_LOCK_JOB,          /* the MPI job; no I/O from this rank on */
    LIMEFS_LOCK_FS,           /* state of the mount (limefs.h) */
    LIMEFS_LOCK_CHECKS,       /* verdicts on the records of a container (verify/checks.h) */
    LIMEFS_LOCK_WORK_QUEUE,   /* slow requests (work.h) */
    LIMEFS_LOCK_LOG,          /* counting the lines that are logged */
    LIMEFS_LOCK_COUNT,
};

struct limefs_lock {
    pthread_mutex_t mutex;
    enum limefs_lock_rank rank;
};

/* A lock held shared or exclusively; a thread that waits for exclusive use has priority. */
struct limefs_rwlock {
    pthread_rwlock_t lock;
    enum limefs_lock_rank rank;
};

#ifdef LIMEFS_LOCKS
void limefs_lockcheck_acquire(enum limefs_lock_rank);
void limefs_lockcheck_release(enum limefs_lock_rank);

/* Reports a broken rule on stderr and in the file $LIMEFS_LOCK_REPORT, and aborts. Does nothing
 * in a build without LOCKS=1. */
void limefs_report_violation(const char *rule);
#else
static inline void limefs_lockcheck_acquire(enum limefs_lock_rank rank)
{
    (void)rank;
}
static inline void limefs_lockcheck_release(enum limefs_lock_rank rank)
{
    (void)rank;
}
static inline void limefs_report_violation(const char *rule)
{
    (void)rule;
}
#endif

void limefs_lock_init(struct limefs_lock *, enum limefs_lock_rank);
void limefs_lock_destroy(struct limefs_lock *);
void limefs_rwlock_init(struct limefs_rwlock *, enum limefs_lock_rank);
void limefs_rwlock_destroy(struct limefs_rwlock *);

/* Initializes a condition that uses the monotonic clock (limefs_clock_timespec()). */
void limefs_cond_init(pthread_cond_t *);

static inline void limefs_lock(struct limefs_lock *lock)
{
    limefs_lockcheck_acquire(lock->rank);
    pthread_mutex_lock(&lock->mutex);
}

static inline void limefs_unlock(struct limefs_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    limefs_lockcheck_release(lock->rank);
}

/* Both functions release the lock while they wait, and may return early: the caller must check
 * its condition again. limefs_cond_wait_until() returns false after the time `until`. */
static inline void limefs_cond_wait(pthread_cond_t *condition, struct limefs_lock *lock)
{
    pthread_cond_wait(condition, &lock->mutex);
}
static inline bool limefs_cond_wait_until(pthread_cond_t *condition, struct limefs_lock *lock,
                                          const struct timespec *until)
{
    return pthread_cond_timedwait(condition, &lock->mutex, until) == 0;
}

static inline void limefs_lock_shared(struct limefs_rwlock *lock)
{
    limefs_lockcheck_acquire(lock->rank);
    pthread_rwlock_rdlock(&lock->lock);
}

static inline void limefs_lock_exclusive(struct limefs_rwlock *lock)
{
    limefs_lockcheck_acquire(lock->rank);
    pthread_rwlock_wrlock(&lock->lock);
}

static inline void limefs_rwlock_unlock(struct limefs_rwlock *lock)
{
    pthread_rwlock_unlock(&lock->lock);
    limefs_lockcheck_release(lock->rank);
}

/* ---- threads and the clock ---- */

/* Like pthread_create(3), but returns 0 or -errno. The thread blocks all signals: only the main
 * thread gets them. It begins with the rights of the thread that starts it (credentials.h). */
int limefs_thread_start(pthread_t *, const pthread_attr_t *, void *(*function)(void *),
                        void *context);

/* Return the monotonic clock's time; convert such a time for limefs_cond_wait_until(). */
double limefs_clock_seconds(void);
struct timespec limefs_clock_timespec(double seconds);

#endif
