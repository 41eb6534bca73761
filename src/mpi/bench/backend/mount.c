/* mount.c - a container, mounted by limefs */
#define _GNU_SOURCE
#include "guard.h"
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    WAIT_SECONDS = 60, /* for a mount, or its job, or the end of both */
    BUSY_SECONDS = 5,  /* for who is just closing a file */
    PAUSE_MS = 2,
    STATUS_BYTES = 65536,
};

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){0, PAUSE_MS * 1000000L}, NULL);
}

/* ---- the program ---- */

static bool is_program(char *path, size_t cap, const char *folder, size_t n)
{
    if (n == 0 || n + sizeof "/limefs" > cap)
        return false;
    snprintf(path, cap, "%.*s/limefs", (int)n, folder);
    return access(path, X_OK) == 0;
}

/* Beside this program, else where PATH leads. */
static bool find_limefs(char *path, size_t cap)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash && is_program(path, cap, self, (size_t)(slash - self)))
        return true;
    const char *folder = getenv("PATH");
    while (folder && *folder) {
        size_t length = strcspn(folder, ":");
        if (is_program(path, cap, folder, length))
            return true;
        folder += length + (folder[length] == ':');
    }
    return false;
}

const char *bench_mount_absent(void)
{
    static char text[128];
    char path[PATH_MAX];
    if (!find_limefs(path, sizeof path))
        return "no program limefs beside lime-bench or in PATH";
    if (access("/dev/fuse", R_OK | W_OK) == 0)
        return NULL;
    snprintf(text, sizeof text, "/dev/fuse: %s", strerror(errno));
    return text;
}

/* ---- its environment ---- */

static bool begins_with_any(const char *text, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (strncmp(text, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

/* What mpirun tells its ranks must not reach the mpirun of the mount's job; what the user has
 * set must. */
static bool is_of_mpirun(const char *variable)
{
    static const char *const set[] = {"OMPI_",      "PMIX_",    "PMI_",      "PRTE_", "ORTE_",
                                      "HYDI_",      "HYDRA_",   "MPI_LOCAL", "OPAL_", "PALS_",
                                      "MPIR_CVAR_", "MPIEXEC_", "SLURM_",    NULL};
    static const char *const by_user[] = {"OMPI_MCA_", "OMPI_ALLOW_", "PRTE_MCA_", NULL};
    static const char *const inside[] = {
        "OMPI_MCA_orte_",  "OMPI_MCA_ess",       "OMPI_MCA_pmix",
        "OMPI_MCA_shmem_", "OMPI_MCA_mpi_overs", "OMPI_MCA_initial_wdir",
        "PRTE_MCA_prte_",  "PRTE_MCA_ess",       NULL};
    if (begins_with_any(variable, by_user))
        return begins_with_any(variable, inside);
    return begins_with_any(variable, set);
}

static char **make_environment(void)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        if (!is_of_mpirun(environ[i]))
            list[kept++] = environ[i];
    return list;
}

/* ---- starting ---- */

/* Its standard error goes to `log`, if that is not -1. */
static int spawn(pid_t *pid, const char *program, char *const argv[], int log)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    char **list = make_environment();
    if (!list)
        return ENOMEM;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    if (log >= 0)
        posix_spawn_file_actions_adddup2(&files, log, 2);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSID); /* a ^C is for us */
    int err = posix_spawnp(pid, program, &files, &attributes, argv, list);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(list);
    return err;
}

static bool is_mounted(const char *folder)
{
    char parent[BENCH_PATH_BYTES + 4];
    struct stat inside, outside;
    snprintf(parent, sizeof parent, "%s/..", folder);
    return stat(folder, &inside) == 0 && stat(parent, &outside) == 0 &&
           inside.st_dev != outside.st_dev;
}

static bool job_serves(const char *folder)
{
    bool serves = false;
    char *text = malloc(STATUS_BYTES);
    ssize_t n = text ? getxattr(folder, "user.limefs.stats", text, STATUS_BYTES) : -1;
    json_t *status = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    const char *state =
        json_string_value(json_object_get(json_object_get(status, "job"), "state"));
    if (state)
        serves = strcmp(state, "serving") == 0;
    json_decref(status);
    free(text);
    return serves;
}

/* What the daemon has said last, without its name; it ends with a status otherwise. */
static int explain(struct bench_io *io, int log, int status)
{
    char text[512];
    ssize_t n = pread(log, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    if (*line)
        return bench_io_fail(io, "mount", "%s", line);
    return bench_io_fail(io, "mount", "limefs ended with status %d",
                         WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static int wait_until_usable(struct bench_io *io, struct bench_mount *m, bool job, int log)
{
    bool mounted = false;
    for (int ms = 0; ms < WAIT_SECONDS * 1000; ms += PAUSE_MS) {
        int status;
        if (waitpid(m->daemon, &status, WNOHANG) == m->daemon) {
            m->daemon = 0;
            return explain(io, log, status);
        }
        mounted = mounted || is_mounted(m->folder);
        if (mounted && (!job || job_serves(m->folder)))
            return 0;
        pause_briefly();
    }
    return bench_io_fail(io, "mount", "%s after %d s",
                         mounted ? "the mount's job did not serve" : "nothing was mounted",
                         WAIT_SECONDS);
}

/* An empty folder beside the file, which the guard knows of. */
static int make_folder(struct bench_io *io, struct bench_mount *m)
{
    errno = ENAMETOOLONG;
    if (snprintf(m->folder, sizeof m->folder, "%s.mnt-XXXXXX", io->path) >=
            (int)sizeof m->folder ||
        !mkdtemp(m->folder)) {
        m->folder[0] = '\0';
        return bench_io_errno(io, "make mount point");
    }
    bench_guard_mount(m->folder);
    return 0;
}

int bench_mount_start(struct bench_io *io, struct bench_mount *m, int job_ranks)
{
    char program[PATH_MAX], options[64];
    *m = (struct bench_mount){0};
    if (!find_limefs(program, sizeof program))
        return bench_io_fail(io, "mount", "no program limefs");
    if (make_folder(io, m) != 0)
        return -1;
    int n = snprintf(options, sizeof options, "%s", io->writing ? "rw" : "ro");
    if (job_ranks)
        snprintf(options + n, sizeof options - (size_t)n, ",ranks=%d", job_ranks);
    char *argv[] = {"limefs", "-f", "-o", options, (char *)io->path, m->folder, NULL};
    int log = memfd_create("limefs", MFD_CLOEXEC), code = -1;
    errno = spawn(&m->daemon, program, argv, log);
    if (errno != 0)
        bench_io_errno(io, "start limefs");
    else
        code = wait_until_usable(io, m, job_ranks > 0, log);
    if (log >= 0)
        close(log);
    if (code != 0)
        bench_mount_end(m);
    return code;
}

/* ---- ending ---- */

/* False: errno, perhaps EBUSY. */
static bool unmount(const char *folder, bool lazily)
{
    pid_t pid;
    int status;
    char *argv[] = {"fusermount3", "-u", "-q", (char *)folder, NULL, NULL};
    if (geteuid() == 0)
        return umount2(folder, UMOUNT_NOFOLLOW | (lazily ? MNT_DETACH : 0)) == 0;
    if (lazily) {
        argv[3] = "-z";
        argv[4] = (char *)folder;
    }
    if (spawn(&pid, argv[0], argv, -1) != 0 || waitpid(pid, &status, 0) != pid)
        return false;
    errno = EBUSY;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void bench_mount_remove(const char *folder)
{
    if (rmdir(folder) == 0 || errno == ENOENT) /* of a mount point: EBUSY, without its daemon */
        return;
    unmount(folder, true);
    rmdir(folder);
}

static bool ends(pid_t daemon)
{
    for (int ms = 0; ms < WAIT_SECONDS * 1000; ms += PAUSE_MS) {
        if (waitpid(daemon, NULL, WNOHANG) == daemon)
            return true;
        pause_briefly();
    }
    return false;
}

void bench_mount_end(struct bench_mount *m)
{
    for (int ms = 0; m->folder[0] && is_mounted(m->folder); ms += PAUSE_MS) {
        if (unmount(m->folder, ms > BUSY_SECONDS * 1000) || errno != EBUSY)
            break;
        pause_briefly();
    }
    if (m->daemon > 0 && !ends(m->daemon)) {
        kill(m->daemon, SIGKILL);
        waitpid(m->daemon, NULL, 0);
    }
    if (m->folder[0])
        bench_mount_remove(m->folder);
    m->daemon = 0;
    m->folder[0] = '\0';
}
