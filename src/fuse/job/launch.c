/* launch.c - starts and ends a job of the daemon's own */
#define _GNU_SOURCE
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#define PREFIX "limefs-"

extern char **environ;

enum {
    WORDS_MAX = 64,   /* of the command line */
    END_SECONDS = 12, /* after which a keeper is killed */
};

/* ---- the folder: memory, if there is such a place ---- */

static const char *base(void)
{
    return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

void limefs_launch_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Of the folder's owner, as long as it lives: a process id would not tell, where others have
 * their own. (The folder itself is locked by who makes a socket in it.) */
static int lock_folder(const char *path, int flags)
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

static int make_folder(struct limefs_launch *launch)
{
    char path[sizeof launch->dir];
    snprintf(path, sizeof path, "%s/" PREFIX "%ld-XXXXXX", base(), (long)getpid());
    if (!mkdtemp(path))
        return -errno;
    strcpy(launch->dir, path);
    snprintf(launch->socket, sizeof launch->socket, "%s/socket", launch->dir);
    launch->lock = lock_folder(launch->dir, O_CREAT);
    return 0;
}

/* Of this user, and nobody's: unlocked, or made and not locked within a minute. */
static bool is_left_behind(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return false;
    int lock = lock_folder(path, 0);
    if (lock >= 0)
        close(lock);
    return lock >= 0 || (lock == -ENOENT && time(NULL) - st.st_mtime > 60);
}

void limefs_launch_sweep(void)
{
    const char *where = base();
    struct dirent *entry;
    DIR *dir = opendir(where);
    while (dir && (entry = readdir(dir))) {
        char path[512];
        long pid;
        if (sscanf(entry->d_name, PREFIX "%ld-", &pid) != 1)
            continue;
        snprintf(path, sizeof path, "%s/%s", where, entry->d_name);
        if (is_left_behind(path))
            limefs_launch_remove(path);
    }
    if (dir)
        closedir(dir);
}

/* ---- the command ---- */

/* Beside this program, as both are installed and built; else wherever PATH leads. */
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

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Returns whether execvp() finds a program of this name, which has `len` bytes. */
static bool is_installed(const char *name, int len)
{
    char path[PATH_MAX];
    const char *at = getenv("PATH");
    if (memchr(name, '/', (size_t)len)) {
        snprintf(path, sizeof path, "%.*s", len, name);
        return is_program(path);
    }
    for (at = at ? at : "/bin:/usr/bin"; *at; at += strcspn(at, ":"), at += *at == ':') {
        snprintf(path, sizeof path, "%.*s/%.*s", (int)strcspn(at, ":"), at, len, name);
        if (is_program(path))
            return true;
    }
    return false;
}

int limefs_launch_check(const struct limefs_options *options)
{
    char job[PATH_MAX];
    const char *mpirun = options->mpirun ? options->mpirun : "mpirun";
    int len = (int)strcspn(mpirun, " ");
    if (!options->ranks)
        return 0;
    find_program("limefs-io", job, sizeof job);
    if (!is_installed(mpirun, len))
        limefs_log(
            LOG_ERR,
            "%.*s: program not found; ranks= starts a job with it, mpirun= names another", len,
            mpirun);
    else if (!is_installed(job, (int)strlen(job)))
        limefs_log(LOG_ERR, "%s: program not found; install it where limefs is, or in PATH",
                   job);
    else
        return 0;
    return -ENOENT;
}

struct command {
    char *words[WORDS_MAX];
    int count;
    char *mpirun; /* cut into words */
    char ranks[16], stripe[24], program[PATH_MAX];
};

static void add(struct command *command, char *word)
{
    if (command->count < WORDS_MAX - 1)
        command->words[command->count++] = word;
}

/* keeper, mpirun with the words that the user gave it, limefs-io */
static int compose(struct command *command, const struct limefs_launch *launch,
                   const struct limefs_options *options)
{
    char *next;
    memset(command, 0, sizeof *command);
    command->mpirun = strdup(options->mpirun ? options->mpirun : "mpirun");
    if (!command->mpirun)
        return -ENOMEM;
    snprintf(command->ranks, sizeof command->ranks, "%u", options->ranks);
    find_program("limefs-io", command->program, sizeof command->program);
    add(command, "limefs");
    add(command, "--keeper");
    add(command, (char *)launch->dir);
    for (char *word = strtok_r(command->mpirun, " ", &next); word;
         word = strtok_r(NULL, " ", &next))
        add(command, word);
    add(command, "-n");
    add(command, command->ranks);
    add(command, command->program);
    add(command, "--socket");
    add(command, (char *)launch->socket);
    add(command, "--ready");
    add(command, "1");
    add(command, "--lifeline");
    add(command, "0");
    if (options->stripe) {
        snprintf(command->stripe, sizeof command->stripe, "%llu",
                 (unsigned long long)options->stripe);
        add(command, "--stripe");
        add(command, command->stripe);
    }
    return 0;
}

static int spawn(struct limefs_launch *launch, struct command *command, int in, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, out, 2);
    posix_spawn_file_actions_addclosefrom_np(&files, 3); /* /dev/fuse may be among them */
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0); /* a ^C is for the daemon */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    int err = posix_spawn(&launch->keeper, "/proc/self/exe", &files, &attributes,
                          command->words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return -err;
}

int limefs_launch(struct limefs_launch *launch, const struct limefs_options *options)
{
    struct command command;
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    *launch = (struct limefs_launch){.lifeline = -1, .lock = -1, .words = -1};
    int err = make_folder(launch);
    if (err)
        return err;
    err = compose(&command, launch, options);
    if (!err && (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0))
        err = -errno;
    if (!err)
        err = spawn(launch, &command, in[0], out[1]);
    if (err)
        launch->keeper = 0;
    free(command.mpirun);
    launch->lifeline = in[1];
    launch->words = out[0];
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
    for (int tenths = 0; launch->keeper > 0; tenths++) {
        pid_t ended = waitpid(launch->keeper, NULL, WNOHANG);
        if (ended == launch->keeper || (ended < 0 && errno != EINTR))
            break;
        if (tenths == END_SECONDS * 100)
            kill(launch->keeper, SIGKILL);
        usleep(10000);
    }
    if (launch->words >= 0)
        close(launch->words);
    if (launch->dir[0])
        limefs_launch_remove(launch->dir); /* the keeper's work, unless it was killed */
    if (launch->lock >= 0)
        close(launch->lock);
    *launch = (struct limefs_launch){.lifeline = -1, .lock = -1, .words = -1};
}
