/* guard.c - remove unfinished files when a signal ends the process */
#define _GNU_SOURCE
#include "limeguard.h"

#include <stddef.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

#define SIGNALS (sizeof signals / sizeof signals[0])

/* The handler reads an entry only if its name is set, so the name is written last. */
static struct {
    volatile int dir_fd;
    const char *volatile name;
} guarded[LIMEFILE_GUARDS_MAX];
static volatile int guarded_fd = -1;
static volatile off_t guarded_end;

static void remove_and_die(int number)
{
    for (size_t i = 0; i < LIMEFILE_GUARDS_MAX; i++)
        if (guarded[i].name)
            unlinkat(guarded[i].dir_fd, guarded[i].name, 0);
    if (guarded_fd >= 0 && ftruncate(guarded_fd, guarded_end) != 0)
        guarded_fd = -1; /* if that fails, lime repair cuts it */
    signal(number, SIG_DFL);
    raise(number); /* delivered on return, so that the parent sees the true reason */
}

static void catch_signals(void)
{
    static bool done;
    for (size_t i = 0; !done && i < SIGNALS; i++) {
        struct sigaction old, new = {.sa_handler = remove_and_die};
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &new, NULL); /* ignored signals stay ignored (nohup) */
    }
    done = true;
}

void limefile_guard_set(int dir_fd, const char *name)
{
    size_t i = 0;
    catch_signals();
    while (i < LIMEFILE_GUARDS_MAX && guarded[i].name)
        i++;
    if (i == LIMEFILE_GUARDS_MAX)
        return;
    guarded[i].dir_fd = dir_fd;
    guarded[i].name = name;
}

void limefile_guard_remove(const char *name)
{
    for (size_t i = 0; i < LIMEFILE_GUARDS_MAX; i++)
        if (guarded[i].name == name)
            guarded[i].name = NULL;
}

void limefile_guard_end(int fd, uint64_t end)
{
    catch_signals();
    guarded_end = (off_t)end;
    guarded_fd = fd;
}

void limefile_guard_lift(void)
{
    for (size_t i = 0; i < LIMEFILE_GUARDS_MAX; i++)
        guarded[i].name = NULL;
    guarded_fd = -1;
}

void limefile_guard_hold(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&held, signals[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}

void limefile_guard_release(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

bool limefile_guard_waits(void)
{
    sigset_t waiting;
    struct sigaction action;
    if (sigpending(&waiting) != 0)
        return false;
    for (size_t i = 0; i < SIGNALS; i++)
        if (sigismember(&waiting, signals[i]) == 1 &&
            sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            return true;
    return false;
}
