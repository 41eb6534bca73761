/* cleanup.c - remove unfinished files when a signal ends the process */
#define _GNU_SOURCE
#include "limecleanup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
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
/* MPI's threads and others do not block the signals: the handler may run in one of them, while
 * the thread that writes the file is between limefile_cleanup_block() and
 * limefile_cleanup_unblock(). */
static atomic_bool is_in_section, is_ending;

static void clean_up_and_die(int number)
{
    is_ending = true;
    while (is_in_section)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (size_t i = 0; i < LIMEFILE_CLEANUP_MAX; i++)
        if (files[i].name)
            unlinkat(files[i].dir_fd, files[i].name, 0);
    if (cut_fd >= 0 && ftruncate(cut_fd, cut_end) != 0)
        cut_fd = -1; /* the user can still cut the file with 'lime repair' */
    signal(number, SIG_DFL);
    raise(number); /* ends the process on return, and the parent sees the true reason */
}

static void fill_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaddset(set, signals[i]);
}

static void install_handlers(void)
{
    static bool installed;
    for (size_t i = 0; !installed && i < SIGNAL_COUNT; i++) {
        struct sigaction old, new = {.sa_handler = clean_up_and_die};
        fill_set(&new.sa_mask);
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
    install_handlers(); /* before the file exists: other threads do not block the signals */
    fill_set(&blocked);
    pthread_sigmask(SIG_BLOCK, &blocked, before);
    is_in_section = true;
    while (is_ending) {
        is_in_section = false; /* the handler, in another thread, ends the process */
        pause();
    }
}

void limefile_cleanup_unblock(const sigset_t *before)
{
    is_in_section = false;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

bool limefile_cleanup_pending(void)
{
    sigset_t waiting;
    struct sigaction action;
    if (is_ending)
        return true;
    if (sigpending(&waiting) != 0)
        return false;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (sigismember(&waiting, signals[i]) == 1 &&
            sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            return true;
    return false;
}
