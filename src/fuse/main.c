/* main.c - the limefs process: from the command line to the loop and back */
#define _GNU_SOURCE
#include "inode.h"
#include "ops.h"
#include "options.h"
#include "buffer.h"
#include "ready.h"
#include "tree.h"
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <syslog.h>
#include <unistd.h>

static int fail(const char *file, const char *action, int err)
{
    fprintf(stderr, "limefs: %s: %s: %s\n", file, action, limefile_strerror(err));
    return err;
}

/* ---- the file system ---- */

/* A single container is looked into now, so that what is wrong is said now. */
static int try_container(struct limefs *fs)
{
    struct limefs_view *view;
    int err = limefs_view_current(fs, fs->root, &view);
    if (err)
        return fail(fs->source, "open", err);
    if (!limefile_index_is_container(view->index))
        err = limefile_index_fault(view->index)->code; /* the log has it */
    limefs_view_unpin(fs, view);
    return err;
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
    if (tree) {
        fs->source_fd = open(fs->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fs->source_fd < 0)
            return fail(given, "open", -errno);
    }
    int err = limefs_inodes_init(fs, tree ? LIMEFS_DIRECTORY : LIMEFS_CONTAINER);
    if (err)
        return fail(given, "open", err);
    return tree ? 0 : try_container(fs);
}

static void init_fs(struct limefs *fs)
{
    memset(fs, 0, sizeof *fs);
    fs->source_fd = -1;
    pthread_mutex_init(&fs->lock, NULL);
    for (int i = 0; i < LIMEFS_LOAD_LOCKS; i++)
        pthread_mutex_init(&fs->load[i], NULL);
}

static void release_fs(struct limefs *fs)
{
    limefs_views_release(fs);
    limefs_inodes_release(fs);
    if (fs->source_fd >= 0)
        close(fs->source_fd);
    free(fs->source);
}

/* ---- the mount ---- */

/* The daemon would wait for itself if its own mount stood inside the tree that it shows. */
static int check_place(const struct limefs *fs, const char *mountpoint)
{
    size_t len = strlen(fs->source);
    if (fs->source_fd < 0 || strncmp(mountpoint, fs->source, len) != 0 ||
        (mountpoint[len] != '/' && len > 1) || mountpoint[len] == '\0')
        return 0;
    fprintf(stderr, "limefs: %s: mount: inside of %s, which it would show; mount elsewhere\n",
            mountpoint, fs->source);
    return -EINVAL;
}

/* Many containers may be open at once. */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

struct settle {
    const struct limefs *fs;
    const char *mountpoint;
};

/*
 * Runs beside the loop until the mount answers: then it is ready, and the kernel has made
 * the setting that is changed here. Without the right to change it (an ordinary user), 128
 * KiB remain.
 */
static void *settle(void *data)
{
    const struct settle *settle = data;
    struct stat st;
    if (stat(settle->mountpoint, &st) == 0 && settle->fs->options.readahead) {
        char path[64];
        snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", major(st.st_dev),
                 minor(st.st_dev));
        FILE *file = fopen(path, "we");
        if (file) {
            fprintf(file, "%llu\n", (unsigned long long)settle->fs->options.readahead / 1024);
            fclose(file);
        }
    }
    if (!settle->fs->foreground)
        limefs_log_open(false);
    limefs_ready(0);
    return NULL;
}

static int loop(struct fuse_session *session, const struct limefs *fs,
                const struct fuse_cmdline_opts *opts)
{
    struct settle what = {fs, opts->mountpoint};
    pthread_t thread;
    sigset_t all, before;
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (!config)
        return -ENOMEM;
    fuse_loop_cfg_set_clone_fd(config, 1);
    if (opts->max_idle_threads != UINT_MAX) /* given */
        fuse_loop_cfg_set_idle_threads(config, opts->max_idle_threads);
    if (opts->max_threads != UINT_MAX)
        fuse_loop_cfg_set_max_threads(config, opts->max_threads);
    sigfillset(&all); /* signals are for the loop */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(&thread, NULL, settle, &what);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!err) {
        err = opts->singlethread ? fuse_session_loop(session)
                                 : fuse_session_loop_mt(session, config);
        fuse_session_unmount(session); /* wakes the thread, should it still wait */
        pthread_join(thread, NULL);
    }
    fuse_loop_cfg_destroy(config);
    return err > 0 ? 0 : err; /* ended by a signal: that is how it is stopped */
}

static int serve(struct limefs *fs, struct limefs_command *command)
{
    const char *mountpoint = command->fuse.mountpoint;
    int err = limefs_options_finish(command, fs->source);
    if (err)
        return fail(mountpoint, "mount", err);
    struct fuse_session *session =
        fuse_session_new(&command->args, &limefs_ops, sizeof limefs_ops, fs);
    if (!session)
        return -EINVAL; /* libfuse has said why */
    if (fuse_set_signal_handlers(session) != 0) {
        err = fail(mountpoint, "set signal handlers", -errno);
    } else {
        if (fuse_session_mount(session, mountpoint) != 0) {
            err = -EINVAL;
        } else {
            err = loop(session, fs, &command->fuse);
            if (err)
                limefs_log(LOG_ERR, "%s: serve: %s", mountpoint, limefile_strerror(err));
            fuse_session_unmount(session);
        }
        fuse_remove_signal_handlers(session);
    }
    fuse_session_destroy(session);
    return err;
}

static int run(struct limefs *fs, struct limefs_command *command)
{
    int err = open_source(fs, command->source);
    if (!err)
        err = check_place(fs, command->fuse.mountpoint);
    if (err)
        return err;
    if (!fs->foreground && chdir("/") != 0) /* keep no folder busy; all paths are absolute */
        return fail("/", "enter", -errno);
    if (command->wants_rw)
        fprintf(stderr, "limefs: %s: mounted read-only: this version does not write\n",
                fs->source);
    return serve(fs, command);
}

int main(int argc, char *argv[])
{
    static struct limefs fs;
    struct limefs_command command;
    init_fs(&fs);
    int done = limefs_options_read(argc, argv, &command, &fs.options);
    if (done) {
        limefs_options_release(&command);
        return done > 0 ? 0 : 2;
    }
    fs.foreground = command.fuse.foreground || command.fuse.debug;
    limefs_log_open(true);
    raise_open_files();
    int err = fs.foreground ? 0 : limefs_daemonise();
    if (err)
        fail(command.source, "start a daemon", err);
    else
        err = run(&fs, &command);
    limefs_ready(1); /* does nothing if it was mounted */
    release_fs(&fs);
    limefs_buffer_release();
    limefs_options_release(&command);
    return err ? 1 : 0;
}
