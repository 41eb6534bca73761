/* test_lock.c - the lock order that builds with LOCKS=1 check */
#ifndef LIMEFS_LOCKS
#define LIMEFS_LOCKS
#endif
#include "../../src/fuse/base/lock.c"

#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct limefs_lock node, job, fs;
static struct limefs_rwlock writer;

static int init_locks(void **state)
{
    (void)state;
    limefs_lock_init(&node, LIMEFS_LOCK_NODE);
    limefs_lock_init(&job, LIMEFS_LOCK_JOB);
    limefs_lock_init(&fs, LIMEFS_LOCK_FS);
    limefs_rwlock_init(&writer, LIMEFS_LOCK_WRITER);
    return 0;
}

AROUND_ALL(init_locks, NULL)

static void in_order(void)
{
    limefs_lock(&node);
    limefs_lock_shared(&writer);
    limefs_lock(&job);
    limefs_lock(&fs);
    limefs_unlock(&job); /* unlocked in any order */
    limefs_unlock(&fs);
    limefs_rwlock_unlock(&writer);
    limefs_lock_exclusive(&writer);
    limefs_lockcheck_blocking("open");
    limefs_rwlock_unlock(&writer);
    limefs_unlock(&node);
    limefs_lock(&node);
}

static void downwards(void)
{
    limefs_lock(&fs);
    limefs_lock(&job);
}

static void twice(void)
{
    limefs_lock_shared(&writer);
    limefs_lock_shared(&writer);
}

static void waits(void)
{
    limefs_lock(&node);
    limefs_lock(&fs);
    limefs_unlock(&node);
    limefs_lockcheck_blocking("fstat");
}

static void waits_elsewhere(void)
{
    limefs_lock(&job);
    limefs_unlock(&job);
    limefs_lockcheck_blocking("fstat");
}

/* Runs `what` in a quiet child without a core dump; returns whether it called abort(). */
static bool aborts(void (*what)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        unsetenv("LIMEFS_LOCK_REPORT");
        signal(SIGABRT, SIG_DFL);
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, 2);
        what();
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

TEST(test_order)
{
    assert_false(aborts(in_order));
    assert_true(aborts(downwards));
    assert_true(aborts(twice));
}

TEST(test_no_waiting)
{
    assert_true(aborts(waits));
    assert_false(aborts(waits_elsewhere));
}
