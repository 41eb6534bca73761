/*
 * backend_limefs.c - a record of a container in a limefs mount: each rank moves its own pieces
 * through the mount with POSIX calls
 *
 * Rank 0 makes the container, if it is to be written, and mounts it in a directory next to it.
 * The measured time does not include this, because in practice a container is mounted already.
 */
#define _GNU_SOURCE
#include "backend_common.h"
#include "cleanup.h"
#include "limefile.h"
#include "limeplatform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    WAIT_SECONDS = 60, /* for a mount or its job to start or to end */
    BUSY_SECONDS = 5,  /* for a process that is still closing a file */
    PAUSE_MS = 2,
    STATUS_BYTES = 65536,
};

struct limefs_mount {
    pid_t daemon;                       /* rank 0: process id of limefs; 0: none */
    char mount_point[BENCH_PATH_BYTES]; /* rank 0; "": none */
    char record_path[BENCH_PATH_BYTES]; /* all ranks */
};

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){0, PAUSE_MS * 1000000L}, NULL);
}

/* Sets path to "DIRECTORY/limefs"; true if that is executable. n: length of directory. */
static bool find_in_directory(char *path, size_t cap, const char *directory, size_t n)
{
    if (n == 0 || n + sizeof "/limefs" > cap)
        return false;
    snprintf(path, cap, "%.*s/limefs", (int)n, directory);
    return access(path, X_OK) == 0;
}

/* Finds limefs in this program's directory or, if it is not there, in PATH. */
static bool find_limefs(char *path, size_t cap)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash && find_in_directory(path, cap, self, (size_t)(slash - self)))
        return true;
    const char *directory = getenv("PATH");
    while (directory && *directory) {
        size_t length = strcspn(directory, ":");
        if (find_in_directory(path, cap, directory, length))
            return true;
        directory += length + (directory[length] == ':');
    }
    return false;
}

static const char *limefs_unavailable(void)
{
    static char text[128];
    char path[PATH_MAX];
    if (!find_limefs(path, sizeof path))
        return "limefs not found next to lime-bench or in PATH";
    if (access("/dev/fuse", R_OK | W_OK) == 0)
        return NULL;
    snprintf(text, sizeof text, "/dev/fuse: %s", strerror(errno));
    return text;
}

static bool begins_with_any(const char *text, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (strncmp(text, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

/* Returns true for a variable that mpirun has set for its ranks. The mpirun of the mount's job
 * must not get such variables, but must get those that the user has set. */
static bool is_mpirun_variable(const char *variable)
{
    static const char *const prefixes[] = {
        "OMPI_",     "PMIX_", "PMI_",  "PRTE_",      "ORTE_",    "HYDI_",  "HYDRA_",
        "MPI_LOCAL", "OPAL_", "PALS_", "MPIR_CVAR_", "MPIEXEC_", "SLURM_", NULL};
    static const char *const user_prefixes[] = {"OMPI_MCA_", "OMPI_ALLOW_", "PRTE_MCA_", NULL};
    static const char *const internal_prefixes[] = {
        "OMPI_MCA_orte_",  "OMPI_MCA_ess",       "OMPI_MCA_pmix",
        "OMPI_MCA_shmem_", "OMPI_MCA_mpi_overs", "OMPI_MCA_initial_wdir",
        "PRTE_MCA_prte_",  "PRTE_MCA_ess",       NULL};
    if (begins_with_any(variable, user_prefixes))
        return begins_with_any(variable, internal_prefixes);
    return begins_with_any(variable, prefixes);
}

/* Returns the environment for limefs, an array that the caller frees; NULL if out of memory. */
static char **make_environment(void)
{
    size_t n = 0, count = 0;
    while (environ[n])
        n++;
    char **variables = calloc(n + 1, sizeof *variables);
    for (size_t i = 0; variables && i < n; i++)
        if (!is_mpirun_variable(environ[i]))
            variables[count++] = environ[i];
    return variables;
}

/* Starts limefs. log: descriptor for its stderr, or -1 to inherit. Returns 0 or an errno. */
static int spawn_limefs(pid_t *pid, const char *program, char *const argv[], int log)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    char **variables = make_environment();
    if (!variables)
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
                                              POSIX_SPAWN_SETSID); /* keeps ^C away */
    int err = posix_spawn(pid, program, &files, &attributes, argv, variables);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(variables);
    return err;
}

static bool is_mounted(const char *directory)
{
    char parent[BENCH_PATH_BYTES + 4];
    struct stat inside, outside;
    snprintf(parent, sizeof parent, "%s/..", directory);
    return stat(directory, &inside) == 0 && stat(parent, &outside) == 0 &&
           inside.st_dev != outside.st_dev;
}

/* Returns true if the mount's job is ready for requests. */
static bool job_serves(const char *directory)
{
    bool is_serving = false;
    char *text = malloc(STATUS_BYTES);
    ssize_t n = text ? getxattr(directory, "user.limefs.stats", text, STATUS_BYTES) : -1;
    json_t *status = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    const char *state =
        json_string_value(json_object_get(json_object_get(status, "job"), "state"));
    if (state)
        is_serving = strcmp(state, "serving") == 0;
    json_decref(status);
    free(text);
    return is_serving;
}

/* Sets io->error to the last line in `log` or, if log is empty, to the status. Returns -1. */
static int report_exit(struct bench_io *io, int log, int status)
{
    char text[512];
    struct stat st = {0};
    const off_t most = sizeof text - 1;
    off_t at = fstat(log, &st) == 0 && st.st_size > most ? st.st_size - most : 0;
    ssize_t n = pread(log, text, (size_t)most, at);
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

/* Waits for the mount and, if `job`, for its job. log: file with limefs's stderr, or -1. */
static int wait_until_usable(struct bench_io *io, struct limefs_mount *l, bool job, int log)
{
    bool mounted = false;
    for (int ms = 0; ms < WAIT_SECONDS * 1000; ms += PAUSE_MS) {
        int status;
        if (waitpid(l->daemon, &status, WNOHANG) == l->daemon) {
            l->daemon = 0;
            return report_exit(io, log, status);
        }
        mounted = mounted || is_mounted(l->mount_point);
        if (mounted && (!job || job_serves(l->mount_point)))
            return 0;
        pause_briefly();
    }
    return bench_io_fail(
        io, "mount", "%s after %d s",
        mounted ? "the job of the mount is not serving" : "nothing was mounted", WAIT_SECONDS);
}

/* Makes an empty directory next to the file; the guard of cleanup.h removes it at the end. */
static int make_mount_point(struct bench_io *io, struct limefs_mount *l)
{
    errno = ENAMETOOLONG;
    if (snprintf(l->mount_point, sizeof l->mount_point, "%s.mnt-XXXXXX", io->path) >=
            (int)sizeof l->mount_point ||
        !mkdtemp(l->mount_point)) {
        l->mount_point[0] = '\0';
        return bench_io_fail_errno(io, "make mount point");
    }
    bench_cleanup_add_mount(l->mount_point);
    return 0;
}

/* Mounts io->path, writable if io->is_writing. Waits until the mount and, if job_ranks > 0, its
 * job are usable. */
static int mount_container(struct bench_io *io, struct limefs_mount *l, int64_t job_ranks)
{
    static const char *const io_options[] = {"", ",io=independent", ",io=collective"};
    char program[PATH_MAX], options[64];
    if (!find_limefs(program, sizeof program))
        return bench_io_fail(io, "mount", "limefs not found");
    if (make_mount_point(io, l) != 0)
        return -1;
    int n = snprintf(options, sizeof options, "%s", io->is_writing ? "rw" : "ro");
    if (job_ranks)
        snprintf(options + n, sizeof options - (size_t)n, ",ranks=%d%s", (int)job_ranks,
                 io_options[io->task->mode]);
    char *argv[] = {"limefs", "-f", "-o", options, io->path, l->mount_point, NULL};
    int log = memfd_create("limefs", MFD_CLOEXEC), code = -1;
    errno = spawn_limefs(&l->daemon, program, argv, log);
    if (errno != 0)
        bench_io_fail_errno(io, "start limefs");
    else
        code = wait_until_usable(io, l, job_ranks > 0, log);
    if (log >= 0)
        close(log);
    return code;
}

static bool wait_for_exit(pid_t daemon)
{
    for (int ms = 0; ms < WAIT_SECONDS * 1000; ms += PAUSE_MS) {
        if (waitpid(daemon, NULL, WNOHANG) == daemon)
            return true;
        pause_briefly();
    }
    return false;
}

/* Unmounts the container; if it is still in use after BUSY_SECONDS, lazily. Waits for the
 * daemon to end, but kills it after WAIT_SECONDS. */
static void unmount_container(struct limefs_mount *l)
{
    for (int ms = 0; l->mount_point[0] && is_mounted(l->mount_point); ms += PAUSE_MS) {
        if (bench_cleanup_unmount(l->mount_point, ms > BUSY_SECONDS * 1000) || errno != EBUSY)
            break;
        pause_briefly();
    }
    if (l->daemon > 0 && !wait_for_exit(l->daemon)) {
        kill(l->daemon, SIGKILL);
        waitpid(l->daemon, NULL, 0);
    }
    if (l->mount_point[0])
        bench_cleanup_remove(l->mount_point);
}

static const char *limefs_unsupported(const struct bench_task *task)
{
    return task->hosts > 1 ? "the ranks are on several hosts: they cannot all see one mount"
                           : NULL;
}

/* Makes a container with one record of the right length, without writing its data. */
static int make_container(struct bench_io *io)
{
    struct limefile_header header;
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    uint64_t bytes = (uint64_t)bench_pattern_bytes(&io->task->pattern), end, next;
    int code = limefile_header_init(&header, BENCH_RECORD_TYPE, strlen(BENCH_RECORD_TYPE),
                                    bytes, true, true);
    if (code == 0)
        code = limefile_header_encode(&header, raw);
    if (code == 0)
        code = limefile_record_end(0, bytes, &end, &next);
    if (code != 0)
        return bench_io_fail(io, "make container", "too large");
    if (bench_posix_open(io) != 0)
        return -1;
    if (write(io->fd, raw, sizeof raw) != sizeof raw || ftruncate(io->fd, (off_t)next) != 0)
        code = bench_io_fail_errno(io, "make container");
    return bench_posix_close(io) | code;
}

static int prepare_mount(struct bench_io *io, int64_t job_ranks)
{
    struct limefs_mount *l = io->state;
    int good = 1;
    if (io->rank == 0)
        good = (!io->is_writing || make_container(io) == 0) &&
               mount_container(io, l, job_ranks) == 0;
    MPI_Bcast(&good, 1, MPI_INT, 0, io->comm);
    if (!good)
        return -1;
    if (io->rank == 0)
        snprintf(l->record_path, sizeof l->record_path, "%.*s/%s",
                 (int)(sizeof l->record_path - sizeof "/" BENCH_RECORD_TYPE), l->mount_point,
                 BENCH_RECORD_TYPE);
    MPI_Bcast(l->record_path, sizeof l->record_path, MPI_CHAR, 0, io->comm);
    return 0;
}

static int limefs_prepare(struct bench_io *io)
{
    return prepare_mount(io, 0);
}

static int limefs_job_prepare(struct bench_io *io)
{
    return prepare_mount(io, io->task->job_ranks);
}

/* The first barrier ensures that no rank has the record open when rank 0 unmounts. */
static void limefs_release(struct bench_io *io)
{
    MPI_Barrier(io->comm);
    if (io->rank == 0)
        unmount_container(io->state);
    MPI_Barrier(io->comm);
}

static int limefs_open(struct bench_io *io)
{
    const struct limefs_mount *l = io->state;
    io->fd = open(l->record_path, (io->is_writing ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    return io->fd < 0 ? bench_io_fail_errno(io, "open") : 0;
}

const struct bench_backend bench_limefs = {
    .name = "limefs",
    .about = "a record of a mounted LIME container, pwrite and pread",
    .abilities = BENCH_CAN_INDEPENDENT | BENCH_CAN_NOSYNC,
    .patterns = BENCH_ALL_PATTERNS,
    .state_bytes = sizeof(struct limefs_mount),
    .unavailable = limefs_unavailable,
    .unsupported = limefs_unsupported,
    .prepare = limefs_prepare,
    .open = limefs_open,
    .transfer = bench_posix_pieces,
    .sync = bench_posix_sync,
    .close = bench_posix_close,
    .release = limefs_release,
};

const struct bench_backend bench_limefs_job = {
    .name = "limefs-job",
    .about = "the same, through an MPI job of the mount",
    .abilities = BENCH_CAN_INDEPENDENT | BENCH_CAN_COLLECTIVE | BENCH_CAN_NOSYNC,
    .patterns = BENCH_ALL_PATTERNS,
    .state_bytes = sizeof(struct limefs_mount),
    .unavailable = limefs_unavailable,
    .unsupported = limefs_unsupported,
    .prepare = limefs_job_prepare,
    .open = limefs_open,
    .transfer = bench_posix_pieces,
    .sync = bench_posix_sync,
    .close = bench_posix_close,
    .release = limefs_release,
};
