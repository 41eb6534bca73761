/* target.c - lock, resume and rename the temporary file; copy the source's metadata to it */
#define _GNU_SOURCE
#include "target.h"
#include "descriptor.h"
#include "limeedit.h"
#include "limeoutput.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMP_SUFFIX ".limefs-stage"

enum {
    TRIES = 16, /* attempts to open a temporary file while other runs rename or replace it */
    JOURNAL_BYTES = 512,
};

static const struct stage_target no_target = {.dirfd = -1, .port = {.fd = -1, .direct_fd = -1}};

/* ---- identity and metadata ---- */

/* Compares inode number, size and times, but not the device number: a reboot may change it. */
static bool is_same_state(const struct limefile_identity *a, const struct limefile_identity *b)
{
    return !(limefile_identity_differences(a, b) & (LIMEFILE_INO | LIMEFILE_STATE));
}

/* Gives the file the source's mode, times, owner and group, as cp -p does. If the owner cannot
 * be set, clears the set-id bits. If the group cannot be set either, the file's group gets the
 * rights of others. */
static int set_metadata(int fd, const struct stat *source)
{
    const struct timespec times[] = {source->st_atim, source->st_mtim};
    mode_t mode = source->st_mode & 07777;
    if (fchown(fd, source->st_uid, source->st_gid) != 0) {
        mode &= 0777;
        if (fchown(fd, (uid_t)-1, source->st_gid) != 0)
            mode = (mode & ~(mode_t)070) | (mode & 07) << 3;
    }
    return fchmod(fd, mode) != 0 || futimens(fd, times) != 0 ? -errno : 0;
}

/* ---- the file that is replaced ---- */

static bool is_same_inode(const struct stage_existing *e, const struct stat *st)
{
    return e->device == st->st_dev && e->inode == st->st_ino;
}

int stage_existing_lock(struct stage_existing *e, const char *path, const struct stat *st)
{
    struct stat open_st;
    stage_existing_release(e);
    *e = (struct stage_existing){true, -1, st->st_dev, st->st_ino};
    if (!S_ISREG(st->st_mode)) /* a link: the rename does not change the file it leads to */
        return 0;
    e->fd = limefile_output_lock(AT_FDCWD, path);
    int err = e->fd < 0 ? e->fd : 0;
    if (!err && fstat(e->fd, &open_st) != 0)
        err = -errno;
    if (!err && !is_same_inode(e, &open_st))
        err = -ESTALE;
    return err;
}

/* Returns 0 if the name belongs to the file in *e or does not exist, else -EEXIST or -errno. */
static int check_existing(const struct stage_existing *e, int dirfd, const char *name)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    return e->exists && is_same_inode(e, &st) ? 0 : -EEXIST;
}

void stage_existing_release(struct stage_existing *e)
{
    if (e->exists && e->fd >= 0)
        close(e->fd);
    *e = (struct stage_existing){.fd = -1};
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

/* Returns ".NAME.limefs-stage", which the caller frees; a long name is cut and gets a hash. */
static char *temp_name(const char *name)
{
    char *out;
    size_t name_room = NAME_MAX - strlen("." TEMP_SUFFIX);
    int n = strlen(name) <= name_room ? asprintf(&out, ".%s" TEMP_SUFFIX, name)
                                      : asprintf(&out, ".%.*s~%016" PRIx64 TEMP_SUFFIX,
                                                 (int)(name_room - 17), name, hash_text(name));
    return n < 0 ? NULL : out;
}

/* Sets path, name and temp, and opens the target's directory. */
static int open_dir(struct stage_target *t, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    t->path = path;
    t->name = slash ? slash + 1 : path;
    t->temp = temp_name(t->name);
    int err = dir && t->temp ? 0 : -ENOMEM;
    if (!err) {
        t->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        err = t->dirfd < 0 ? -errno : 0;
    }
    free(dir);
    return err;
}

/* ---- messages for a failed open ---- */

enum { DIR_MAX = 200 }; /* a longer directory name is left out of a message */

static int directory_length(const struct stage_target *t)
{
    ptrdiff_t n = t->name - t->path;
    return n > DIR_MAX ? 0 : (int)n;
}

static void explain_directory(const struct stage_target *t, int err, char *why, size_t cap)
{
    int n = directory_length(t);
    if (err == -ENOENT)
        snprintf(why, cap, "the directory %.*s does not exist; create it first", n, t->path);
    else
        snprintf(why, cap, "open the directory %.*s: %s", n, t->path, limefile_strerror(err));
}

const char *stage_file_kind(const struct stat *st)
{
    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFLNK:
        return "a link";
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

/* Returns what the file is if it cannot be this user's temporary file, or NULL if it can be. */
static const char *why_not_ours(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return stage_file_kind(st);
    if (st->st_uid != geteuid())
        return "another user's file";
    return st->st_nlink > 1 ? "a file with several hard links" : NULL;
}

static void explain_temp(const struct stage_target *t, int err, char *why, size_t cap)
{
    struct stat st;
    int n = directory_length(t);
    bool exists = fstatat(t->dirfd, t->temp, &st, AT_SYMLINK_NOFOLLOW) == 0;
    const char *what = exists ? why_not_ours(&st) : NULL;
    if (what)
        snprintf(why, cap, "%s is in the way; remove it: %.*s%s", what, n, t->path, t->temp);
    else
        snprintf(why, cap, "open the temporary file %.*s%s: %s", n, t->path, t->temp,
                 limefile_strerror(err));
}

/* ---- opening ---- */

/* Sets *st. Returns -EPERM if the open file cannot be a temporary file of this user. */
static int check_temp(int fd, struct stat *st)
{
    if (fstat(fd, st) != 0)
        return -errno;
    return why_not_ours(st) ? -EPERM : 0;
}

/* Returns -EBUSY if another process has locked the file. Ignores a lack of lock support. */
static int lock_temp(int fd)
{
    int err = limefile_lock(fd);
    return err == -EBUSY || err == 0 ? err : 0;
}

/* Returns 0 if the name belongs to the file `own`, 1 if not, or -errno. */
static int is_replaced(const struct stage_target *t, const char *name, const struct stat *own)
{
    struct stat st;
    if (fstatat(t->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 1 : -errno;
    return st.st_dev != own->st_dev || st.st_ino != own->st_ino;
}

/* Returns 0 if the name belongs to the open file, 1 if another process has removed or replaced
 * it, or -errno. Only after 0 may the caller change the open file by the name. */
static int has_lost_name(const struct stage_target *t, const char *name, int fd)
{
    struct stat own;
    return fstat(fd, &own) != 0 ? -errno : is_replaced(t, name, &own);
}

/* Removes the temporary name, unless it now belongs to another process's file. */
static int remove_temp(const struct stage_target *t)
{
    int lost = t->port.fd < 0 ? 1 : has_lost_name(t, t->temp, t->port.fd);
    if (lost)
        return lost < 0 ? lost : 0;
    return unlinkat(t->dirfd, t->temp, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Makes the temporary file writable again: a run may have been killed after it gave the file
 * the source's mode. Tests with a shared lock, which needs only a read-only descriptor, whether
 * a run is working on the file (-EBUSY). Returns 1 if the caller shall try again, or -errno. */
static int reset_mode(const struct stage_target *t)
{
    struct stat st;
    int fd = openat(t->dirfd, t->temp, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -EACCES;
    int err = limefile_lock_shared(fd) == -EBUSY ? -EBUSY : check_temp(fd, &st);
    if (!err)
        err = is_replaced(t, t->temp, &st);
    if (!err)
        err = fchmod(fd, 0600) == 0 ? 1 : -errno;
    close(fd);
    return err;
}

/* Locks the open file, then checks its owner. This order gives -EBUSY if a run holds the lock
 * and has given the file to another user. Returns 0, -errno, or 1 if the name belongs to
 * another file now (try again). */
static int claim_temp(const struct stage_target *t, int fd, struct stat *st)
{
    int err = lock_temp(fd);
    if (!err)
        err = check_temp(fd, st);
    if (!err)
        err = is_replaced(t, t->temp, st);
    if (!err)
        fchmod(fd, 0600); /* undoes a killed run's mode; fails on some file systems */
    return err;
}

/* Opens or creates the temporary file, locks it, and sets *st to its attributes. Tries again,
 * up to TRIES times, while claim_temp() or reset_mode() returns 1; reset_mode() never returns
 * 0. Returns 0, and t->port then owns the descriptor, or -errno. */
static int open_temp(struct stage_target *t, int flags, struct stat *st)
{
    int last = 0;
    for (int i = 0; i < TRIES; i++) {
        int fd = limefile_open_at(t->dirfd, t->temp,
                                  O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
        last = fd < 0 ? fd : -EBUSY;
        int err = fd >= 0 ? claim_temp(t, fd, st) : last == -EACCES ? reset_mode(t) : last;
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
    return last;
}

/* Gives the temporary file this user and mode 0600 again if it has the source's metadata. */
static void restore_ownership(struct stage_target *t)
{
    if (t->has_metadata &&
        (fchmod(t->port.fd, 0600) != 0 || fchown(t->port.fd, geteuid(), (gid_t)-1) != 0))
        return; /* the file blocks the next run, which reports it */
    t->has_metadata = false;
}

/* Closes the target after a failed open. Removes the temporary file if it is empty. */
static void close_failed(struct stage_target *t)
{
    struct stat st;
    if (t->port.fd >= 0 && fstat(t->port.fd, &st) == 0 && st.st_size == 0)
        remove_temp(t);
    stage_target_close(t, true);
}

/* ---- the journal ---- */

/* The journal begins at a page boundary, so that no write of the copy touches its page. */
static off_t journal_offset(const struct stage_target *t)
{
    const off_t page = LIMEFILE_DIRECT_ALIGN;
    return (t->source.size + page - 1) / page * page;
}

/* Sets kept, kept_crc and has_journal if the file has a journal for this source. A damaged
 * journal does no harm, because the copy compares the CRC of the kept bytes with kept_crc. */
static void load_journal(struct stage_target *t)
{
    char text[JOURNAL_BYTES + 1] = "", end;
    struct limefile_identity source = {0};
    uint64_t kept;
    uint32_t crc;
    int64_t mtime, ctime;
    ssize_t got = pread(t->port.fd, text, JOURNAL_BYTES, journal_offset(t));
    t->kept = 0;
    if (got <= 0 || sscanf(text,
                           "limefs-stage 2 %" SCNu64 " %" SCNx32 " %" SCNu64 " %" SCNd64
                           " %" SCNd64 ".%ld %" SCNd64 ".%ld%c",
                           &kept, &crc, &source.ino, &source.size, &mtime,
                           &source.mtime.tv_nsec, &ctime, &source.ctime.tv_nsec, &end) != 9)
        return;
    source.mtime.tv_sec = mtime;
    source.ctime.tv_sec = ctime;
    if (end == '\n' && kept <= (uint64_t)t->source.size && is_same_state(&source, &t->source)) {
        t->kept = kept;
        t->kept_crc = crc;
        t->has_journal = kept > 0;
    }
}

static void store_journal(struct stage_target *t, uint64_t kept, uint32_t crc)
{
    char text[JOURNAL_BYTES] = "";
    const struct limefile_identity *s = &t->source;
    snprintf(text, sizeof text,
             "limefs-stage 2 %" PRIu64 " %08" PRIx32 " %" PRIu64 " %" PRId64
             " %jd.%09ld %jd.%09ld\n",
             kept, crc, s->ino, s->size, (intmax_t)s->mtime.tv_sec, s->mtime.tv_nsec,
             (intmax_t)s->ctime.tv_sec, s->ctime.tv_nsec);
    if (limefile_fd_write(t->port.fd, text, sizeof text, (uint64_t)journal_offset(t)) == 0 &&
        fdatasync(t->port.fd) == 0)
        t->has_journal = true;
}

int stage_target_open(struct stage_target *t, const char *path,
                      const struct limefile_identity *source, char *why, size_t cap)
{
    struct stat st;
    *t = no_target;
    t->source = *source;
    int err = open_dir(t, path);
    if (err) {
        explain_directory(t, err, why, cap);
    } else {
        err = open_temp(t, 0, &st);
        if (!err) {
            load_journal(t);
            err = st.st_size && !t->kept ? stage_target_restart(t, source) : 0;
        }
        if (err)
            explain_temp(t, err, why, cap);
    }
    if (err)
        close_failed(t);
    return err;
}

int stage_target_restart(struct stage_target *t, const struct limefile_identity *source)
{
    struct stat st;
    t->kept = 0;
    t->has_metadata = t->has_journal = false;
    t->source = *source;
    int err = remove_temp(t);
    if (err)
        return err;
    stage_port_close(&t->port);
    err = open_temp(t, O_EXCL, &st);
    return err == -EEXIST ? -EBUSY : err;
}

int stage_target_allocate(struct stage_target *t)
{
    struct stat st;
    off_t size = (off_t)t->source.size;
    int err;
    do
        err = size && fallocate(t->port.fd, 0, 0, size) != 0 ? -errno : 0;
    while (err == -EINTR);
    if (err && err != -EOPNOTSUPP && err != -ENOSYS)
        return err;
    if (fstat(t->port.fd, &st) != 0)
        return -errno;
    return st.st_size >= size || ftruncate(t->port.fd, size) == 0 ? 0 : -errno;
}

/* -EAGAIN: the job has ended, and bytes that its ranks had not synced may be lost. */
static int sync_temp(struct stage_target *t, int (*sync)(int))
{
    int err = t->port.remote ? stage_remote_sync(t->port.remote) : 0;
    if (sync(t->port.fd) != 0)
        return -errno;
    return err && stage_remote_has_failed(t->port.remote->remote, NULL) ? -EAGAIN : err;
}

int stage_target_checkpoint(struct stage_target *t, uint64_t bytes, uint32_t crc)
{
    int err = sync_temp(t, fdatasync);
    if (!err)
        store_journal(t, bytes, crc);
    return err;
}

int stage_target_sync(struct stage_target *t)
{
    if (ftruncate(t->port.fd, (off_t)t->source.size) != 0)
        return -errno;
    t->has_journal = false;
    return sync_temp(t, fsync);
}

int stage_target_set_metadata(struct stage_target *t, const struct stat *source,
                              const struct stage_digest *digest)
{
    stage_stored_sums_save(t->port.fd, source, digest); /* A failure is not an error. */
    t->has_metadata = true;
    int err = set_metadata(t->port.fd, source);
    return err ? err : fsync(t->port.fd) == 0 ? 0 : -errno;
}

/* ---- rename ---- */

/* Links the target's name to the open file, even if the temporary name was replaced. Returns 0,
 * -EEXIST if the target's name exists, or another -errno if the link is not possible. */
static int link_to_name(const struct stage_target *t)
{
    char path[LIMEFILE_FD_PATH_MAX];
    limefile_fd_path(t->port.fd, path);
    if (linkat(AT_FDCWD, path, t->dirfd, t->name, AT_SYMLINK_FOLLOW) != 0) {
        int err = -errno;
        /* An NFS client may repeat a request that has created the link: EEXIST. */
        if (err != -EEXIST || has_lost_name(t, t->name, t->port.fd) != 0)
            return err;
    }
    remove_temp(t); /* if this fails, the next run calls stage_target_remove_stale() */
    return 0;
}

static int rename_without_replacing(const struct stage_target *t)
{
    struct stat st;
    if (renameat2(t->dirfd, t->temp, t->dirfd, t->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* The file system does not support RENAME_NOREPLACE. */
    if (fstatat(t->dirfd, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(t->dirfd, t->temp, t->dirfd, t->name) == 0 ? 0 : -errno;
}

static int check_temp_is_ours(const struct stage_target *t)
{
    int lost = has_lost_name(t, t->temp, t->port.fd);
    return lost > 0 ? STAGE_TEMP_LOST : lost;
}

/* Gives the file the target's name: by a link; or, if links fail or a file must be replaced, by
 * a rename. */
static int move_to_name(const struct stage_target *t, const struct stage_existing *existing)
{
    int err = link_to_name(t);
    if (err == 0 || (err == -EEXIST && !existing->exists))
        return err;
    err = check_temp_is_ours(t); /* the last check was before the link */
    if (err)
        return err;
    if (!existing->exists)
        return rename_without_replacing(t);
    err = check_existing(existing, t->dirfd, t->name);
    if (err)
        return err;
    return renameat(t->dirfd, t->temp, t->dirfd, t->name) == 0 ? 0 : -errno;
}

int stage_target_rename(struct stage_target *t, const struct stage_existing *existing)
{
    int err = check_temp_is_ours(t);
    if (!err)
        err = move_to_name(t, existing);
    if (err)
        return err;
    free(t->temp);
    t->temp = NULL; /* stage_target_close() must not remove it */
    err = has_lost_name(t, t->name, t->port.fd);
    if (err)
        return err > 0 ? STAGE_TEMP_EXCHANGED : err;
    return fsync(t->dirfd) == 0 || errno == EINVAL ? 0 : -errno;
}

void stage_target_close(struct stage_target *t, bool keep)
{
    if (t->temp && t->port.fd >= 0)
        restore_ownership(t);
    if (!keep && t->temp)
        remove_temp(t);
    stage_port_close(&t->port);
    if (t->dirfd >= 0)
        close(t->dirfd);
    free(t->temp);
    *t = no_target;
}

void stage_target_remove_stale(const char *path)
{
    struct stat st;
    struct stage_target t = no_target;
    if (open_dir(&t, path) == 0 && fstatat(t.dirfd, t.temp, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode) && is_replaced(&t, t.name, &st) == 0)
        unlinkat(t.dirfd, t.temp, 0);
    stage_target_close(&t, true);
}

uint64_t stage_target_disk_bytes(const char *path)
{
    struct stat st;
    struct stage_target t = no_target;
    uint64_t bytes = 0;
    if (open_dir(&t, path) == 0 && fstatat(t.dirfd, t.temp, &st, AT_SYMLINK_NOFOLLOW) == 0)
        bytes = (uint64_t)st.st_blocks * 512;
    stage_target_close(&t, true);
    return bytes;
}
