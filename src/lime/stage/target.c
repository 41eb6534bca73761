/* target.c - temporary files: locked, resumed, renamed */
#define _GNU_SOURCE
#include "target.h"
#include "descriptor.h"
#include "limeedit.h"
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMP_SUFFIX    ".limefs-stage"
#define JOURNAL_SUFFIX ".limefs-journal"

enum {
    TRIES = 16, /* to open a temporary that others rename, or adopt, at the same time */
};

/* ---- names ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

/* ".NAME.suffix"; of a name that would become too long, the beginning and a hash. */
static char *beside(const char *name, const char *suffix)
{
    char *out;
    size_t room = NAME_MAX - 1 - strlen(suffix);
    int n = strlen(name) <= room ? asprintf(&out, ".%s%s", name, suffix)
                                 : asprintf(&out, ".%.*s~%016" PRIx64 "%s", (int)(room - 17),
                                            name, hash_of(name), suffix);
    return n < 0 ? NULL : out;
}

static int open_folder(struct stage_target *t, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    t->path = path;
    t->name = slash ? slash + 1 : path;
    t->temp = beside(t->name, TEMP_SUFFIX);
    t->journal = beside(t->name, JOURNAL_SUFFIX);
    int err = folder && t->temp && t->journal ? 0 : -ENOMEM;
    if (!err) {
        t->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        err = t->folder < 0 ? -errno : 0;
    }
    free(folder);
    return err;
}

/* ---- what keeps one from opening ---- */

enum { FOLDER_MAX = 200 }; /* of a folder's name in a sentence; a longer one is left out */

static int folder_length(const struct stage_target *t)
{
    ptrdiff_t n = t->name - t->path;
    return n > FOLDER_MAX ? 0 : (int)n;
}

static void explain_folder(const struct stage_target *t, int err, char *why, size_t cap)
{
    int n = folder_length(t);
    if (err == -ENOENT)
        snprintf(why, cap, "the folder %.*s does not exist; make it first", n, t->path);
    else
        snprintf(why, cap, "open the folder %.*s: %s", n, t->path, limefile_strerror(err));
}

/* What has a name of ours and is nothing of ours; NULL: it may be ours. */
static const char *stranger(const struct stat *st)
{
    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        if (st->st_uid != geteuid())
            return "another user's file";
        return st->st_nlink > 1 ? "a file that has another name, too," : NULL;
    case S_IFLNK:
        return "a link";
    case S_IFDIR:
        return "a folder";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

static void explain(const struct stage_target *t, const char *name, int err, char *why,
                    size_t cap)
{
    struct stat st;
    int n = folder_length(t);
    bool there = fstatat(t->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    const char *what = there ? stranger(&st) : NULL;
    if (what)
        snprintf(why, cap, "%s is in the way; remove it: %.*s%s", what, n, t->path, name);
    else
        snprintf(why, cap, "open the temporary file %.*s%s: %s", n, t->path, name,
                 limefile_strerror(err));
}

/* ---- opening ---- */

/* Ours alone: nobody has put a link or another's file there. */
static int check_temp(int fd, struct stat *st)
{
    if (fstat(fd, st) != 0)
        return -errno;
    return stranger(st) ? -EPERM : 0;
}

/* Where a file system has no locks, there are none. */
static int lock_temp(int fd)
{
    int err = limefile_lock(fd);
    return err == -EBUSY || err == 0 ? err : 0;
}

/* 1: the name in the folder leads to another file than `mine`, or to none. */
static int has_moved(const struct stage_target *t, const char *name, const struct stat *mine)
{
    struct stat st;
    if (fstatat(t->folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 1 : -errno;
    return st.st_dev != mine->st_dev || st.st_ino != mine->st_ino;
}

/* 1: the name is not that of the file which fd has open any more: somebody has removed it, or
 * given it to another one. Nothing may be done by name then. */
static int is_lost(const struct stage_target *t, const char *name, int fd)
{
    struct stat mine;
    return fstat(fd, &mine) != 0 ? -errno : has_moved(t, name, &mine);
}

/* What is another's meanwhile is left to him. */
static int remove_ours(const struct stage_target *t, const char *name, int fd)
{
    int lost = fd < 0 ? 1 : is_lost(t, name, fd);
    if (lost)
        return lost < 0 ? lost : 0;
    return unlinkat(t->folder, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

/* A run that was killed when it had given the source's mode to the temporary: it is ours, and
 * we may not write into it. 1: we may now; try again. The lock, which is one that a read-only
 * file can have, keeps a run out that is just there. */
static int take_back(const struct stage_target *t)
{
    struct stat st;
    struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = openat(t->folder, t->temp, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -EACCES;
    int err = fcntl(fd, F_OFD_SETLK, &all) != 0 && (errno == EAGAIN || errno == EACCES)
                  ? -EBUSY
                  : check_temp(fd, &st);
    if (!err)
        err = has_moved(t, t->temp, &st);
    if (!err)
        err = fchmod(fd, 0600) == 0 ? 1 : -errno;
    close(fd);
    return err;
}

/* The lock comes first: who is at work may have made it another's already. 1: try again. */
static int hold_temp(const struct stage_target *t, int fd, struct stat *st)
{
    int err = lock_temp(fd);
    if (!err)
        err = check_temp(fd, st);
    if (!err)
        err = has_moved(t, t->temp, st);
    if (!err)
        fchmod(fd, 0600); /* of a run that was killed; some file systems have no modes */
    return err;
}

static int open_temp(struct stage_target *t, int flags, struct stat *st)
{
    int refused = 0;
    for (int i = 0; i < TRIES; i++) {
        int fd = limefile_open_at(t->folder, t->temp,
                                  O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
        refused = fd < 0 ? fd : -EBUSY;
        int err = fd >= 0 ? hold_temp(t, fd, st) : refused == -EACCES ? take_back(t) : refused;
        if (err == 0) {
            t->port.fd = fd;
            stage_port_open_direct(&t->port, O_RDWR);
            return 0;
        }
        if (fd >= 0)
            close(fd);
        if (err < 0)
            return err;
    }
    return refused;
}

/* What was adopted and has got no name after all. */
static void make_ours(struct stage_target *t)
{
    if (t->adopted &&
        (fchmod(t->port.fd, 0600) != 0 || fchown(t->port.fd, geteuid(), (gid_t)-1) != 0))
        return; /* it is in the way of the next run then, which says so */
    t->adopted = false;
}

/* Nothing empty stays behind. */
static void leave(struct stage_target *t)
{
    struct stat st;
    if (t->port.fd >= 0 && fstat(t->port.fd, &st) == 0 && st.st_size == 0)
        remove_ours(t, t->temp, t->port.fd);
    stage_target_close(t, true);
}

static int resume(struct stage_target *t, const struct stat *temp,
                  const struct limefile_identity *source)
{
    int err = stage_journal_load(t, temp->st_ino, source);
    if (err != -ENOENT && (err || t->kept <= (uint64_t)temp->st_size))
        return err;
    t->kept = 0;
    return temp->st_size ? stage_target_restart(t) : 0;
}

int stage_target_open(struct stage_target *t, const char *path,
                      const struct limefile_identity *source, char *why, size_t cap)
{
    struct stat st;
    *t =
        (struct stage_target){.folder = -1, .port = {.fd = -1, .direct = -1}, .journal_fd = -1};
    int err = open_folder(t, path);
    if (err) {
        explain_folder(t, err, why, cap);
    } else if ((err = open_temp(t, 0, &st)) != 0) {
        explain(t, t->temp, err, why, cap);
    } else if ((err = resume(t, &st, source)) != 0) {
        explain(t, t->journal, err, why, cap);
    }
    if (err)
        leave(t);
    return err;
}

int stage_target_restart(struct stage_target *t)
{
    struct stat st;
    t->kept = t->sequence = 0;
    t->adopted = false;
    int err = remove_ours(t, t->journal, t->journal_fd);
    if (!err)
        err = remove_ours(t, t->temp, t->port.fd);
    if (err)
        return err;
    if (t->journal_fd >= 0)
        close(t->journal_fd);
    t->journal_fd = -1;
    stage_port_close(&t->port);
    err = open_temp(t, O_EXCL, &st);
    return err == -EEXIST ? -EBUSY : err;
}

int stage_target_allocate(struct stage_target *t, uint64_t size)
{
    int err;
    do
        err = size && fallocate(t->port.fd, 0, 0, (off_t)size) != 0 ? -errno : 0;
    while (err == -EINTR);
    if (err && err != -EOPNOTSUPP && err != -ENOSYS)
        return err;
    return ftruncate(t->port.fd, (off_t)size) == 0 ? 0 : -errno;
}

/* ---- on the disk ---- */

/* -EAGAIN: what ranks have written and not synced went with them. */
static int sync_temp(struct stage_target *t, int (*sync)(int))
{
    int err = t->port.remote ? stage_remote_sync(t->port.remote) : 0;
    if (sync(t->port.fd) != 0)
        return -errno;
    return err && stage_remote_is_gone(t->port.remote->remote, NULL) ? -EAGAIN : err;
}

int stage_target_checkpoint(struct stage_target *t, const struct limefile_identity *source,
                            uint64_t bytes, uint32_t crc)
{
    struct stat st;
    int err = sync_temp(t, fdatasync);
    if (!err && fstat(t->port.fd, &st) != 0)
        err = -errno;
    if (!err)
        stage_journal_store(t, st.st_ino, source, bytes, crc); /* without it all begins anew */
    return err;
}

int stage_target_sync(struct stage_target *t)
{
    return sync_temp(t, fsync);
}

int stage_target_adopt(struct stage_target *t, const struct stat *source,
                       const struct stage_digest *digest)
{
    stage_record_store(t->port.fd, source, digest); /* the next run reads the file without it */
    t->adopted = true;
    int err = stage_adopt(t->port.fd, source);
    return err ? err : fsync(t->port.fd) == 0 ? 0 : -errno;
}

/* ---- the name ---- */

/* By the inode itself: who exchanges the temporary meanwhile changes nothing. -EEXIST; any
 * other failure: it cannot be done here. */
static int link_it(const struct stage_target *t)
{
    char path[LIMEFILE_FD_PATH_MAX];
    limefile_fd_path(t->port.fd, path);
    if (linkat(AT_FDCWD, path, t->folder, t->name, AT_SYMLINK_FOLLOW) != 0) {
        int err = -errno;
        /* NFS says -EEXIST of its own link, if it had to ask twice. */
        if (err != -EEXIST || is_lost(t, t->name, t->port.fd) != 0)
            return err;
    }
    remove_ours(t, t->temp, t->port.fd); /* a failure leaves it for stage_target_tidy() */
    return 0;
}

static int rename_without_replacing(const struct stage_target *t)
{
    struct stat st;
    if (renameat2(t->folder, t->temp, t->folder, t->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* A file system that knows no such thing. */
    if (fstatat(t->folder, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(t->folder, t->temp, t->folder, t->name) == 0 ? 0 : -errno;
}

static int check_temp_is_ours(const struct stage_target *t)
{
    int lost = is_lost(t, t->temp, t->port.fd);
    return lost > 0 ? STAGE_TEMP_LOST : lost;
}

static int give_name(const struct stage_target *t, const struct stage_existing *existing)
{
    int err = link_it(t);
    if (err == 0 || (err == -EEXIST && !existing->exists))
        return err;
    err = check_temp_is_ours(t); /* it may have failed because there is no such file any more */
    if (err)
        return err;
    if (!existing->exists)
        return rename_without_replacing(t);
    err = stage_existing_check(existing, t->folder, t->name);
    if (err)
        return err;
    return renameat(t->folder, t->temp, t->folder, t->name) == 0 ? 0 : -errno;
}

int stage_target_rename(struct stage_target *t, const struct stage_existing *existing)
{
    int err = check_temp_is_ours(t);
    if (!err)
        err = give_name(t, existing);
    if (err)
        return err;
    free(t->temp);
    t->temp = NULL; /* it is no more */
    remove_ours(t, t->journal, t->journal_fd);
    err = is_lost(t, t->name, t->port.fd);
    if (err)
        return err > 0 ? STAGE_TEMP_EXCHANGED : err;
    return fsync(t->folder) == 0 || errno == EINVAL ? 0 : -errno;
}

void stage_target_close(struct stage_target *t, bool keep)
{
    if (t->temp && t->port.fd >= 0)
        make_ours(t);
    if (!keep && t->temp && t->port.fd >= 0) {
        remove_ours(t, t->temp, t->port.fd);
        remove_ours(t, t->journal, t->journal_fd);
    }
    stage_port_close(&t->port);
    if (t->journal_fd >= 0)
        close(t->journal_fd);
    if (t->folder >= 0)
        close(t->folder);
    free(t->temp);
    free(t->journal);
    *t =
        (struct stage_target){.folder = -1, .port = {.fd = -1, .direct = -1}, .journal_fd = -1};
}

/* The temporary is gone, or the second name of the target, and goes. */
static bool has_its_name(const struct stage_target *t)
{
    struct stat st;
    if (fstatat(t->folder, t->temp, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    return S_ISREG(st.st_mode) && has_moved(t, t->name, &st) == 0 &&
           unlinkat(t->folder, t->temp, 0) == 0;
}

void stage_target_tidy(const char *path)
{
    struct stat st;
    struct stage_target t = {.folder = -1, .port = {.fd = -1, .direct = -1}, .journal_fd = -1};
    if (open_folder(&t, path) == 0 && has_its_name(&t) &&
        fstatat(t.folder, t.journal, &st, AT_SYMLINK_NOFOLLOW) == 0 && !stranger(&st))
        unlinkat(t.folder, t.journal, 0);
    stage_target_close(&t, true);
}

uint64_t stage_target_has(const char *path)
{
    struct stat st;
    struct stage_target t = {.folder = -1, .port = {.fd = -1, .direct = -1}, .journal_fd = -1};
    uint64_t bytes = 0;
    if (open_folder(&t, path) == 0 && fstatat(t.folder, t.temp, &st, AT_SYMLINK_NOFOLLOW) == 0)
        bytes = (uint64_t)st.st_blocks * 512;
    stage_target_close(&t, true);
    return bytes;
}
