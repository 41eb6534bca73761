/* test_cleanup.c - unfinished files are removed, whichever thread handles the signal */
#define _GNU_SOURCE
#include "unit.h"
#include "limecleanup.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

static void *wait_for_signals(void *is_running)
{
    if (is_running)
        sem_post(is_running);
    while (pause() < 0)
        ;
    return NULL;
}

/* The signal comes before the first guard; the thread that creates the file delays it. */
static void create_and_end(const char *path, bool with_thread)
{
    sigset_t before;
    pthread_t thread;
    sem_t is_running;
    sem_init(&is_running, 0, 0);
    if (with_thread && (pthread_create(&thread, NULL, wait_for_signals, &is_running) != 0 ||
                        sem_wait(&is_running) != 0))
        _exit(1);
    limefile_cleanup_block(&before);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    kill(getpid(), SIGTERM);
    while (!limefile_cleanup_pending())
        usleep(1000);
    if (fd < 0 || access(path, F_OK) != 0)
        _exit(2);
    limefile_cleanup_add(AT_FDCWD, path);
    limefile_cleanup_unblock(&before);
    wait_for_signals(NULL);
}

static void file_is_removed(bool with_thread)
{
    int status;
    char directory[] = "/tmp/test_cleanup-XXXXXX", path[sizeof directory + 2];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/f", directory);
    pid_t child = fork();
    if (child == 0)
        create_and_end(path, with_thread);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(rmdir(directory), 0);
}

TEST(test_one_thread)
{
    file_is_removed(false);
}

TEST(test_another_thread_handles_the_signal)
{
    file_is_removed(true);
}
