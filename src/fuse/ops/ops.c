/* ops.c - the FUSE operations: each unpacks its request, calls a function and replies */
#define _GNU_SOURCE
#include "ops.h"
#include "attributes.h"
#include "thread_buffer.h"
#include "credentials.h"
#include "namespace.h"
#include "dir.h"
#include "file.h"
#include "kernel_notify.h"
#include "reply.h"
#include "tree.h"
#include "xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct limefs *get_fs(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static void reply_error(fuse_req_t req, int code)
{
    fuse_reply_err(req, limefs_errno(code));
}

static struct limefs_file *get_file(const struct fuse_file_info *fi)
{
    return fi ? (struct limefs_file *)(uintptr_t)fi->fh : NULL;
}

static struct limefs_dir *get_dir(const struct fuse_file_info *fi)
{
    return (struct limefs_dir *)(uintptr_t)fi->fh;
}

static void reply_entry(fuse_req_t req, int code, const struct fuse_entry_param *entry)
{
    if (code)
        reply_error(req, code);
    else if (fuse_reply_entry(req, entry) != 0)
        limefs_forget(get_fs(req), entry->ino, 1); /* the kernel did not receive it */
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    const struct limefs *fs = userdata;
    unsigned want = FUSE_CAP_READDIRPLUS | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ASYNC_READ |
                    FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_CACHE_SYMLINKS;
    if (fs->options.serves_others)
        want |= FUSE_CAP_POSIX_ACL;
    if (fs->options.rw) /* DONT_MASK: the file system below applies umask or default ACL */
        want |= FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_DONT_MASK;
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
    if (fs->options.rw) /* session.c sets the flag for a libfuse that does not define it */
        want |= FUSE_CAP_HANDLE_KILLPRIV_V2;
#endif
    conn->want |= want & conn->capable;
    /* Replies are sent from a buffer, so splice(2) would cost time and save none. */
    conn->want &=
        ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    /* The kernel must not decide if a listing has attributes: dir.c decides it for each entry,
     * and considers what programs did after earlier replies and listings. */
    conn->want &= ~(unsigned)FUSE_CAP_READDIRPLUS_AUTO;
    conn->max_read = fs->options.max_read; /* for libfuse, in addition to the mount option */
    conn->max_background = 64;
    conn->congestion_threshold = 48;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    reply_entry(req, limefs_entry_lookup(get_fs(req), parent, name, &entry), &entry);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
    limefs_forget(get_fs(req), ino, n);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        limefs_forget(get_fs(req), forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st;
    const struct limefs_file *file = get_file(fi);
    int err;
    if (file && file->fd >= 0) { /* the path may lead to another file now */
        err = fstat(file->fd, &st) == 0 ? 0 : -errno;
        if (!err && get_fs(req)->options.rw)
            limefs_notify_change(get_fs(req), file->node, &st);
        if (!err)
            limefs_attr_node(get_fs(req), file->node, &st, &st);
    } else {
        err = limefs_attr_get(get_fs(req), ino, &st);
    }
    if (err)
        reply_error(req, err);
    else
        fuse_reply_attr(req, &st, get_fs(req)->options.attr_timeout);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    char target[PATH_MAX];
    struct limefs_node *node = limefs_inode_find_node(get_fs(req), ino);
    int fd = node ? limefs_tree_open_node(get_fs(req), node) : -EINVAL;
    if (fd < 0) {
        reply_error(req, fd);
        return;
    }
    ssize_t len = readlinkat(fd, "", target, sizeof target - 1);
    int err = len < 0 ? -errno : 0;
    close(fd);
    if (err) {
        reply_error(req, err);
        return;
    }
    target[len] = '\0';
    fuse_reply_readlink(req, target);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct limefs_file *file;
    bool keep_cache, read_only = (fi->flags & O_ACCMODE) == O_RDONLY;
    int err = read_only || get_fs(req)->options.rw
                  ? limefs_file_open(get_fs(req), ino, fi->flags, &file, &keep_cache)
                  : -EROFS;
    if (err) {
        reply_error(req, err);
        return;
    }
    fi->fh = (uintptr_t)file;
    fi->keep_cache = keep_cache;
    file->uncached = get_fs(req)->options.direct_io && limefs_file_is_large(get_fs(req), file);
    fi->direct_io = file->uncached;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 11)
    fi->noflush = read_only;
#endif
    limefs_op_reply_open(req, file, fi);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    limefs_file_close(get_fs(req), get_file(fi));
    fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)ino;
    struct limefs_file_result result;
    struct limefs *fs = get_fs(req);
    ssize_t got = limefs_file_read(fs, get_file(fi), size, (uint64_t)offset, &result);
    if (got < 0)
        reply_error(req, (int)got);
    else
        fuse_reply_iov(req, result.iov, result.count);
    limefs_file_result_release(fs, &result);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
                     struct fuse_file_info *fi)
{
    (void)ino;
    if (get_fs(req)->options.rw) { /* ENOSYS makes a kernel that caches writes seek by itself */
        fuse_reply_err(req, ENOSYS);
        return;
    }
    int64_t at = limefs_file_seek(get_file(fi), offset, whence);
    if (at < 0)
        reply_error(req, (int)at);
    else
        fuse_reply_lseek(req, at);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct limefs_dir *dir;
    int err = limefs_dir_open(get_fs(req), ino, &dir);
    if (err) {
        reply_error(req, err);
        return;
    }
    fi->fh = (uintptr_t)dir;
    if (fuse_reply_open(req, fi) != 0)
        limefs_dir_close(get_fs(req), dir);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    limefs_dir_close(get_fs(req), get_dir(fi));
    fuse_reply_err(req, 0);
}

static void reply_listing(fuse_req_t req, size_t size, off_t offset, struct fuse_file_info *fi,
                          bool plus)
{
    char *buf = limefs_thread_buffer(size);
    if (!buf) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    ssize_t got = limefs_dir_read(get_fs(req), req, get_dir(fi), buf, size, offset, plus);
    if (got < 0)
        reply_error(req, (int)got);
    else
        fuse_reply_buf(req, buf, (size_t)got);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st;
    struct limefs *fs = get_fs(req);
    (void)ino;
    if (fstatvfs(fs->source_fd, &st) != 0) {
        fuse_reply_err(req, errno);
        return;
    }
    st.f_namemax = LIMEFILE_NAME_MAX;
    fuse_reply_statfs(req, &st);
}

static void reply_xattr(fuse_req_t req, const char *buf, size_t cap, ssize_t len)
{
    if (len < 0)
        reply_error(req, (int)len);
    else if (cap == 0)
        fuse_reply_xattr(req, (size_t)len);
    else
        fuse_reply_buf(req, buf, (size_t)len);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    if (limefs_op_verify_xattr(req, ino, name, size))
        return;
    char *buf = limefs_thread_buffer(size);
    reply_xattr(req, buf, size,
                buf ? limefs_xattr_get(get_fs(req), ino, name, buf, size) : -ENOMEM);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    char *buf = limefs_thread_buffer(size);
    reply_xattr(req, buf, size, buf ? limefs_xattr_list(get_fs(req), ino, buf, size) : -ENOMEM);
}

/* ---- operations that change something ---- */

/* If the mount is read-only, or ino belongs to an export, replies EROFS and returns false. */
static bool check_writable(fuse_req_t req, fuse_ino_t ino)
{
    bool writable =
        get_fs(req)->options.rw && !limefs_inode_find_current(get_fs(req), ino).export;
    if (!writable)
        fuse_reply_err(req, EROFS);
    return writable;
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)ino;
    struct limefs *fs = get_fs(req);
    ssize_t written = limefs_file_write(fs, get_file(fi), buf, size, (uint64_t)offset);
    /* A kernel that does not cache the file sends no FSYNC request after a write with O_DSYNC.
     * If the sync fails, the write must fail, too: its bytes are not safe. */
    bool is_sync = fi->flags & O_DSYNC && get_file(fi)->uncached;
    int err = written > 0 && is_sync ? limefs_file_sync(fs, get_file(fi), false) : 0;
    if (err)
        written = err;
    if (written < 0)
        reply_error(req, (int)written);
    else
        fuse_reply_write(req, (size_t)written);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    reply_error(req, limefs_file_sync(get_fs(req), get_file(fi), true));
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi)
{
    (void)ino;
    (void)data;
    reply_error(req, limefs_file_sync(get_fs(req), get_file(fi), false));
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi)
{
    (void)ino;
    if (offset < 0 || length <= 0)
        fuse_reply_err(req, EINVAL);
    else
        reply_error(req, limefs_file_allocate(get_fs(req), get_file(fi), mode, (uint64_t)offset,
                                              (uint64_t)length));
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int which,
                       struct fuse_file_info *fi)
{
    struct limefs *fs = get_fs(req);
    struct stat now;
    if (!check_writable(req, ino))
        return;
    int err = limefs_attributes_set(fs, ino, get_file(fi), which, st);
    if (!err)
        err = limefs_attr_get(fs, ino, &now);
    if (err == LIMEFILE_E_NO_RECORD && !(which & FUSE_SET_ATTR_SIZE)) {
        /* The kernel may set times of a removed record; after an error, close(2) would fail. */
        now =
            (struct stat){.st_ino = ino, .st_mode = S_IFREG | S_IRUSR | S_IWUSR, .st_nlink = 0};
        err = 0;
    }
    if (err)
        reply_error(req, err);
    else
        fuse_reply_attr(req, &now, fs->options.attr_timeout);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags)
{
    if (check_writable(req, ino))
        reply_error(req, limefs_xattr_set(get_fs(req), ino, name, value, size, flags));
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    if (check_writable(req, ino))
        reply_error(req, limefs_xattr_set(get_fs(req), ino, name, NULL, 0, 0));
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct limefs *fs = get_fs(req);
    struct limefs_file *file;
    struct fuse_entry_param entry;
    if (!check_writable(req, parent))
        return;
    int err = limefs_create(fs, parent, name, mode, fi->flags, &file, &entry);
    if (err) {
        reply_error(req, err);
        return;
    }
    fi->fh = (uintptr_t)file;
    if (fuse_reply_create(req, &entry, fi) != 0) {
        limefs_file_close(fs, file);
        limefs_forget(fs, entry.ino, 1);
    }
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct fuse_entry_param entry;
    if (check_writable(req, parent))
        reply_entry(req, limefs_make_directory(get_fs(req), parent, name, mode, &entry),
                    &entry);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    if (check_writable(req, parent))
        reply_entry(req, limefs_make_symlink(get_fs(req), parent, name, target, &entry),
                    &entry);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (check_writable(req, parent))
        reply_error(req, limefs_remove(get_fs(req), parent, name));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (check_writable(req, parent))
        reply_error(req, limefs_remove_directory(get_fs(req), parent, name));
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
                      fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
    if (check_writable(req, parent) && check_writable(req, new_parent))
        reply_error(req, limefs_rename(get_fs(req), parent, name, new_parent, new_name, flags));
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    if (check_writable(req, ino) && check_writable(req, parent))
        reply_entry(req, limefs_link(get_fs(req), ino, parent, name, &entry), &entry);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                     dev_t dev)
{
    struct limefs *fs = get_fs(req);
    struct limefs_file *file;
    struct fuse_entry_param entry;
    if (!check_writable(req, parent))
        return;
    int err = S_ISREG(mode) ? limefs_create(fs, parent, name, mode, O_EXCL, &file, &entry)
                            : limefs_make_special(fs, parent, name, mode, dev, &entry);
    if (!err && S_ISREG(mode)) { /* no flush or release request follows */
        err = limefs_file_sync(fs, file, false);
        limefs_file_close(fs, file);
        if (err)
            limefs_forget(fs, entry.ino, 1);
    }
    reply_entry(req, err, &entry);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi)
{
    (void)ino;
    (void)data;
    reply_error(req, limefs_dir_sync(get_dir(fi)));
}

/* ---- the caller's rights ---- */

static bool enter_caller_creds(fuse_req_t req, bool changes)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    const struct limefs_caller caller = {ctx->uid, ctx->gid, ctx->pid, ctx->umask};
    int err = limefs_caller_creds_enter(get_fs(req), &caller, changes);
    if (err)
        reply_error(req, err);
    return err == 0;
}

/* Takes the rights of the user that opened the file, because the request may come from the
 * kernel itself, or from any process that has the descriptor. */
static bool enter_opener_creds(fuse_req_t req, const struct fuse_file_info *fi)
{
    const struct limefs_file *file = get_file(fi);
    int err = limefs_transfer_creds_enter(get_fs(req), file->uid, file->gid);
    if (err)
        reply_error(req, err);
    return err == 0;
}

/* Define functions that run an op_* with other rights than the daemon's: as_caller_op_* for one
 * that only reads (QUERY_OP) or changes something (CHANGE_OP), and as_opener_op_* for one that
 * transfers bytes with the rights of the user that opened the file (DATA_OP). */
#define DEFINE_OP(user, enter, name, parameters, ...) \
    static void as_##user##_##name parameters         \
    {                                                 \
        if (enter) {                                  \
            name(req, __VA_ARGS__);                   \
            limefs_caller_creds_leave();              \
        }                                             \
    }
#define QUERY_OP(...)  DEFINE_OP(caller, enter_caller_creds(req, false), __VA_ARGS__)
#define CHANGE_OP(...) DEFINE_OP(caller, enter_caller_creds(req, true), __VA_ARGS__)
#define DATA_OP(...)   DEFINE_OP(opener, enter_opener_creds(req, fi), __VA_ARGS__)

/* clang-format off */
QUERY_OP(op_lookup, (fuse_req_t req, fuse_ino_t parent, const char *name), parent, name)
QUERY_OP(op_opendir, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), ino, fi)
QUERY_OP(op_listxattr, (fuse_req_t req, fuse_ino_t ino, size_t size), ino, size)
CHANGE_OP(op_setxattr, (fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
        size_t size, int flags), ino, name, value, size, flags)
CHANGE_OP(op_removexattr, (fuse_req_t req, fuse_ino_t ino, const char *name), ino, name)
CHANGE_OP(op_create, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
        struct fuse_file_info *fi), parent, name, mode, fi)
CHANGE_OP(op_mknod, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev),
        parent, name, mode, dev)
CHANGE_OP(op_mkdir, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode),
        parent, name, mode)
CHANGE_OP(op_symlink, (fuse_req_t req, const char *target, fuse_ino_t parent, const char *name),
        target, parent, name)
CHANGE_OP(op_unlink, (fuse_req_t req, fuse_ino_t parent, const char *name), parent, name)
CHANGE_OP(op_rmdir, (fuse_req_t req, fuse_ino_t parent, const char *name), parent, name)
CHANGE_OP(op_rename, (fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
        const char *new_name, unsigned flags), parent, name, new_parent, new_name, flags)
CHANGE_OP(op_link, (fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name),
        ino, parent, name)
DATA_OP(op_write, (fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
      off_t offset, struct fuse_file_info *fi), ino, buf, size, offset, fi)
DATA_OP(op_flush, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), ino, fi)
DATA_OP(op_fsync, (fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi),
      ino, data, fi)
DATA_OP(op_fallocate, (fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
      struct fuse_file_info *fi), ino, mode, offset, length, fi)
/* clang-format on */

static void as_caller_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    bool needs_creds = !limefs_xattr_is_acl(name);
    if (needs_creds && !enter_caller_creds(req, false))
        return;
    op_getxattr(req, ino, name, size);
    if (needs_creds)
        limefs_caller_creds_leave();
}

/* Called when a program starts to list a directory. If this is a container that has changed,
 * makes the listing show its current state. Returns false after an error reply. */
static bool refresh_listing(fuse_req_t req, struct limefs_dir *dir)
{
    if (!limefs_dir_is_stale(get_fs(req), dir))
        return true;
    if (!enter_caller_creds(req, false))
        return false;
    limefs_dir_renew(get_fs(req), dir);
    limefs_caller_creds_leave();
    return true;
}

static void as_caller_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                                 struct fuse_file_info *fi)
{
    (void)ino;
    if (offset > 0 || refresh_listing(req, get_dir(fi)))
        reply_listing(req, size, offset, fi, false);
}

static void as_caller_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                                     struct fuse_file_info *fi)
{
    (void)ino;
    struct limefs_dir *dir = get_dir(fi);
    if (offset == 0 && !refresh_listing(req, dir))
        return;
    bool looks_up = limefs_dir_is_source(dir);
    if (looks_up && !enter_caller_creds(req, false))
        return;
    reply_listing(req, size, offset, fi, true);
    if (looks_up)
        limefs_caller_creds_leave();
}

static void as_caller_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    if (!enter_caller_creds(req, (fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC))
        return;
    op_open(req, ino, fi);
    limefs_caller_creds_leave();
}

/* Closes the file even if the thread cannot take the opener's rights. */
static void as_opener_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct limefs_file *file = get_file(fi);
    if (file->is_writable || file->target) /* closing other files writes no bytes */
        limefs_transfer_creds_enter(get_fs(req), file->uid, file->gid);
    op_release(req, ino, fi);
    limefs_caller_creds_leave();
}

/* A kernel with a write-back cache sets times itself, through a file open for writing. Such a
 * request runs with the opener's rights, any other with the caller's. */
static void as_either_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int which,
                                 struct fuse_file_info *fi)
{
    enum { MODE_OR_OWNER = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID };
    if (!(fi && !(which & MODE_OR_OWNER) ? enter_opener_creds(req, fi)
                                         : enter_caller_creds(req, true)))
        return;
    op_setattr(req, ino, st, which, fi);
    limefs_caller_creds_leave();
}

/* An op_* without as_... runs with the daemon's rights, on an inode that was looked up. */
const struct fuse_lowlevel_ops limefs_ops = {
    .init = op_init,
    .lookup = as_caller_op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .readlink = op_readlink,
    .open = as_caller_op_open,
    .read = op_read,
    .release = as_opener_op_release,
    .lseek = op_lseek,
    .opendir = as_caller_op_opendir,
    .readdir = as_caller_op_readdir,
    .readdirplus = as_caller_op_readdirplus,
    .releasedir = op_releasedir,
    .statfs = op_statfs,
    .getxattr = as_caller_op_getxattr,
    .listxattr = as_caller_op_listxattr,
    .write = as_opener_op_write,
    .flush = as_opener_op_flush,
    .fsync = as_opener_op_fsync,
    .fallocate = as_opener_op_fallocate,
    .setattr = as_either_op_setattr,
    .setxattr = as_caller_op_setxattr,
    .removexattr = as_caller_op_removexattr,
    .create = as_caller_op_create,
    .mknod = as_caller_op_mknod,
    .mkdir = as_caller_op_mkdir,
    .symlink = as_caller_op_symlink,
    .unlink = as_caller_op_unlink,
    .rmdir = as_caller_op_rmdir,
    .rename = as_caller_op_rename,
    .link = as_caller_op_link,
    .fsyncdir = op_fsyncdir,
};
