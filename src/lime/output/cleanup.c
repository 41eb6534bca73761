/* cleanup.c - remove unfinished files when a signal ends the process */
#define _GNU_SOURCE
#include "limecleanup.h"

#include <stddef.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

/* The handler reads an entry only if its name is set, so the name is written last. */
static struct {
    volatile int dir_fd;
    const char *volatile name;
} files[LIMEFILE_CLEANUP_MAX];
static volatile int cut_fd = -1;
static volatile off_t cut_end;

static void clean_up_and_die(int number)
{
    for (size_t i = 0; i < LIMEFILE_CLEANUP_MAX; i++)
        if (files[i].name)
            unlinkat(files[i].dir_fd, files[i].name, 0);
    if (cut_fd >= 0 && ftruncate(cut_fd, cut_end) != 0)
        cut_fd = -1; /* the user can still cut the file with 'lime repair' */
    signal(number, SIG_DFL);
    raise(number); /* ends the process on return, and the parent sees the true reason */
}

static void install_handlers(void)
{
    static bool installed;
    for (size_t i = 0; !installed && i < SIGNAL_COUNT; i++) {
        struct sigaction old, new = {.sa_handler = clean_up_and_die};
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &new, NULL); /* ignored signals stay ignored (nohup) */
    }
    installed = true;
}

void limefile_cleanup_add(int dir_fd, const char *name)
{
    size_t i = 0;
    install_handlers();
    while (i < LIMEFILE_CLEANUP_MAX && files[i].name)
        i++;
    if (i == LIMEFILE_CLEANUP_MAX)
        return;
    files[i].dir_fd = dir_fd;
    files[i].name = name;
}

void limefile_cleanup_remove(const char *name)
{
    for (size_t i = 0; i < LIMEFILE_CLEANUP_MAX; i++)
        if (files[i].name == name)
            files[i].name = NULL;
}

void limefile_cleanup_truncate(int fd, uint64_t end)
{
    install_handlers();
    cut_end = (off_t)end;
    cut_fd = fd;
}

void limefile_cleanup_clear(void)
{
    for (size_t i = 0; i < LIMEFILE_CLEANUP_MAX; i++)
        files[i].name = NULL;
    cut_fd = -1;
}

void limefile_cleanup_block(sigset_t *before)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaddset(&blocked, signals[i]);
    sigprocmask(SIG_BLOCK, &blocked, before);
}

void limefile_cleanup_unblock(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

bool limefile_cleanup_pending(void)
{
    sigset_t waiting;
    struct sigaction action;
    if (sigpending(&waiting) != 0)
        return false;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (sigismember(&waiting, signals[i]) == 1 &&
            sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            return true;
    return false;
}
