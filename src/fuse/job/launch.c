/* launch.c - start, supervise and end the daemon's own job (launch.h) */
#define _GNU_SOURCE
#include "launch.h"
#include "limejob.h"
#include "limeplatform.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#define DIR_PREFIX "limefs-"

extern char **environ;

enum {
    RANKS_PER_CPU = 16, /* most ranks for each processor of this host, without mpirun= */
    ARGUMENTS_MAX = 64, /* arguments on the command line */
    KILL_SECONDS = 12,  /* a supervisor that has not ended after this time is killed */

    EXIT_MS = 3000, /* time for the job to end by itself; after it, mpirun gets SIGTERM */
    TERM_MS = 1500, /* time for mpirun to end its ranks; after it, all processes get SIGKILL */
};

/* ---- the job's directory: in memory, if /dev/shm exists ---- */

static const char *get_base_dir(void)
{
    return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

static void remove_dir(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Locks the file `lock` in a job's directory. Returns a descriptor or -errno. The daemon holds
 * the lock while it lives. (A process id would not identify it in other PID namespaces.) */
static int lock_dir(const char *path, int flags)
{
    char name[600];
    snprintf(name, sizeof name, "%s/lock", path);
    int fd = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return -EWOULDBLOCK;
}

static int create_dir(struct limefs_launch *launch)
{
    char path[sizeof launch->dir];
    snprintf(path, sizeof path, "%s/" DIR_PREFIX "%ld-XXXXXX", get_base_dir(), (long)getpid());
    if (!mkdtemp(path))
        return -errno;
    strcpy(launch->dir, path);
    snprintf(launch->socket, sizeof launch->socket, "%s/socket", launch->dir);
    launch->lock = lock_dir(launch->dir, O_CREAT);
    return launch->lock < 0 ? launch->lock : 0;
}

/* Returns true if path is a directory of this user that no daemon uses: its file `lock` is not
 * locked, or has not been created within a minute. */
static bool is_stale_dir(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return false;
    int lock = lock_dir(path, 0);
    if (lock >= 0)
        close(lock);
    return lock >= 0 || (lock == -ENOENT && time(NULL) - st.st_mtime > 60);
}

void limefs_launch_remove_stale(void)
{
    const char *base = get_base_dir();
    struct dirent *entry;
    DIR *dir = opendir(base);
    while (dir && (entry = readdir(dir))) {
        char path[512];
        long pid;
        if (sscanf(entry->d_name, DIR_PREFIX "%ld-", &pid) != 1)
            continue;
        snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
        if (is_stale_dir(path))
            remove_dir(path);
    }
    if (dir)
        closedir(dir);
}

/* Gets the path of a program next to this executable; if it is not there, only its name. */
static void find_program(const char *name, char *path, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", path, cap - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash && (size_t)(slash - path) + strlen(name) + 2 < cap) {
        strcpy(slash + 1, name);
        if (access(path, X_OK) == 0)
            return;
    }
    snprintf(path, cap, "%s", name);
}

static bool is_executable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Returns true if execvp() would find a program whose name is the first len bytes of `name`. */
static bool is_installed(const char *name, int len)
{
    char path[PATH_MAX];
    const char *at = getenv("PATH");
    if (memchr(name, '/', (size_t)len)) {
        snprintf(path, sizeof path, "%.*s", len, name);
        return is_executable(path);
    }
    for (at = at ? at : "/bin:/usr/bin"; *at; at += strcspn(at, ":"), at += *at == ':') {
        int n = (int)strcspn(at, ":"); /* 0: the current directory */
        snprintf(path, sizeof path, "%.*s/%.*s", n ? n : 1, n ? at : ".", len, name);
        if (is_executable(path))
            return true;
    }
    return false;
}

bool limefs_launch_check(const struct limefs_options *options, char problem[LIMEFS_REASON_MAX])
{
    char job[PATH_MAX];
    const char *mpirun = options->mpirun ? options->mpirun : "mpirun";
    int len = (int)strcspn(mpirun, " ");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (!options->ranks)
        return true;
    find_program("limefs-io", job, sizeof job);
    problem[0] = '\0';
    if (!options->mpirun && options->ranks > (unsigned long)processors * RANKS_PER_CPU)
        snprintf(problem, LIMEFS_REASON_MAX,
                 "ranks: at most %ld for %ld processors, unless mpirun= is given",
                 processors * RANKS_PER_CPU, processors);
    else if (!is_installed(mpirun, len))
        snprintf(problem, LIMEFS_REASON_MAX,
                 "%.*s: program not found; ranks= requires it, mpirun= selects another",
                 len < 256 ? len : 256, mpirun);
    else if (!is_installed(job, (int)strlen(job)))
        snprintf(problem, LIMEFS_REASON_MAX,
                 "%.256s: program not found; install it next to limefs or in PATH", job);
    return !problem[0];
}

struct command {
    char *arguments[ARGUMENTS_MAX];
    int count;
    char *mpirun; /* the value of mpirun=, split into arguments */
    char ranks[16], stripe[24], program[PATH_MAX];
};

static void add_argument(struct command *command, char *word)
{
    if (command->count < ARGUMENTS_MAX - 1)
        command->arguments[command->count++] = word;
}

/* Builds the command: the supervisor, mpirun with the user's arguments, limefs-io. */
static int build_command(struct command *command, const struct limefs_launch *launch,
                         const struct limefs_options *options)
{
    char *next;
    memset(command, 0, sizeof *command);
    command->mpirun = strdup(options->mpirun ? options->mpirun : "mpirun");
    if (!command->mpirun)
        return -ENOMEM;
    snprintf(command->ranks, sizeof command->ranks, "%u", options->ranks);
    find_program("limefs-io", command->program, sizeof command->program);
    add_argument(command, "limefs");
    add_argument(command, "--supervisor");
    add_argument(command, (char *)launch->dir);
    for (char *word = strtok_r(command->mpirun, " ", &next); word;
         word = strtok_r(NULL, " ", &next))
        add_argument(command, word);
    add_argument(command, "-n");
    add_argument(command, command->ranks);
    add_argument(command, command->program);
    add_argument(command, "--socket");
    add_argument(command, (char *)launch->socket);
    add_argument(command, "--ready");
    add_argument(command, "1");
    add_argument(command, "--lifeline");
    add_argument(command, "0");
    if (options->io != LIMEJOB_IO_AUTO) {
        add_argument(command, "--io");
        add_argument(command, (char *)limejob_io_names[options->io]);
    }
    if (options->stripe) {
        snprintf(command->stripe, sizeof command->stripe, "%llu",
                 (unsigned long long)options->stripe);
        add_argument(command, "--stripe");
        add_argument(command, command->stripe);
    }
    return 0;
}

/* in: the read end of the supervisor's lifeline. out: the write end of the output pipe. */
static int spawn_supervisor(struct limefs_launch *launch, struct command *command, int in,
                            int out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, out, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3); /* one of them may be /dev/fuse */
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0); /* Ctrl-C must only reach the daemon */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    int err = posix_spawn(&launch->supervisor, "/proc/self/exe", &actions, &attributes,
                          command->arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -err;
}

int limefs_launch_start(struct limefs_launch *launch, const struct limefs_options *options)
{
    struct command command;
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    *launch = (struct limefs_launch){.lifeline = -1, .lock = -1, .output = -1};
    command.mpirun = NULL;
    int err = create_dir(launch);
    if (!err)
        err = build_command(&command, launch, options);
    if (!err && (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0))
        err = -errno;
    if (!err)
        err = spawn_supervisor(launch, &command, in[0], out[1]);
    if (err)
        launch->supervisor = 0;
    free(command.mpirun);
    launch->lifeline = in[1];
    launch->output = out[0];
    if (in[0] >= 0)
        close(in[0]);
    if (out[1] >= 0)
        close(out[1]);
    if (err)
        limefs_launch_end(launch);
    return err;
}

void limefs_launch_end(struct limefs_launch *launch)
{
    if (launch->lifeline >= 0)
        close(launch->lifeline);
    for (int hundredths = 0; launch->supervisor > 0; hundredths++) {
        pid_t ended = waitpid(launch->supervisor, NULL, WNOHANG);
        if (ended == launch->supervisor || (ended < 0 && errno != EINTR))
            break;
        if (hundredths == KILL_SECONDS * 100)
            kill(launch->supervisor, SIGKILL);
        usleep(10000);
    }
    if (launch->output >= 0)
        close(launch->output);
    if (launch->dir[0])
        remove_dir(launch->dir); /* a supervisor that was killed has not removed it */
    if (launch->lock >= 0)
        close(launch->lock);
    *launch = (struct limefs_launch){.lifeline = -1, .lock = -1, .output = -1};
}

/* ---- the supervisor, a separate process ---- */

/* Sets environment variables for the job. Those for dir replace the user's settings; the others
 * do not. On this host, the job creates its files in dir, which the supervisor removes. dir is
 * passed in TMPDIR: Open MPI would copy an OMPI_ variable to other hosts, where no process
 * removes dir. In a Slurm job, srun would also copy TMPDIR, and Slurm would create that
 * directory there; another variable names dir to Open MPI 4, whose daemons on other hosts
 * ignore it. Other variables let Open MPI run as root, and run more ranks than processors. */
static void set_job_environment(const char *dir)
{
    static const char *const variables[][2] = {
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
        /* Open MPI's daemons on other hosts notice within 30 s that this host is down. */
        {"OMPI_MCA_oob_tcp_keepalive_time", "5"},
        {"OMPI_MCA_oob_tcp_keepalive_intvl", "5"},
        {"OMPI_MCA_oob_tcp_keepalive_probes", "4"},
        /* The same for Open MPI 5, which starts its ranks with PRRTE. Without mapping by slot,
         * PRRTE would put all ranks on the first host. */
        {"PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe"},
        {"PRTE_MCA_hwloc_default_binding_policy", "none"},
        {"PRTE_MCA_oob_tcp_keepalive_time", "5"},
        {"PRTE_MCA_oob_tcp_keepalive_intvl", "5"},
        {"PRTE_MCA_oob_tcp_keepalive_probes", "4"},
    };
    setenv("LIMEFS_IO_SHM", dir, 1);
    setenv(getenv("SLURM_JOB_ID") ? "OMPI_MCA_orte_local_tmpdir_base" : "TMPDIR", dir, 1);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i][0], variables[i][1], 0);
    if (geteuid() == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    }
}

/* Starts mpirun, and returns its process id or a negative number. Its standard input is a pipe.
 * Only this process has the write end, *lifeline; when that is closed, the job ends. */
static pid_t start_mpirun(char *argv[], int *lifeline)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    pid_t supervisor = getpid(), child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != supervisor)
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

/* Waits until mpirun has ended. Returns false if one of these comes first: a signal to end; the
 * end of timeout_ms (-1: no limit); if watch_lifeline, the end of the daemon, which descriptor
 * 0 shows. */
static bool wait_for_mpirun(pid_t mpirun, int signals, int timeout_ms, bool watch_lifeline)
{
    for (;;) {
        struct pollfd fds[2] = {{signals, POLLIN, 0}, {watch_lifeline ? 0 : -1, POLLIN, 0}};
        if (waitpid(mpirun, NULL, WNOHANG) == mpirun)
            return true;
        int n = poll(fds, 2, timeout_ms);
        if (n == 0)
            return false;
        struct signalfd_siginfo info;
        if (fds[0].revents && read(signals, &info, sizeof info) == (ssize_t)sizeof info &&
            (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT ||
             info.ssi_signo == SIGHUP || info.ssi_signo == SIGQUIT))
            return false;
        char byte;
        if (fds[1].revents && read(0, &byte, 1) <= 0)
            return false;
    }
}

/* Kills all children of this process, including those that it adopts, until none remains. */
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

int limefs_supervisor_main(int argc, char *argv[])
{
    int lifeline = -1;
    sigset_t all;
    if (argc < 4 || !strstr(argv[2], "/limefs-")) /* remove_dir() deletes argv[2] below */
        return 2;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    int signals = signalfd(-1, &all, SFD_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "limefs-job");
    set_job_environment(argv[2]);
    pid_t mpirun = start_mpirun(argv + 3, &lifeline);
    if (mpirun > 0 && !wait_for_mpirun(mpirun, signals, -1, true)) {
        close(lifeline);
        if (!wait_for_mpirun(mpirun, signals, EXIT_MS, false)) {
            kill(mpirun, SIGTERM);
            wait_for_mpirun(mpirun, signals, TERM_MS, false);
        }
    }
    kill_orphans();
    remove_dir(argv[2]);
    return 0;
}
