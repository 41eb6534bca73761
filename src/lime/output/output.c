/* output.c - write output files that appear only when complete and never replace an input */
#define _GNU_SOURCE
#include "limeoutput.h"
#include "descriptor.h"
#include "limeedit.h"
#include "limecleanup.h"
#include "tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the target ---- */

/* Sets out->name, and out->directory (absolute). Modifies `path`. -EISDIR: it ends with '/'. */
static int split_path(struct limefile_output *out, char *path)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!*name)
        return -EISDIR;
    out->name = strdup(name);
    if (slash)
        slash[slash == path] = '\0';
    out->directory = realpath(slash ? path : ".", NULL);
    return out->name && out->directory ? 0 : -errno;
}

static void record_target(struct limefile_output *out, const struct stat *st)
{
    out->exists = true;
    out->device = st->st_dev;
    out->inode = st->st_ino;
}

/* Finds the name and directory of the target; follows symbolic links. */
static int find_target(struct limefile_output *out, const char *path)
{
    struct stat st;
    char *copy = NULL;
    if (stat(path, &st) == 0) {
        if (!S_ISREG(st.st_mode))
            return S_ISDIR(st.st_mode) ? -EISDIR : LIMEFILE_E_NOT_FILE;
        record_target(out, &st);
        copy = realpath(path, NULL);
    } else if (errno == ENOENT) {
        if (lstat(path, &st) == 0)
            return LIMEFILE_E_OUTPUT_LINK;
        copy = strdup(path);
    }
    int err = copy ? split_path(out, copy) : -errno;
    free(copy);
    return err;
}

/* If the user may not read the directory, opens it with O_PATH; it cannot be synced then. */
static int open_target_dir(struct limefile_output *out)
{
    out->dir_fd = open(out->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->dir_fd < 0 && errno == EACCES)
        out->dir_fd = open(out->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return out->dir_fd < 0 ? -errno : 0;
}

static bool is_same_target(const struct limefile_output *out, const struct stat *st)
{
    return st->st_dev == out->device && st->st_ino == out->inode;
}

/* Sets out->identity. A new target has the identity "", unless its directory is in a limefs
 * mount: then it has the directory's, which may show a container that a new file changes. */
static int identify_target(struct limefile_output *out)
{
    struct stat st;
    int fd =
        openat(out->dir_fd, out->exists ? out->name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int err = errno == ENOENT ? LIMEFILE_E_OUTPUT_CHANGED : -errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    out->identity = limefile_output_file_id(fd, !out->exists);
    close(fd);
    if (out->exists && !is_same_target(out, &st))
        return LIMEFILE_E_OUTPUT_CHANGED;
    return out->identity ? 0 : -ENOMEM;
}

static int lock_target(struct limefile_output *out)
{
    struct stat st;
    out->old = limefile_output_lock(out->dir_fd, out->name);
    if (out->old < 0)
        return out->old == -EBUSY    ? LIMEFILE_E_OUTPUT_LOCKED
               : out->old == -ENOENT ? LIMEFILE_E_OUTPUT_CHANGED
                                     : out->old;
    return fstat(out->old, &st) != 0  ? -errno
           : is_same_target(out, &st) ? 0
                                      : LIMEFILE_E_OUTPUT_CHANGED;
}

bool limefile_output_is_target(const struct limefile_output *out, int fd)
{
    if (!out->identity || !*out->identity)
        return false;
    char *identity = limefile_output_file_id(fd, false);
    bool is_target = identity && strcmp(out->identity, identity) == 0;
    free(identity);
    return is_target;
}

/* ---- the file ---- */

static void release_output(struct limefile_output *out)
{
    if (out->fd >= 0)
        close(out->fd);
    if (out->old >= 0)
        close(out->old);
    if (out->dir_fd >= 0)
        close(out->dir_fd);
    free(out->temporary);
    free(out->temp_name);
    free(out->identity);
    free(out->directory);
    free(out->name);
    *out = (struct limefile_output){.fd = -1, .old = -1, .dir_fd = -1};
}

static int create_temporary(struct limefile_output *out)
{
    sigset_t before;
    struct stat st;
    int err = 0;
    limefile_cleanup_block(&before);
    out->fd = limefile_tempfile_create(out->dir_fd, out->name, out->old >= 0 ? 0600 : 0666,
                                       &out->temp_name);
    if (out->fd < 0)
        err = out->fd;
    else
        limefile_cleanup_add(out->dir_fd, out->temp_name);
    limefile_cleanup_unblock(&before);
    if (err || out->old >= 0 || out->is_one_of_many)
        return err;
    /* The commit gives a new target the mode that umask and default ACL give to a new file. */
    if (fstat(out->fd, &st) != 0)
        return -errno;
    out->mode = st.st_mode & 0777;
    fchmod(out->fd, 0600);
    return 0;
}

int limefile_output_find(struct limefile_output *out, const char *path)
{
    *out = (struct limefile_output){.fd = -1, .old = -1, .dir_fd = -1};
    int err = find_target(out, path);
    if (!err)
        err = open_target_dir(out);
    if (!err)
        err = identify_target(out);
    if (err)
        release_output(out);
    return err;
}

static int prepare_temporary(struct limefile_output *out)
{
    if (!out->is_one_of_many)
        limefile_output_remove_stale(out->dir_fd);
    int err = create_temporary(out);
    if (!err && out->directory &&
        asprintf(&out->temporary, "%s/%s", out->directory[1] ? out->directory : "",
                 out->temp_name) < 0) {
        out->temporary = NULL;
        err = -ENOMEM;
    }
    return err;
}

int limefile_output_create(struct limefile_output *out, bool force)
{
    int err = 0;
    if (out->exists)
        err = !force ? LIMEFILE_E_OUTPUT_EXISTS : out->is_link ? 0 : lock_target(out);
    if (!err)
        err = prepare_temporary(out);
    if (err)
        limefile_output_abort(out);
    return err;
}

static int create_unless_input(struct limefile_output *out, bool force, const int *inputs,
                               size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (limefile_output_is_target(out, inputs[i])) {
            release_output(out);
            return LIMEFILE_E_OUTPUT_INPUT;
        }
    return limefile_output_create(out, force);
}

int limefile_output_open(struct limefile_output *out, const char *path, bool force,
                         const int *inputs, size_t count)
{
    int err = limefile_output_find(out, path);
    return err ? err : create_unless_input(out, force, inputs, count);
}

static int find_target_at(struct limefile_output *out, const char *name)
{
    struct stat st;
    out->name = strdup(name);
    if (!out->name)
        return -ENOMEM;
    if (fstatat(out->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    record_target(out, &st);
    out->is_link = S_ISLNK(st.st_mode);
    return S_ISREG(st.st_mode) || out->is_link ? 0
           : S_ISDIR(st.st_mode)               ? -EISDIR
                                               : LIMEFILE_E_NOT_FILE;
}

int limefile_output_open_at(struct limefile_output *out, int dir_fd, const char *name,
                            bool force, const int *inputs, size_t count)
{
    *out = (struct limefile_output){.fd = -1, .old = -1, .is_one_of_many = true};
    out->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
    int err = out->dir_fd < 0 ? -errno : find_target_at(out, name);
    if (!err && out->exists)
        err = identify_target(out);
    if (!err)
        return create_unless_input(out, force, inputs, count);
    release_output(out);
    return err;
}

/* Sets the mode. On file systems without modes, or with one owner for all files, fchmod()
 * fails; this is not an error if the mode is right anyway. */
static int set_mode(int fd, mode_t mode)
{
    struct stat st;
    if (fchmod(fd, mode) == 0)
        return 0;
    int err = -errno;
    return fstat(fd, &st) == 0 && (st.st_mode & 0777) == mode ? 0 : err;
}

/* Sets the owner and mode of the temporary file. If it cannot get the old target's group or
 * access control list, its group gets only the permissions that all other users get. */
static int copy_mode(const struct limefile_output *out)
{
    struct stat st;
    mode_t mode = out->mode;
    if (out->is_one_of_many && out->old < 0)
        return 0; /* the temporary file was created with the mode of a new file */
    if (out->old >= 0) {
        if (fstat(out->old, &st) != 0)
            return -errno;
        mode = st.st_mode & 0777;
        if ((fchown(out->fd, st.st_uid, st.st_gid) != 0 &&
             fchown(out->fd, (uid_t)-1, st.st_gid) != 0) ||
            limefile_acl_copy(out->old, out->fd) != 0)
            mode = (mode & ~(mode_t)070) | (mode & 07) << 3;
    }
    return set_mode(out->fd, mode);
}

/* Replaces the target if it is still the old file. The lock of lock_target() keeps other
 * programs of this project from replacing it between this check and the rename. */
static int replace_target(const struct limefile_output *out)
{
    struct stat st;
    if (fstatat(out->dir_fd, out->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? LIMEFILE_E_OUTPUT_CHANGED : -errno;
    if (!is_same_target(out, &st))
        return LIMEFILE_E_OUTPUT_CHANGED;
    return renameat(out->dir_fd, out->temp_name, out->dir_fd, out->name) == 0 ? 0 : -errno;
}

/* Gives the temporary file the target's name. Fails if a file already has this name. */
static int create_target(const struct limefile_output *out)
{
    struct stat st;
    int dir_fd = out->dir_fd;
    if (renameat2(dir_fd, out->temp_name, dir_fd, out->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno == EEXIST ? LIMEFILE_E_OUTPUT_CHANGED : -errno;
    /* The file system does not support RENAME_NOREPLACE. */
    if (linkat(dir_fd, out->temp_name, dir_fd, out->name, 0) == 0) {
        unlinkat(dir_fd, out->temp_name, 0);
        return 0;
    }
    if (errno == EEXIST || fstatat(dir_fd, out->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return LIMEFILE_E_OUTPUT_CHANGED;
    /* The file system does not support hard links either. */
    return renameat(dir_fd, out->temp_name, dir_fd, out->name) == 0 ? 0 : -errno;
}

static int rename_temporary(struct limefile_output *out)
{
    sigset_t before;
    limefile_cleanup_block(&before);
    int err = limefile_check_name(out->dir_fd, out->temp_name, out->fd);
    if (!err)
        err = out->exists ? replace_target(out) : create_target(out);
    if (!err) {
        limefile_cleanup_remove(out->temp_name);
        free(out->temp_name);
        out->temp_name = NULL;
    }
    limefile_cleanup_unblock(&before);
    return err;
}

int limefile_output_commit(struct limefile_output *out)
{
    int err = copy_mode(out);
    if (!err && !out->without_sync && fsync(out->fd) != 0)
        err = -errno;
    if (!err)
        err = rename_temporary(out);
    if (!err && !out->is_one_of_many && fsync(out->dir_fd) != 0 && errno != EINVAL &&
        errno != EBADF)
        err = -errno;
    limefile_output_abort(out);
    return err;
}

void limefile_output_abort(struct limefile_output *out)
{
    if (out->temp_name) {
        if (out->fd >= 0 && limefile_check_name(out->dir_fd, out->temp_name, out->fd) == 0)
            unlinkat(out->dir_fd, out->temp_name, 0);
        limefile_cleanup_remove(out->temp_name);
    }
    release_output(out);
}
