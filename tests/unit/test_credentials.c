/* test_credentials.c - a thread takes on a caller's credentials and returns to its own */
#define _GNU_SOURCE
#include "unit.h"
#include "credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    USER = 54321,
    GROUP = 54322,
    EXTRA = 54323,
};

static struct limefs shared = {.options = {.serves_others = 1}};
static char directory[] = "/tmp/test_caller-XXXXXX";

void limefs_log(int priority, const char *format, ...)
{
    (void)priority;
    (void)format;
}

/* ---- a process that makes requests ---- */

struct process {
    pid_t pid;
    int end; /* the process exits when it is closed */
};

static struct process start_process(size_t count, const gid_t *groups)
{
    int ready[2], end[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(end[1]);
        if (setgroups(count, groups) == 0 && setresgid(GROUP, GROUP, GROUP) == 0 &&
            setresuid(USER, USER, USER) == 0 && write(ready[1], "", 1) == 1)
            while (read(end[0], &byte, 1) < 0 && errno == EINTR)
                ;
        _exit(0);
    }
    close(ready[1]);
    close(end[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return (struct process){pid, end[1]};
}

static void end_process(struct process process)
{
    close(process.end);
    assert_int_equal(waitpid(process.pid, NULL, 0), process.pid);
}

/* ---- the credentials of the thread ---- */

static uint64_t effective(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    return (uint64_t)data[1].effective << 32 | data[0].effective;
}

/* The capabilities of root itself, which a container may restrict. */
static bool had_resource, had_admin;

static bool has(unsigned capability)
{
    return effective() >> capability & 1;
}

static uid_t fsuid(void)
{
    return (uid_t)syscall(SYS_setfsuid, -1);
}

static bool has_group(gid_t group)
{
    gid_t groups[64];
    int n = (int)syscall(SYS_getgroups, 64, groups);
    for (int i = 0; i < n; i++)
        if (groups[i] == group)
            return true;
    return false;
}

static int file_of(const char *name, mode_t mode, uid_t uid, gid_t gid)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchown(fd, uid, gid), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    return fd;
}

/* ---- tests ---- */

/* As at the end of the main thread's last request. */
static int release(void **state)
{
    (void)state;
    limefs_creds_release();
    return has(CAP_SYS_RESOURCE) == had_resource ? 0 : -1;
}

/* A thread that existed before keeps its credentials. */
struct watcher {
    pthread_barrier_t begun;
    uid_t fsuid;
    mode_t mask;
    bool has_resource;
};

static void *watch(void *data)
{
    struct watcher *watcher = data;
    pthread_barrier_wait(&watcher->begun);
    watcher->fsuid = fsuid();
    watcher->has_resource = has(CAP_SYS_RESOURCE);
    watcher->mask = umask(022);
    return NULL;
}

/* This test is first, as the others change what a new thread inherits. */
TEST_WITH(threads, NULL, release)
{
    pthread_t thread;
    struct watcher watcher;
    const struct limefs_caller caller = {USER, GROUP, 0, 077};
    pthread_barrier_init(&watcher.begun, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, watch, &watcher), 0);
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, true), 0);
    pthread_barrier_wait(&watcher.begun);
    assert_int_equal(pthread_join(thread, NULL), 0);
    limefs_caller_creds_leave();
    assert_int_equal(watcher.fsuid, 0);
    assert_int_equal(watcher.has_resource, had_resource);
    assert_int_not_equal(watcher.mask, 077);
    pthread_barrier_destroy(&watcher.begun);
}

TEST_WITH(beginning_and_end, NULL, release)
{
    const gid_t groups[] = {EXTRA, 7};
    struct process process = start_process(2, groups);
    const struct limefs_caller caller = {USER, GROUP, process.pid, 0};
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, false), 0);
    assert_int_equal(limefs_creds_uid(), USER);
    assert_int_equal(fsuid(), USER);
    assert_int_equal(syscall(SYS_setfsgid, -1), GROUP);
    assert_true(has_group(EXTRA) && has_group(7));
    assert_false(has(CAP_DAC_OVERRIDE) || has(CAP_CHOWN) || has(CAP_FOWNER));
    assert_false(has(CAP_SYS_RESOURCE) || has(CAP_SYS_ADMIN) || has(CAP_DAC_READ_SEARCH));
    limefs_daemon_creds_enter();
    limefs_daemon_creds_enter();
    assert_int_equal(fsuid(), 0);
    assert_true(has(CAP_DAC_OVERRIDE));
    limefs_daemon_creds_leave();
    assert_int_equal(fsuid(), 0);
    limefs_daemon_creds_leave();
    assert_int_equal(fsuid(), USER);
    limefs_caller_creds_leave();
    assert_int_equal(fsuid(), 0);
    assert_true(has(CAP_DAC_OVERRIDE) && has(CAP_CHOWN));
    assert_false(has(CAP_SYS_RESOURCE)); /* not in a thread that serves requests */
    limefs_caller_creds_leave();         /* a second call has no effect */
    limefs_daemon_creds_enter();
    limefs_daemon_creds_leave();
    assert_int_equal(fsuid(), 0);
    end_process(process);
}

TEST_WITH(permissions, NULL, release)
{
    static const struct {
        mode_t mode;
        uid_t uid;
        gid_t gid;
        int reads, writes;
    } rows[] = {
        {0600, 0, 0, -EACCES, -EACCES},
        {0644, 0, 0, 0, -EACCES},
        {0600, USER, 0, 0, 0},
        {0400, USER, 0, 0, -EACCES},
        {0060, USER, GROUP, -EACCES, -EACCES},
        {0660, 0, GROUP, 0, 0},
        {0640, 0, EXTRA, 0, -EACCES},
        {0604, 0, EXTRA, -EACCES, -EACCES},
        {0606, 0, 0, 0, 0},
        {0000, USER, GROUP, -EACCES, -EACCES},
    };
    const gid_t groups[] = {EXTRA};
    struct process process = start_process(1, groups);
    const struct limefs_caller caller = {USER, GROUP, process.pid, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd = file_of("file", rows[i].mode, rows[i].uid, rows[i].gid);
        assert_int_equal(limefs_creds_check_access(fd, R_OK | W_OK), 0); /* the daemon's */
        assert_int_equal(limefs_caller_creds_enter(&shared, &caller, false), 0);
        assert_int_equal(limefs_creds_check_access(fd, R_OK), rows[i].reads);
        assert_int_equal(limefs_creds_check_access(fd, W_OK), rows[i].writes);
        limefs_daemon_creds_enter();
        assert_int_equal(limefs_creds_check_access(fd, W_OK), 0);
        limefs_daemon_creds_leave();
        limefs_caller_creds_leave();
        close(fd);
    }
    end_process(process);
}

/* A caller with an unknown PID has no groups; one that has exited gets EACCES. */
TEST_WITH(unknown_callers, NULL, release)
{
    const gid_t groups[] = {EXTRA};
    struct process process = start_process(1, groups);
    struct limefs_caller caller = {USER, GROUP, process.pid, 0};
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, false), 0);
    assert_true(has_group(EXTRA));
    limefs_caller_creds_leave();
    caller.pid = 0;
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, false), 0);
    assert_false(has_group(EXTRA));
    limefs_caller_creds_leave();
    caller = (struct limefs_caller){USER + 1, GROUP, process.pid, 0}; /* acts for another */
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, false), 0);
    assert_int_equal(fsuid(), USER + 1);
    assert_false(has_group(EXTRA));
    limefs_caller_creds_leave();
    end_process(process);
    caller = (struct limefs_caller){USER + 2, GROUP, process.pid, 0};
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, false), -EACCES);
    assert_int_equal(fsuid(), 0);
    caller = (struct limefs_caller){(uid_t)-1, GROUP, 0, 0};
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, false), -EACCES);
    assert_int_equal(fsuid(), 0);
}

TEST_WITH(many_groups, NULL, release)
{
    static gid_t groups[20000];
    for (unsigned i = 0; i < 20000; i++)
        groups[i] = 100000 + i;
    struct process process = start_process(20000, groups);
    const struct limefs_caller caller = {USER, GROUP, process.pid, 0};
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, false), 0);
    assert_int_equal(syscall(SYS_getgroups, 0, NULL), 20000);
    limefs_caller_creds_leave();
    end_process(process);
}

TEST_WITH(root, NULL, release)
{
    const struct limefs_caller caller = {0, 0, getpid(), 022};
    assert_int_equal(limefs_caller_creds_enter(&shared, &caller, true), 0);
    assert_int_equal(fsuid(), 0);
    assert_int_equal(has(CAP_SYS_RESOURCE), had_resource); /* as without a mount */
    assert_int_equal(has(CAP_SYS_ADMIN), had_admin);
    limefs_caller_creds_leave();
    assert_false(has(CAP_SYS_RESOURCE));
}

TEST_WITH(moving, NULL, release)
{
    int fd = file_of("file", 0600, 0, 0);
    assert_int_equal(limefs_transfer_creds_enter(&shared, USER, GROUP), 0);
    assert_int_equal(fsuid(), USER);
    assert_false(has(CAP_SYS_RESOURCE));
    assert_int_equal(limefs_creds_check_access(fd, W_OK), 0); /* access was checked at open */
    assert_int_equal(limefs_creds_swap_uid(&shared, USER + 1), USER);
    assert_int_equal(fsuid(), USER + 1);
    assert_int_equal(limefs_creds_swap_uid(&shared, USER), USER);
    assert_int_equal(fsuid(), USER);
    limefs_caller_creds_leave();
    assert_int_equal(fsuid(), 0);
    assert_int_equal(limefs_creds_swap_uid(&shared, USER), 0);
    assert_int_equal(limefs_creds_swap_uid(&shared, 0), 0);
    assert_int_equal(fsuid(), 0);
    close(fd);
}

/* The thread's umask is the caller's, whichever user has mounted. */
TEST_WITH(masks, NULL, release)
{
    static const struct limefs own;
    const struct limefs_caller caller = {0, 0, getpid(), 027};
    assert_int_equal(limefs_caller_creds_enter(&own, &caller, true), 0);
    assert_int_equal(umask(0), 027);
    limefs_caller_creds_leave();
}

TEST_WITH(refusals, NULL, release)
{
    static const struct limefs others = {.denies_changes = true};
    const struct limefs_caller stranger = {USER, GROUP, 0, 0}, own = {0, 0, 0, 0};
    assert_int_equal(limefs_caller_creds_enter(&others, &stranger, true), -EACCES);
    assert_int_equal(limefs_caller_creds_enter(&others, &stranger, false), 0);
    assert_int_equal(fsuid(), 0);
    limefs_caller_creds_leave();
    assert_int_equal(limefs_caller_creds_enter(&others, &own, true), 0);
    limefs_caller_creds_leave();
}

static int setup(void **state)
{
    (void)state;
    limefs_creds_init(&shared);
    had_resource = has(CAP_SYS_RESOURCE);
    had_admin = has(CAP_SYS_ADMIN);
    return mkdtemp(directory) && chmod(directory, 0755) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "%s/file", directory);
    unlink(path);
    return rmdir(directory);
}

AROUND_ALL(setup, teardown)

__attribute__((constructor)) static void need_root(void)
{
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root");
        exit(0);
    }
}
