/* keeper.c - the process between the daemon and mpirun; see launch.h */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ORDERLY_MS = 3000, /* for the job to end by itself */
    TERM_MS = 1500,    /* for mpirun to take its ranks down */
};

/* All files of the job where they are removed, on this host: Open MPI carries its own settings
 * to the others, where nobody would remove the folder. Root is the user's wish here, as is a
 * job with more ranks than processors. The user's own settings win. */
static void set_environment(const char *dir)
{
    static const char *const to_dir[] = {"TMPDIR", "LIMEFS_IO_SHM"};
    static const char *const to_value[][2] = {
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
        /* Its daemons on other hosts notice in half a minute that this one is gone. */
        {"OMPI_MCA_oob_tcp_keepalive_time", "5"},
        {"OMPI_MCA_oob_tcp_keepalive_intvl", "5"},
        {"OMPI_MCA_oob_tcp_keepalive_probes", "4"},
        /* The same for Open MPI 5, which starts its ranks by PRRTE; by slots, or it puts all
         * of them on the first host. */
        {"PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe"},
        {"PRTE_MCA_hwloc_default_binding_policy", "none"},
        {"PRTE_MCA_oob_tcp_keepalive_time", "5"},
        {"PRTE_MCA_oob_tcp_keepalive_intvl", "5"},
        {"PRTE_MCA_oob_tcp_keepalive_probes", "4"},
    };
    for (size_t i = 0; i < sizeof to_dir / sizeof *to_dir; i++)
        setenv(to_dir[i], dir, 1);
    for (size_t i = 0; i < sizeof to_value / sizeof *to_value; i++)
        setenv(to_value[i][0], to_value[i][1], 0);
    if (geteuid() == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    }
}

/* Its standard input is a lifeline of its own, held by this process alone. */
static pid_t start(char *argv[], int *lifeline)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    pid_t keeper = getpid(), child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != keeper)
            _exit(1);
        dup2(ends[0], 0);
        execvp(argv[0], argv);
        fprintf(stderr, "%s: start: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    close(ends[0]);
    *lifeline = ends[1];
    return child;
}

/* Waits until the daemon lets go or mpirun has ended. True for the latter. */
static bool watch(pid_t mpirun, int signals, int timeout_ms, bool to_daemon)
{
    for (;;) {
        struct pollfd fds[2] = {{signals, POLLIN, 0}, {to_daemon ? 0 : -1, POLLIN, 0}};
        if (waitpid(mpirun, NULL, WNOHANG) == mpirun)
            return true;
        int n = poll(fds, 2, timeout_ms);
        if (n == 0)
            return false;
        struct signalfd_siginfo info;
        if (fds[0].revents && read(signals, &info, sizeof info) == (ssize_t)sizeof info &&
            (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT ||
             info.ssi_signo == SIGHUP || info.ssi_signo == SIGQUIT))
            return false; /* told to end */
        char byte;
        if (fds[1].revents && read(0, &byte, 1) <= 0)
            return false;
    }
}

/* Kills, again and again, what has been left to this process, until there is nothing. */
static void kill_orphans(void)
{
    for (;;) {
        FILE *file = fopen("/proc/thread-self/children", "re");
        long pid;
        while (file && fscanf(file, "%ld", &pid) == 1)
            kill((pid_t)pid, SIGKILL);
        if (file)
            fclose(file);
        if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
            return;
    }
}

int limefs_keeper_main(int argc, char *argv[])
{
    int lifeline = -1;
    sigset_t all;
    if (argc < 4 || !strstr(argv[2], "/limefs-")) /* it will be removed with all in it */
        return 2;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    int signals = signalfd(-1, &all, SFD_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "limefs-keeper");
    set_environment(argv[2]);
    pid_t mpirun = start(argv + 3, &lifeline);
    if (mpirun > 0 && !watch(mpirun, signals, -1, true)) {
        close(lifeline);
        if (!watch(mpirun, signals, ORDERLY_MS, false)) {
            kill(mpirun, SIGTERM);
            watch(mpirun, signals, TERM_MS, false);
        }
    }
    kill_orphans();
    limefs_launch_remove(argv[2]);
    return 0;
}
