/* progressbar.c - a line that is rewritten in place */
#include "progressbar.h"
#include "terminal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum {
    PAUSE_NS = 200 * 1000 * 1000,
};

static struct {
    pthread_mutex_t lock; /* of the line on the terminal, and of `wanted` */
    pthread_cond_t ended;
    pthread_t thread;
    bool wanted, visible;
    const char *what;
    int64_t total;
    double began;
    _Atomic int64_t done;
} bar = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void show(double seconds)
{
    double done = (double)atomic_load(&bar.done), total = (double)bar.total;
    double left = done > 0 && total > done ? seconds * (total - done) / done : 0;
    unsigned t = left < 1e6 ? (unsigned)(left + 0.5) : 0;
    if (bar.total > 0)
        fprintf(stderr, "\r\033[K%-8s %3.0f%%  %u:%02u left", bar.what,
                done < total ? 100 * done / total : 100, t / 60, t % 60);
    else
        fprintf(stderr, "\r\033[K%-8s %u:%02u", bar.what, (unsigned)seconds / 60,
                (unsigned)seconds % 60);
    bar.visible = true;
}

static void hide(void)
{
    if (bar.visible)
        fputs("\r\033[K", stderr);
    bar.visible = false;
}

static void *watch(void *unused)
{
    pthread_mutex_lock(&bar.lock);
    while (bar.wanted) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PAUSE_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&bar.ended, &bar.lock, &until);
        if (bar.wanted && now() - bar.began >= 1)
            show(now() - bar.began);
    }
    hide();
    pthread_mutex_unlock(&bar.lock);
    return unused;
}

void checkpoint_progress_begin(const struct checkpoint_world *world, const char *what,
                               int64_t total, bool quiet)
{
    checkpoint_progress_end();
    if (world->rank != 0 || quiet || !limefile_terminal_shows_errors())
        return;
    bar.what = what;
    bar.total = total;
    bar.began = now();
    atomic_store(&bar.done, 0);
    bar.wanted = true;
    if (pthread_create(&bar.thread, NULL, watch, NULL) != 0)
        bar.wanted = false;
}

void checkpoint_progress_to(int64_t done)
{
    atomic_store_explicit(&bar.done, done, memory_order_relaxed);
}

void checkpoint_progress_hide(void)
{
    pthread_mutex_lock(&bar.lock);
    hide();
    pthread_mutex_unlock(&bar.lock);
}

void checkpoint_progress_end(void)
{
    if (!bar.wanted)
        return;
    pthread_mutex_lock(&bar.lock);
    bar.wanted = false;
    pthread_cond_signal(&bar.ended);
    pthread_mutex_unlock(&bar.lock);
    pthread_join(bar.thread, NULL);
}
