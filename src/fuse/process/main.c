/* main.c - the limefs process: set up, mount, serve requests, clean up */
#define _GNU_SOURCE
#include "readahead.h"
#include "dir.h"
#include "work.h"
#include "exports.h"
#include "file.h"
#include "job.h"
#include "launch.h"
#include "mount_point.h"
#include "ops.h"
#include "complete.h"
#include "options.h"
#include "run_command.h"
#include "thread_buffer.h"
#include "credentials.h"
#include "session.h"
#include "status.h"
#include "verify.h"
#include "writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

static int log_error(const char *file, const char *action, int err)
{
    limefs_log(LOG_ERR, "%s: %s: %s", file, action, limefile_strerror(err));
    return err;
}

/* ---- the daemon, whose parent exits when the mount is ready ---- */

static int parent_pipe = -1; /* to the process that waits for report_ready() */

/* Exits with the code that the child reports, or 1 if it ends without a report. */
static void wait_for_child(int from_child)
{
    unsigned char exit_code;
    ssize_t got;
    do
        got = read(from_child, &exit_code, 1);
    while (got < 0 && errno == EINTR);
    _exit(got == 1 ? exit_code : 1);
}

/* Closes inherited descriptors: the daemon would hold their locks and keep their pipes open.
 * Its own descriptors are close-on-exec; all others are inherited. */
static void close_inherited_fds(void)
{
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);
        if (fd > 2 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Keeps no directory busy; all paths are absolute. Returns 0 or -errno. */
static int leave_directory(void)
{
    return chdir("/") == 0 ? 0 : -errno;
}

/* Forks. The parent waits for report_ready() and exits with the code, or 1 if the child dies
 * first. The child closes inherited descriptors unless keep_inherited. Returns 0 or -errno. */
static int become_daemon(bool keep_inherited)
{
    int ends[2];
    if (pipe(ends) != 0)
        return -errno;
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (child > 0) {
        close(ends[1]);
        wait_for_child(ends[0]);
    }
    close(ends[0]);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    parent_pipe = ends[1];
    if (!keep_inherited)
        close_inherited_fds();
    setsid();
    return leave_directory();
}

/* After "mounted", no program reads the output of a daemon in the background. */
static void close_output(void)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

/* Reports an exit code to the waiting parent; 0 is "mounted". Later calls do nothing. */
static void report_ready(int exit_code)
{
    if (parent_pipe < 0)
        return;
    unsigned char code = (unsigned char)exit_code;
    while (write(parent_pipe, &code, 1) < 0 && errno == EINTR)
        ;
    close(parent_pipe);
    parent_pipe = -1;
}

/* ---- the file system ---- */

/* Opens a single container before it is mounted, to report at once what is wrong with it. */
static int try_container(struct limefs *fs)
{
    struct limefs_snapshot *snap;
    int err = limefs_snapshot_get_current(fs, fs->inodes.root, &snap);
    if (err)
        return limefs_snapshot_error_is_logged(err) ? err : log_error(fs->source, "open", err);
    if (fs->options.rw)
        err = limefs_writer_hold_for_mount(fs, snap);
    if (err) {
        limefs_snapshot_unpin(fs, snap);
        return log_error(fs->source, "open for writing", err);
    }
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    if (!limefile_index_is_container(index))
        err =
            limefile_index_fault(index)->code; /* limefs_snapshot_get_current() has logged it */
    limefile_index_free(index);
    limefs_snapshot_unpin(fs, snap);
    return err;
}

/* Opens the container's directory, to reach the container even if the mount hides its path. */
static int open_parent(struct limefs *fs)
{
    char *slash = strrchr(fs->source, '/');
    fs->container = slash + 1;
    if (slash == fs->source)
        return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *slash = '\0';
    int fd = open(fs->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *slash = '/';
    return fd;
}

static int open_source_path(struct limefs *fs, const char *source)
{
    struct stat st;
    fs->source = realpath(source, NULL);
    if (!fs->source || stat(fs->source, &st) != 0)
        return log_error(source, "open", -errno);
    bool is_tree = S_ISDIR(st.st_mode);
    fs->source_fd =
        is_tree ? open(fs->source, O_PATH | O_DIRECTORY | O_CLOEXEC) : open_parent(fs);
    if (fs->source_fd < 0)
        return log_error(source, "open", -errno);
    limefs_writers_init(fs);
    limefs_verify_init(fs);
    int err = limefs_exports_init(fs);
    if (!err)
        err = limefs_inodes_init(fs, is_tree ? LIMEFS_DIRECTORY : LIMEFS_CONTAINER, &st);
    if (err)
        return log_error(source, "open", err);
    return is_tree ? 0 : try_container(fs);
}

static void init_fs(struct limefs *fs)
{
    memset(fs, 0, sizeof *fs);
    fs->source_fd = -1;
    limefs_lock_init(&fs->lock, LIMEFS_LOCK_FS);
}

static void release_fs(struct limefs *fs)
{
    limefs_files_release(fs);
    limefs_dirs_release(fs);
    limefs_writer_release_for_mount(fs);
    limefs_exports_release(fs);
    limefs_snapshots_release(fs);
    limefs_inodes_release(fs);
    if (fs->source_fd >= 0)
        close(fs->source_fd);
    free(fs->source);
}

/* ---- the mount ---- */

/* Returns true after a message if a file system is mounted there. The mount point of an
 * automounter is mounted over. */
static bool is_mounted(const char *mountpoint)
{
    char type[LIMEFS_MOUNT_TYPE_MAX];
    if (!limefs_mount_point_type(mountpoint, type) || strcmp(type, "autofs") == 0)
        return false;
    limefs_log(
        LOG_ERR, "%s: is already a mount point; unmount it with '%s %s', or give -o over_mount",
        mountpoint, strcmp(type, "fuse.limefs") == 0 ? "limefs -u" : "umount", mountpoint);
    return true;
}

/* Checks that the mount point is a directory without a mount, and that it is not inside the
 * tree that is shown, where the daemon would wait for itself. */
static int check_mountpoint(const struct limefs *fs, const struct limefs_command *command)
{
    const char *mountpoint = command->fuse.mountpoint;
    struct stat st;
    size_t len = strlen(fs->source);
    bool exists = stat(mountpoint, &st) == 0;
    if (!exists && errno == ENOTCONN) {
        limefs_log(LOG_ERR, "%s: mount: stale mount: its daemon has exited; run 'limefs -u %s'",
                   mountpoint, mountpoint);
        return -ENOTCONN;
    }
    if (!command->over_mount && is_mounted(mountpoint))
        return -EBUSY;
    if (exists && !S_ISDIR(st.st_mode) && !S_ISCHR(st.st_mode))
        return log_error(mountpoint, "mount", -ENOTDIR); /* /dev/fd/N is a device: /dev/fuse */
    if (fs->container || strncmp(mountpoint, fs->source, len) != 0 ||
        (mountpoint[len] != '/' && len > 1) || mountpoint[len] == '\0')
        return 0;
    limefs_log(LOG_ERR, "%s: mount: inside the source %s; choose another mount point",
               mountpoint, fs->source);
    return -EINVAL;
}

/* Raises the limit of open files. Lets unused open containers take at most half of it. */
static void raise_open_file_limit(struct limefs *fs)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (fs->options.max_open > limit.rlim_max / 2)
        fs->options.max_open = (unsigned)(limit.rlim_max / 2);
}

enum { DIRTY_PERCENT = 3 }; /* of the system's dirty pages: enough to keep a disk busy */

struct mount_watch {
    struct limefs *fs;
    const char *mountpoint;
    bool lacks_job; /* the job that job_required requires */
};

/* Changes one of the kernel's settings for the mount's pages. Fails if not root. */
static bool write_bdi_setting(const struct statx *root, const char *name, uint64_t value)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/%s", root->stx_dev_major,
             root->stx_dev_minor, name);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    fprintf(file, "%llu\n", (unsigned long long)value);
    return fclose(file) == 0;
}

/* Raises two limits of the kernel, which only root may do. Defaults for a FUSE mount: 128 KiB
 * of readahead; a writer waits once the mount has 1 % of the permitted dirty pages. */
static void set_kernel_cache(struct limefs *fs, const struct statx *root)
{
    uint64_t ahead = fs->options.readahead;
    if (ahead > 0 && write_bdi_setting(root, "read_ahead_kb", ahead / 1024))
        fs->has_large_readahead = ahead >= LIMEFILE_DIRECT_MIN;
    if (fs->options.rw)
        write_bdi_setting(root, "max_ratio", DIRTY_PERCENT);
}

/* Returns true for the root of a mount, and always before Linux 5.8, which lacks the flag. */
static bool is_mount_root(const struct statx *root)
{
    return root->stx_attributes & STATX_ATTR_MOUNT_ROOT ||
           !(root->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT);
}

/* Waits until the mount answers open(2), which shows that it is ready. Then changes the
 * kernel's settings, which exist by then. Returns false if the mount ended first. */
static bool wait_for_mount(const struct mount_watch *watch)
{
    struct statx st;
    int root = open(watch->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) /* EACCES and other errors are answers */
        return errno != ECONNREFUSED && errno != ECONNABORTED && errno != ENOTCONN;
    bool is_ours =
        statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) == 0 && is_mount_root(&st);
    if (is_ours)
        set_kernel_cache(watch->fs, &st);
    close(root);
    return is_ours;
}

/* Ends the session through a handler of libfuse. With --run, the daemon ignores SIGTERM; in
 * other cases, its parent may let it ignore SIGHUP. */
static void end_session(void)
{
    struct sigaction term;
    sigaction(SIGTERM, NULL, &term);
    kill(getpid(), term.sa_handler == SIG_IGN ? SIGHUP : SIGTERM);
}

/* Thread function: reports "mounted". If the mount ends first, or lacks its job and is ended
 * here, main() reports an error. */
static void *announce_mount(void *data)
{
    struct mount_watch *watch = data;
    if (!wait_for_mount(watch))
        return NULL;
    if (!limefs_job_wait_start(watch->fs)) {
        watch->lacks_job = true;
        end_session();
        return NULL;
    }
    if (!watch->fs->foreground) {
        limefs_log_open(false);
        close_output();
    }
    report_ready(0);
    return NULL;
}

enum {
    DEFAULT_THREADS = 10, /* libfuse's default; the user may also have given this number */
    JOB_THREADS = 80,     /* for all readahead requests (max_background), and some more */
};

/* Returns the maximum number of threads; with a job more, because they wait for the job. */
static unsigned max_thread_count(const struct limefs *fs, const struct fuse_cmdline_opts *opts)
{
    if (opts->singlethread)
        return 1;
    unsigned threads = DEFAULT_THREADS;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 12)
    if (opts->max_threads != UINT_MAX) /* given */
        threads = opts->max_threads;
#endif
    return threads == DEFAULT_THREADS && (fs->options.ranks || fs->options.job) ? JOB_THREADS
                                                                                : threads;
}

/* Serves requests with several threads until the file system is unmounted. libfuse before 3.12
 * starts a thread whenever all others are busy. */
static int run_threads(struct fuse_session *session, const struct limefs *fs,
                       const struct fuse_cmdline_opts *opts)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 12)
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (!config)
        return -ENOMEM;
    fuse_loop_cfg_set_clone_fd(config, 1);
    if (opts->max_idle_threads != UINT_MAX) /* given */
        fuse_loop_cfg_set_idle_threads(config, opts->max_idle_threads);
    fuse_loop_cfg_set_max_threads(config, fs->threads);
    int err = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    return err;
#else
    (void)fs;
    struct fuse_loop_config config = {1, opts->max_idle_threads};
    return fuse_session_loop_mt(session, &config);
#endif
}

static int run_session_loop(struct fuse_session *session, struct limefs *fs,
                            const struct fuse_cmdline_opts *opts)
{
    struct mount_watch watch = {fs, opts->mountpoint, false};
    pthread_t thread;
    int err = limefs_thread_start(&thread, NULL, announce_mount, &watch);
    if (!err) {
        err = opts->singlethread ? fuse_session_loop(session) : run_threads(session, fs, opts);
        limefs_creds_release(); /* with -s, this thread has served; unmounting needs root */
        limefs_readahead_stop(fs);
        limefs_work_stop(fs);          /* its replies need the descriptor closed below */
        fuse_session_unmount(session); /* ends announce_mount()'s first wait */
        limefs_job_begin_stop(fs);     /* and its second one */
        pthread_join(thread, NULL);
    }
    if (watch.lacks_job)
        return 1;
    return err > 0 ? 0 : err; /* > 0: a signal, the usual way to end the daemon */
}

/* Removes control characters of the mount point from messages of fusermount3 and mount(8). */
static int mount_session(struct fuse_session *session, const char *mountpoint)
{
    limefs_log_capture_stderr();
    int err = fuse_session_mount(session, mountpoint);
    /* Keep the lines of their output, unless the mount point itself contains a newline. */
    limefs_log_restore_stderr(strchr(mountpoint, '\n') ? "" : "\n");
    return err;
}

/* Mounts, serves until it is unmounted or a signal arrives, and unmounts. */
static int serve_requests(struct limefs *fs, struct fuse_session *session,
                          const struct fuse_cmdline_opts *opts)
{
    if (fuse_set_signal_handlers(session) != 0)
        return log_error(opts->mountpoint, "set signal handlers", -errno);
    int err = -EINVAL; /* libfuse has logged why it could not mount */
    if (mount_session(session, opts->mountpoint) == 0) {
        fs->threads = max_thread_count(fs, opts);
        fs->session = session;
        fs->mounted_at = limefs_clock_seconds();
        err = limefs_session_setup(session);
        if (!err)
            err = limefs_work_start(fs);
        if (!err)
            err = limefs_job_start(fs);
        if (!err) {
            limefs_readahead_start(fs);
            err = run_session_loop(session, fs, opts);
            limefs_readahead_stop(fs); /* if the loop did not run or failed */
        }
        if (err < 0)
            limefs_log(LOG_ERR, "%s: serve: %s", opts->mountpoint, limefile_strerror(err));
        fuse_session_unmount(session);
    }
    limefs_work_stop(fs);
    limefs_job_stop(fs);
    fs->session = NULL;
    signal(SIGHUP, SIG_IGN); /* run_command.c may send it now; the cleanup continues */
    fuse_remove_signal_handlers(session);
    return err;
}

/* Returns a session, which the caller destroys, or NULL after logging a message. */
static struct fuse_session *create_session(struct limefs *fs, struct limefs_command *command)
{
    char message[512] = "";
    int err = limefs_options_add_source(command, fs->options.rw, fs->source);
    if (err) {
        log_error(command->source, "mount", err);
        return NULL;
    }
    limefs_log_capture_libfuse(message, sizeof message);
    struct fuse_session *session =
        fuse_session_new(&command->args, &limefs_ops, sizeof limefs_ops, fs);
    limefs_log_capture_libfuse(NULL, 0);
    if (!session)
        limefs_options_report_error(message);
    return session;
}

/* If no job can be started, warns, and prepares a mount without it. Returns false if the job is
 * required. */
static bool prepare_job(struct limefs *fs)
{
    bool required = fs->options.job_required;
    if (limefs_launch_check(&fs->options, fs->no_job_reason))
        return true;
    limefs_log(required ? LOG_ERR : LOG_WARNING, "%s; %s", fs->no_job_reason,
               required ? "nothing is mounted (job_required)" : "mounting without a job");
    fs->options.ranks = 0;
    return !required;
}

static int run_mount(struct limefs *fs, struct limefs_command *command)
{
    if (open_source_path(fs, command->source) != 0 || check_mountpoint(fs, command) != 0 ||
        !prepare_job(fs))
        return 1;
    struct fuse_session *session = create_session(fs, command);
    if (!session)
        return 2;
    bool has_fuse_fd = strncmp(command->fuse.mountpoint, "/dev/fd/", 8) == 0;
    fs->mountpoint = has_fuse_fd ? NULL : command->fuse.mountpoint;
    int err = command->run     ? leave_directory()
              : fs->foreground ? 0
                               : become_daemon(has_fuse_fd);
    if (err)
        log_error(fs->source, "start a daemon", err);
    else
        err = serve_requests(fs, session, &command->fuse);
    fuse_session_destroy(session);
    return err ? 1 : 0;
}

/* Returns exit_code, or 1 instead of 0 if standard output could not be written. */
static int flush_stdout(int exit_code)
{
    errno = EIO; /* for an earlier failure, whose errno is lost */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return exit_code;
    log_error("standard output", "write", -errno);
    return exit_code ? exit_code : 1;
}

/* Runs the daemon, and for --run first forks it. Returns the exit status. */
static int run_daemon(struct limefs *fs, struct limefs_command *command)
{
    if (command->run) {
        int exit_code = limefs_mount_and_run(command, &parent_pipe);
        if (exit_code >= 0)
            return exit_code;
        if (strncmp(command->fuse.mountpoint, "/dev/fd/", 8) != 0)
            close_inherited_fds();
    }
    signal(SIGXFSZ, SIG_IGN); /* lets a write beyond the size limit fail with EFBIG */
    signal(SIGIO, SIG_IGN);   /* sent when a lease breaks: see limefile_is_being_written() */
    limefs_creds_init(fs);
    fs->foreground = command->fuse.foreground || command->fuse.debug || command->run;
    raise_open_file_limit(fs);
    return run_mount(fs, command);
}

int main(int argc, char *argv[])
{
    static struct limefs fs;
    struct limefs_command command;
    if (argc > 1 && strcmp(argv[1], "--supervisor") == 0)
        return limefs_supervisor_main(argc, argv);
    if (limefile_complete_requested(argc, argv)) {
        limefs_options_complete(argc - 2, argv + 2);
        return flush_stdout(0);
    }
    bool has_run = limefs_options_find_run(argc, argv) < argc;
    int exit_code = has_run ? -1 : limefs_status_main(argc, argv);
    if (exit_code >= 0)
        return flush_stdout(exit_code);
    exit_code = has_run ? -1 : limefs_unmount_main(argc, argv);
    if (exit_code >= 0)
        return exit_code;
    limefs_log_open(true);
    init_fs(&fs);
    int parsed = limefs_options_parse(argc, argv, &command, &fs.options);
    if (parsed == 0)
        exit_code = run_daemon(&fs, &command);
    else
        exit_code = parsed > 0 ? flush_stdout(0) : has_run ? LIMEFS_RUN_FAILED : 2;
    report_ready(exit_code ? exit_code : 1); /* does nothing after "mounted" */
    release_fs(&fs);
    limefs_thread_buffers_release();
    if (command.new_mountpoint)
        rmdir(command.new_mountpoint); /* if it is not mounted any more */
    limefs_options_release(&command, &fs.options);
    return exit_code;
}
