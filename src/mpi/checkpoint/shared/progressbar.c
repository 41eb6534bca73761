/* progressbar.c - a line that is rewritten in place */
#include "progressbar.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ANCESTORS = 4,
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

/* The parent of a process and its name. */
static bool parent_of(long pid, long *parent, char name[64])
{
    char path[64];
    int got = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        got = fscanf(file, "%*d (%63[^)]) %*c %ld", name, parent);
        fclose(file);
    }
    return got == 2;
}

static bool is_launcher(const char *name)
{
    static const char *const names[] = {"mpirun",          "mpiexec", "orterun", "prterun",
                                        "hydra_pmi_proxy", "srun",    NULL};
    for (int i = 0; names[i]; i++)
        if (strncmp(name, names[i], 15) == 0 || /* the kernel keeps 15 bytes */
            (strncmp(name, names[i], strlen(names[i])) == 0 && name[strlen(names[i])] == '.'))
            return true;
    return false;
}

/* mpirun gives its ranks pipes, and shows what comes out of them: so its own standard error
 * counts. */
static bool is_on_terminal(void)
{
    char name[64], path[64], target[256];
    long pid = getppid(), parent;
    if (isatty(2))
        return true;
    for (int i = 0; i < ANCESTORS && parent_of(pid, &parent, name) && is_launcher(name); i++) {
        snprintf(path, sizeof path, "/proc/%ld/fd/2", pid);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        if (strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0)
            return true;
        pid = parent;
    }
    return false;
}

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
    if (world->rank != 0 || quiet || !is_on_terminal())
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
