/*
 * ending.c - an orderly end: who watches containers is told before requests are dropped
 *
 * When libfuse's loop ends it drops requests that its threads have read already, and with the
 * descriptor of such a thread the program that waits for the answer goes on. For the close(2)
 * of a descriptor (FLUSH) that would be too early (closing.c). So a signal does not end the
 * loop: it wakes a thread, which tells all who have asked, while requests are still served, and
 * then sends the loop's thread the signal once more.
 */
#define _GNU_SOURCE
#include "ending.h"
#include "file.h"
#include "thread.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

enum phase {
    NO_LOOP,
    LOOP,
    TOLD,
    OVER,
};

static struct limefs *daemon_of; /* set before there are handlers */
static struct fuse_session *session;
static atomic_int phase = NO_LOOP;
static atomic_int ended_by; /* the signal; 0: none */
static sem_t wanted;
static pthread_t loop_thread, thread;

static void on_signal(int number)
{
    int kept = errno;
    atomic_store(&ended_by, number);
    if (atomic_load(&phase) == LOOP)
        sem_post(&wanted);
    else
        fuse_session_exit(session);
    errno = kept;
}

/* Those that are `from`. */
static int set_handlers(void (*from)(int), void (*to)(int))
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction action = {.sa_handler = to}, before;
        if (sigaction(signals[i], NULL, &before) != 0 ||
            (before.sa_handler == from && sigaction(signals[i], &action, NULL) != 0))
            return -errno;
    }
    return 0;
}

/* The loop may be about to wait, and have looked before whether it is to end: so it is sent the
 * signal until it has ended. */
static void *tell(void *unused)
{
    const struct timespec again = {0, 10000000};
    (void)unused;
    while (sem_wait(&wanted) != 0)
        ;
    limefs_files_end_closing(daemon_of);
    int number = atomic_load(&ended_by), before = LOOP;
    atomic_compare_exchange_strong(&phase, &before, TOLD);
    while (number && atomic_load(&phase) == TOLD) {
        pthread_kill(loop_thread, number);
        nanosleep(&again, NULL);
    }
    return NULL;
}

int limefs_ending_catch(struct limefs *fs, struct fuse_session *of)
{
    daemon_of = fs;
    session = of;
    return set_handlers(SIG_DFL, on_signal);
}

int limefs_ending_begin(void)
{
    if (sem_init(&wanted, 0, 0) != 0)
        return -errno;
    loop_thread = pthread_self();
    atomic_store(&phase, LOOP);
    int err = limefs_thread_start(&thread, NULL, tell, NULL);
    if (err)
        atomic_store(&phase, NO_LOOP);
    return err;
}

void limefs_ending_end(void)
{
    atomic_store(&phase, OVER);
    sem_post(&wanted);
    pthread_join(thread, NULL);
}

void limefs_ending_release(void)
{
    set_handlers(on_signal, SIG_DFL);
}
