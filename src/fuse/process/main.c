/* main.c - the limefs process: set up, mount, serve requests, clean up */
#define _GNU_SOURCE
#include "ahead.h"
#include "dir.h"
#include "errand.h"
#include "faces.h"
#include "file.h"
#include "job.h"
#include "launch.h"
#include "ops.h"
#include "options.h"
#include "buffer.h"
#include "caller.h"
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

static int fail(const char *file, const char *action, int err)
{
    limefs_log(LOG_ERR, "%s: %s: %s", file, action, limefile_strerror(err));
    return err;
}

/* ---- the daemon, whose parent exits when the mount is ready ---- */

static int to_parent = -1;

static void wait_for_child(int from_child)
{
    unsigned char exit_code;
    ssize_t got;
    do
        got = read(from_child, &exit_code, 1);
    while (got < 0 && errno == EINTR);
    _exit(got == 1 ? exit_code : 1);
}

/* Closes inherited descriptors: a lock or the end of a pipe must not stay open as long as the
 * mount. All descriptors opened here are close-on-exec, so the others are inherited. */
static void close_inherited(void)
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

/* Forks. The parent waits for report_ready() and exits with its code, or 1 if the child dies
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
    to_parent = ends[1];
    if (!keep_inherited)
        close_inherited();
    setsid();
    return chdir("/") == 0 ? 0 : -errno; /* keeps no directory busy; all paths are absolute */
}

/* Reports an exit code to the waiting parent; 0 is "mounted". Later calls do nothing. */
static void report_ready(int exit_code)
{
    if (to_parent < 0)
        return;
    /* From now on no program reads the output of the daemon. */
    int null = open("/dev/null", O_RDWR);
    if (exit_code == 0 && null >= 0)
        for (int fd = 0; fd <= 2; fd++)
            dup2(null, fd);
    if (null > 2)
        close(null);
    unsigned char code = (unsigned char)exit_code;
    while (write(to_parent, &code, 1) < 0 && errno == EINTR)
        ;
    close(to_parent);
    to_parent = -1;
}

/* ---- the file system ---- */

/* Opens a single container before it is mounted, to report at once what is wrong with it. */
static int try_container(struct limefs *fs)
{
    struct limefs_view *view;
    int err = limefs_view_current(fs, fs->inodes.root, &view);
    if (err)
        return limefs_view_has_told(err) ? err : fail(fs->source, "open", err);
    if (fs->options.rw)
        err = limefs_writer_hold(fs, view);
    if (err) {
        limefs_view_unpin(fs, view);
        return fail(fs->source, "open for writing", err);
    }
    struct limefile_index *index = limefs_view_index(fs, view);
    if (!limefile_index_is_container(index))
        err = limefile_index_fault(index)->code; /* limefs_view_current() has logged it */
    limefile_index_free(index);
    limefs_view_unpin(fs, view);
    return err;
}

/* Opens the container's directory, which leads to it even if the mount covers its path. */
static int open_holder(struct limefs *fs)
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

static int open_source(struct limefs *fs, const char *given)
{
    struct stat st;
    fs->source = realpath(given, NULL);
    if (!fs->source)
        return fail(given, "open", -errno);
    if (stat(fs->source, &st) != 0)
        return fail(given, "open", -errno);
    bool tree = S_ISDIR(st.st_mode);
    fs->source_fd = tree ? open(fs->source, O_PATH | O_DIRECTORY | O_CLOEXEC) : open_holder(fs);
    if (fs->source_fd < 0)
        return fail(given, "open", -errno);
    limefs_writers_begin(fs);
    limefs_verify_begin(fs);
    int err = limefs_faces_begin(fs);
    if (!err)
        err = limefs_inodes_init(fs, tree ? LIMEFS_DIRECTORY : LIMEFS_CONTAINER, &st);
    if (err)
        return fail(given, "open", err);
    return tree ? 0 : try_container(fs);
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
    limefs_writer_let_go(fs);
    limefs_faces_release(fs);
    limefs_views_release(fs);
    limefs_inodes_release(fs);
    if (fs->source_fd >= 0)
        close(fs->source_fd);
    free(fs->source);
}

/* ---- the mount ---- */

/* Checks that the mount point is a directory, and not inside the tree that is shown: the daemon
 * would wait for itself there. */
static int check_place(const struct limefs *fs, const char *mountpoint)
{
    struct stat st;
    size_t len = strlen(fs->source);
    bool there = stat(mountpoint, &st) == 0;
    if (!there && errno == ENOTCONN) {
        limefs_log(LOG_ERR,
                   "%s: mount: stale mount: its daemon has exited; run 'fusermount3 -u'",
                   mountpoint);
        return -ENOTCONN;
    }
    if (there && !S_ISDIR(st.st_mode) && !S_ISCHR(st.st_mode))
        return fail(mountpoint, "mount", -ENOTDIR); /* /dev/fd/N is a /dev/fuse opened for us */
    if (fs->container || strncmp(mountpoint, fs->source, len) != 0 ||
        (mountpoint[len] != '/' && len > 1) || mountpoint[len] == '\0')
        return 0;
    limefs_log(LOG_ERR, "%s: mount: it is inside %s, the tree to be shown; mount elsewhere",
               mountpoint, fs->source);
    return -EINVAL;
}

/* Raises the limit of open files; unused containers that stay open take at most half of it. */
static void arrange_open_files(struct limefs *fs)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (fs->options.max_open > limit.rlim_max / 2)
        fs->options.max_open = (unsigned)(limit.rlim_max / 2);
}

enum {
    DIRTY_PERCENT = 3, /* enough to keep a disk busy; more makes it slower */
};

struct settle {
    struct limefs *fs;
    const char *mountpoint;
};

/* Changes one of the kernel's settings for the mount's pages. False: only root may do so. */
static bool set_kernel(const struct statx *root, const char *name, uint64_t value)
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

/* Without root a FUSE mount has the kernel's defaults: 128 KiB of readahead, and a writer waits
 * when the mount has 1 % of the dirty pages that the system permits. */
static void set_pages(struct limefs *fs, const struct statx *root)
{
    uint64_t ahead = fs->options.readahead;
    if (ahead > 0 && set_kernel(root, "read_ahead_kb", ahead / 1024))
        fs->reads_far = ahead >= LIMEFILE_DIRECT_MIN;
    if (fs->options.rw)
        set_kernel(root, "max_ratio", DIRTY_PERCENT);
}

/* Returns true for the root of a mount, and always before Linux 5.8, which does not tell. */
static bool is_mounted(const struct statx *root)
{
    return root->stx_attributes & STATX_ATTR_MOUNT_ROOT ||
           !(root->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT);
}

/* Waits until the mount answers: only then is it ready, and has the kernel created the settings
 * that set_pages() changes. Returns false if the mount ended first. */
static bool answers(const struct settle *settle)
{
    struct statx st;
    int root = open(settle->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) /* EACCES and other errors are answers */
        return errno != ECONNREFUSED && errno != ECONNABORTED && errno != ENOTCONN;
    bool ours =
        statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) == 0 && is_mounted(&st);
    if (ours)
        set_pages(settle->fs, &st);
    close(root);
    return ours;
}

/* A thread next to the loop: reports "mounted". If the mount has ended, main() reports. */
static void *settle(void *data)
{
    const struct settle *settle = data;
    if (!answers(settle))
        return NULL;
    limefs_job_watch_start(settle->fs);
    if (!settle->fs->foreground)
        limefs_log_open(false);
    report_ready(0);
    return NULL;
}

enum {
    THREADS = 10,         /* libfuse's default, which looks the same if the user gives it */
    THREADS_WAITING = 80, /* all readahead of the kernel (max_background), and some others */
};

/* Returns the most threads to serve requests; more with a job, for whose loads readers wait. */
static unsigned most_threads(const struct limefs *fs, const struct fuse_cmdline_opts *opts)
{
    if (opts->singlethread)
        return 1;
    unsigned threads = opts->max_threads == UINT_MAX ? THREADS : opts->max_threads;
    return threads == THREADS && (fs->options.ranks || fs->options.job) ? THREADS_WAITING
                                                                        : threads;
}

static int loop(struct fuse_session *session, struct limefs *fs,
                const struct fuse_cmdline_opts *opts)
{
    struct settle what = {fs, opts->mountpoint};
    pthread_t thread;
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (!config)
        return -ENOMEM;
    fuse_loop_cfg_set_clone_fd(config, 1);
    if (opts->max_idle_threads != UINT_MAX) /* given */
        fuse_loop_cfg_set_idle_threads(config, opts->max_idle_threads);
    fuse_loop_cfg_set_max_threads(config, fs->threads);
    int err = limefs_thread_start(&thread, NULL, settle, &what);
    if (!err) {
        err = opts->singlethread ? fuse_session_loop(session)
                                 : fuse_session_loop_mt(session, config);
        limefs_ahead_end(fs);
        limefs_errands_end(fs);        /* it replies by the descriptor that unmounting closes */
        fuse_session_unmount(session); /* wakes the thread if it still waits */
        pthread_join(thread, NULL);
    }
    limefs_caller_release();
    fuse_loop_cfg_destroy(config);
    return err > 0 ? 0 : err; /* > 0: a signal, the usual way to end it */
}

/* libfuse may run fusermount3 or mount, which print the mount point unchanged. */
static int mount_session(struct fuse_session *session, const char *mountpoint)
{
    limefs_log_catch();
    int err = fuse_session_mount(session, mountpoint);
    /* Keep the lines of their output, unless the mount point itself contains a newline. */
    limefs_log_release(strchr(mountpoint, '\n') ? "" : "\n");
    return err;
}

/* Mounts, serves until it is unmounted or a signal arrives, and unmounts. */
static int serve(struct limefs *fs, struct fuse_session *session,
                 const struct fuse_cmdline_opts *opts)
{
    if (fuse_set_signal_handlers(session) != 0)
        return fail(opts->mountpoint, "set signal handlers", -errno);
    int err = -EINVAL; /* libfuse has logged why it could not mount */
    if (mount_session(session, opts->mountpoint) == 0) {
        fs->threads = most_threads(fs, opts);
        fs->session = session;
        err = limefs_session_adjust(session);
        if (!err)
            err = limefs_errands_begin(fs);
        if (!err)
            err = limefs_job_start(fs);
        if (!err) {
            limefs_ahead_begin(fs);
            err = loop(session, fs, opts);
            limefs_ahead_end(fs); /* if loop() did not run or failed */
        }
        if (err)
            limefs_log(LOG_ERR, "%s: serve: %s", opts->mountpoint, limefile_strerror(err));
        fuse_session_unmount(session);
    }
    limefs_errands_end(fs);
    limefs_job_stop(fs);
    fs->session = NULL;
    fuse_remove_signal_handlers(session);
    return err;
}

/* Returns NULL after it logged a message. */
static struct fuse_session *new_session(struct limefs *fs, struct limefs_command *command)
{
    char said[512] = "";
    int err = limefs_options_finish(command, fs->options.rw, fs->source);
    if (err) {
        fail(command->source, "mount", err);
        return NULL;
    }
    limefs_log_collect(said, sizeof said);
    struct fuse_session *session =
        fuse_session_new(&command->args, &limefs_ops, sizeof limefs_ops, fs);
    limefs_log_collect(NULL, 0);
    if (!session)
        limefs_options_complain(said);
    return session;
}

/* Returns the exit code. */
static int run(struct limefs *fs, struct limefs_command *command)
{
    if (open_source(fs, command->source) != 0 ||
        check_place(fs, command->fuse.mountpoint) != 0 ||
        limefs_launch_check(&fs->options) != 0)
        return 1;
    struct fuse_session *session = new_session(fs, command);
    if (!session)
        return 2;
    bool opened_for_us = strncmp(command->fuse.mountpoint, "/dev/fd/", 8) == 0;
    fs->mountpoint = opened_for_us ? NULL : command->fuse.mountpoint;
    int err = fs->foreground ? 0 : become_daemon(opened_for_us);
    if (err)
        fail(fs->source, "start a daemon", err);
    else
        err = serve(fs, session, &command->fuse);
    fuse_session_destroy(session);
    return err ? 1 : 0;
}

/* Returns exit_code, or 1 instead of 0 if standard output could not be written. */
static int printed(int exit_code)
{
    errno = EIO; /* for an earlier failure, whose errno is lost */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return exit_code;
    fail("standard output", "write", -errno);
    return exit_code ? exit_code : 1;
}

int main(int argc, char *argv[])
{
    static struct limefs fs;
    struct limefs_command command;
    if (argc > 1 && strcmp(argv[1], "--supervisor") == 0)
        return limefs_keeper_main(argc, argv);
    int exit_code = limefs_status_main(argc, argv);
    if (exit_code >= 0)
        return printed(exit_code);
    limefs_log_open(true);
    init_fs(&fs);
    signal(SIGXFSZ, SIG_IGN); /* lets a write beyond the limit fail with EFBIG */
    signal(SIGIO, SIG_IGN);   /* sent when a lease breaks: see limefile_is_being_written() */
    exit_code = 0;
    int done = limefs_options_read(argc, argv, &command, &fs.options);
    if (done < 0)
        exit_code = 2;
    if (done > 0)
        exit_code = printed(0);
    if (done == 0) {
        limefs_caller_init(&fs);
        fs.foreground = command.fuse.foreground || command.fuse.debug;
        arrange_open_files(&fs);
        exit_code = run(&fs, &command);
    }
    report_ready(exit_code ? exit_code : 1); /* does nothing after "mounted" */
    release_fs(&fs);
    limefs_buffer_release();
    limefs_options_release(&command, &fs.options);
    return exit_code;
}
