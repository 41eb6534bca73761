/*
 * run_command.c - limefs --run: mount, run a command, and unmount when it has ended
 *
 * The process that the user has started, the runner, forks the daemon and, when the mount is
 * ready, the command. It forwards signals to the command. When the command has ended, the
 * runner ends the daemon with SIGHUP, waits for it, and exits with the command's status.
 *
 * Slurm and others send SIGTERM to all processes of a job. The daemon ignores it, so that the
 * command can finish its work in the mount. If the runner dies, the kernel sends SIGHUP to the
 * daemon, which unmounts, and SIGTERM to the command.
 */
#define _GNU_SOURCE
#include "run_command.h"
#include "mount_point.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum {
    /* Time for the command to end after SIGTERM; then the mount ends without it. Slurm sends
     * SIGKILL to all processes 30 s after SIGTERM, and nothing would unmount after that. */
    TERM_SECONDS = 15,
    KILL_SECONDS = 30, /* a daemon that has not ended this time after SIGHUP is killed */
};

struct runner {
    const char *mountpoint;
    char **command;
    int signals;         /* a signalfd */
    int ready;           /* the daemon's pipe; -1: the mount is ready, or failed */
    sigset_t mask;       /* of blocked signals, as limefs got it */
    pid_t daemon, child; /* 0: not started, or has ended */
    bool is_ending;      /* the daemon has got SIGHUP */
    bool daemon_crashed; /* it was killed by a signal, and may have left a dead mount */
    double deadline;     /* for the command or the daemon to end, in seconds; 0: none */
    int status;          /* exit status for limefs */
};

/* ---- processes ---- */

static void exit_without_runner(pid_t runner)
{
    if (getppid() != runner)
        _exit(LIMEFS_RUN_FAILED);
}

/* lifeline: the read end of a pipe whose only write end the runner has. When the runner dies,
 * the kernel sends SIGHUP to this process. It would not do so by PR_SET_PDEATHSIG once the
 * thread has switched to the user of a request. */
static void set_up_daemon(const struct runner *run, pid_t runner, int lifeline)
{
    sigset_t hup;
    signal(SIGTERM, SIG_IGN); /* libfuse keeps SIG_IGN */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_DFL); /* nohup(1) ignores it */
    sigprocmask(SIG_SETMASK, &run->mask, NULL);
    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    sigprocmask(SIG_UNBLOCK, &hup, NULL);
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
    }
    if (null > 2)
        close(null);
    fcntl(lifeline, F_SETOWN, getpid());
    fcntl(lifeline, F_SETSIG, SIGHUP);
    fcntl(lifeline, F_SETFL, O_ASYNC);
    exit_without_runner(runner);
}

static void start_command(struct runner *run)
{
    pid_t runner = getpid();
    run->child = fork();
    if (run->child == 0) {
        sigprocmask(SIG_SETMASK, &run->mask, NULL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        exit_without_runner(runner);
        execvp(run->command[0], run->command);
        int err = errno;
        limefs_log(LOG_ERR, "%s: run: %s", run->command[0], strerror(err));
        _exit(err == ENOENT || err == ENOTDIR ? 127 : 126);
    }
    if (run->child < 0) {
        limefs_log(LOG_ERR, "%s: run: %s", run->command[0], strerror(errno));
        run->child = 0;
    }
}

static void end_daemon(struct runner *run)
{
    if (!run->daemon || run->is_ending)
        return;
    kill(run->daemon, SIGHUP);
    run->is_ending = true;
    run->deadline = limefs_clock_seconds() + KILL_SECONDS;
}

/* Writes data that programs have changed in mappings; what they wrote otherwise has been
 * written when they closed the files. */
static void sync_mount(const struct runner *run)
{
    char type[LIMEFS_MOUNT_TYPE_MAX];
    if (!run->daemon || !limefs_mount_point_type(run->mountpoint, type) ||
        strcmp(type, "fuse.limefs") != 0)
        return;
    int fd = open(run->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    syncfs(fd);
    close(fd);
}

/* Removes the mount of a daemon that was killed. */
static void remove_dead_mount(const struct runner *run)
{
    int fd = open(run->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        close(fd); /* another mount, or a directory */
    else if (errno == ENOTCONN)
        limefs_mount_point_detach(run->mountpoint);
}

/* ---- events ---- */

static int exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static void reap_children(struct runner *run)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == run->child) {
            run->child = 0;
            run->status = exit_status(status);
            sync_mount(run);
            end_daemon(run);
        } else if (pid == run->daemon) {
            run->daemon = 0;
            run->daemon_crashed = WIFSIGNALED(status);
            if (run->daemon_crashed && !(run->is_ending && WTERMSIG(status) == SIGHUP))
                limefs_log(LOG_ERR, "%s: the daemon was killed by signal %d", run->mountpoint,
                           WTERMSIG(status));
        }
    }
}

/* The terminal sends a signal to the command, too; other senders may know only the runner. */
static void handle_signal(struct runner *run, const struct signalfd_siginfo *info)
{
    int number = (int)info->ssi_signo;
    if (number == SIGCHLD) {
        reap_children(run);
    } else if (run->child) {
        if (info->ssi_code != SI_KERNEL)
            kill(run->child, number);
        if (number == SIGTERM && !run->deadline)
            run->deadline = limefs_clock_seconds() + TERM_SECONDS;
    } else if (!run->is_ending) { /* the mount is not ready */
        run->status = 128 + number;
        end_daemon(run);
    }
}

static void handle_ready(struct runner *run)
{
    unsigned char exit_code = 1;
    ssize_t got = read(run->ready, &exit_code, 1);
    close(run->ready);
    run->ready = -1;
    if (got != 1 || exit_code != 0 || run->is_ending)
        return; /* the daemon ends, or has ended */
    start_command(run);
    if (!run->child)
        end_daemon(run);
}

static void handle_deadline(struct runner *run)
{
    run->deadline = 0;
    if (run->is_ending) {
        if (run->daemon)
            kill(run->daemon, SIGKILL);
        return;
    }
    if (run->daemon)
        limefs_log(LOG_WARNING, "%s: unmounted; the command has not ended %d s after SIGTERM",
                   run->mountpoint, TERM_SECONDS);
    end_daemon(run);
}

static void wait_for_event(struct runner *run)
{
    struct pollfd fds[2] = {{run->signals, POLLIN, 0}, {run->ready, POLLIN, 0}};
    struct signalfd_siginfo info;
    double left = run->deadline ? run->deadline - limefs_clock_seconds() : 0;
    int n = poll(fds, 2, run->deadline ? (left > 0 ? (int)(left * 1000) + 1 : 0) : -1);
    if (n == 0)
        handle_deadline(run);
    if (n > 0 && fds[1].revents)
        handle_ready(run);
    if (n > 0 && fds[0].revents && read(run->signals, &info, sizeof info) == sizeof info)
        handle_signal(run, &info);
}

static void block_signals(struct runner *run)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&blocked, numbers[i]);
    signal(SIGCHLD, SIG_DFL); /* the caller may ignore it */
    sigprocmask(SIG_BLOCK, &blocked, &run->mask);
    run->signals = signalfd(-1, &blocked, SFD_CLOEXEC);
}

int limefs_mount_and_run(const struct limefs_command *command, int *to_runner)
{
    struct runner run = {.mountpoint = command->fuse.mountpoint,
                         .command = command->run,
                         .status = LIMEFS_RUN_FAILED};
    int ready[2] = {-1, -1}, lifeline[2] = {-1, -1};
    pid_t runner = getpid();
    block_signals(&run);
    if (run.signals >= 0 && pipe2(ready, O_CLOEXEC) == 0 && pipe2(lifeline, O_CLOEXEC) == 0)
        run.daemon = fork();
    if (run.signals < 0 || lifeline[0] < 0 || run.daemon < 0) {
        limefs_log(LOG_ERR, "%s: start a daemon: %s", command->source, strerror(errno));
        return run.status;
    }
    if (run.daemon == 0) {
        close(run.signals);
        close(ready[0]);
        close(lifeline[1]);
        set_up_daemon(&run, runner, lifeline[0]);
        *to_runner = ready[1];
        return -1;
    }
    close(ready[1]);
    close(lifeline[0]);
    run.ready = ready[0];
    while (run.daemon || run.child)
        wait_for_event(&run);
    if (run.daemon_crashed)
        remove_dead_mount(&run);
    return run.status;
}
