/* ops.c - the FUSE operations: each unpacks its request, calls a function and replies */
#define _GNU_SOURCE
#include "ops.h"
#include "attributes.h"
#include "buffer.h"
#include "caller.h"
#include "change.h"
#include "dir.h"
#include "file.h"
#include "follow.h"
#include "reply.h"
#include "tree.h"
#include "xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct limefs *fs_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static void reply_error(fuse_req_t req, int code)
{
    fuse_reply_err(req, limefs_errno(code));
}

static struct limefs_file *file_of(const struct fuse_file_info *fi)
{
    return fi ? (struct limefs_file *)(uintptr_t)fi->fh : NULL;
}

static struct limefs_dir *dir_of(const struct fuse_file_info *fi)
{
    return (struct limefs_dir *)(uintptr_t)fi->fh;
}

static void reply_entry(fuse_req_t req, int code, const struct fuse_entry_param *entry)
{
    if (code)
        reply_error(req, code);
    else if (fuse_reply_entry(req, entry) != 0)
        limefs_forget(fs_of(req), entry->ino, 1); /* the kernel did not receive it */
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    const struct limefs *fs = userdata;
    unsigned want = FUSE_CAP_READDIRPLUS | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ASYNC_READ |
                    FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_CACHE_SYMLINKS;
    if (fs->options.shared)
        want |= FUSE_CAP_POSIX_ACL;
    if (fs->options.rw) /* DONT_MASK: the file system below applies umask or default ACL */
        want |= FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_DONT_MASK;
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
    if (fs->options.rw) /* session.c sets it for a libfuse that does not have it */
        want |= FUSE_CAP_HANDLE_KILLPRIV_V2;
#endif
    conn->want |= want & conn->capable;
    /* Replies are sent from a buffer, so splicing costs time and saves none. */
    conn->want &=
        ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    /* dir.c decides for each entry whether the reply has its attributes, from more than one
     * listing. The kernel must not decide it. */
    conn->want &= ~(unsigned)FUSE_CAP_READDIRPLUS_AUTO;
    conn->max_read = fs->options.max_read; /* libfuse requires it here as well as at mount */
    conn->max_background = 64;
    conn->congestion_threshold = 48;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    reply_entry(req, limefs_entry(fs_of(req), parent, name, &entry), &entry);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
    limefs_forget(fs_of(req), ino, n);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        limefs_forget(fs_of(req), forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st;
    const struct limefs_file *file = file_of(fi);
    int err;
    if (file && file->fd >= 0) { /* the path may lead to another file by now */
        err = fstat(file->fd, &st) == 0 ? 0 : -errno;
        if (!err && fs_of(req)->options.rw)
            limefs_follow_bytes(fs_of(req), file->node, &st);
        if (!err)
            limefs_attr_node(fs_of(req), file->node, &st, &st);
    } else {
        err = limefs_attr(fs_of(req), ino, &st);
    }
    if (err)
        reply_error(req, err);
    else
        fuse_reply_attr(req, &st, fs_of(req)->options.attr_timeout);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    char target[PATH_MAX];
    struct limefs_node *node = limefs_inode_node(fs_of(req), ino);
    int fd = node ? limefs_tree_hold(fs_of(req), node) : -EINVAL;
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
    bool keep, reads = (fi->flags & O_ACCMODE) == O_RDONLY;
    int err = reads || fs_of(req)->options.rw
                  ? limefs_file_open(fs_of(req), ino, fi->flags, &file, &keep)
                  : -EROFS;
    if (err) {
        reply_error(req, err);
        return;
    }
    fi->fh = (uintptr_t)file;
    fi->keep_cache = keep;
    file->uncached = fs_of(req)->options.direct_io && limefs_file_is_large(fs_of(req), file);
    fi->direct_io = file->uncached;
    fi->noflush = reads;
    limefs_op_reply_open(req, file, fi);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    limefs_file_close(fs_of(req), file_of(fi));
    fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)ino;
    struct limefs_answer answer;
    struct limefs *fs = fs_of(req);
    ssize_t got = limefs_file_read(fs, file_of(fi), size, (uint64_t)offset, &answer);
    if (got < 0)
        reply_error(req, (int)got);
    else
        fuse_reply_iov(req, answer.iov, answer.count);
    limefs_answer_release(fs, &answer);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
                     struct fuse_file_info *fi)
{
    (void)ino;
    if (fs_of(req)->options.rw) { /* ENOSYS: a kernel that caches writes reports no holes */
        fuse_reply_err(req, ENOSYS);
        return;
    }
    int64_t at = limefs_file_seek(file_of(fi), offset, whence);
    if (at < 0)
        reply_error(req, (int)at);
    else
        fuse_reply_lseek(req, at);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct limefs_dir *dir;
    int err = limefs_dir_open(fs_of(req), ino, &dir);
    if (err) {
        reply_error(req, err);
        return;
    }
    fi->fh = (uintptr_t)dir;
    if (fuse_reply_open(req, fi) != 0)
        limefs_dir_close(fs_of(req), dir);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    limefs_dir_close(fs_of(req), dir_of(fi));
    fuse_reply_err(req, 0);
}

static void list(fuse_req_t req, size_t size, off_t offset, struct fuse_file_info *fi,
                 bool plus)
{
    char *buf = limefs_buffer(size);
    if (!buf) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    ssize_t got = limefs_dir_read(fs_of(req), req, dir_of(fi), buf, size, offset, plus);
    if (got < 0)
        reply_error(req, (int)got);
    else
        fuse_reply_buf(req, buf, (size_t)got);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st;
    struct limefs *fs = fs_of(req);
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
    if (limefs_op_verify(req, ino, name, size))
        return;
    char *buf = limefs_buffer(size);
    reply_xattr(req, buf, size,
                buf ? limefs_xattr_get(fs_of(req), ino, name, buf, size) : -ENOMEM);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    char *buf = limefs_buffer(size);
    reply_xattr(req, buf, size, buf ? limefs_xattr_list(fs_of(req), ino, buf, size) : -ENOMEM);
}

/* ---- operations that change something ---- */

/* True unless the mount is read-only or the node id is an export's; else replies EROFS. */
static bool is_writable(fuse_req_t req, fuse_ino_t ino)
{
    bool writable = fs_of(req)->options.rw && !limefs_inode_now(fs_of(req), ino).face;
    if (!writable)
        fuse_reply_err(req, EROFS);
    return writable;
}

/* ---- bytes ---- */

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)ino;
    struct limefs *fs = fs_of(req);
    ssize_t put = limefs_file_write(fs, file_of(fi), buf, size, (uint64_t)offset);
    /* If the kernel caches the file, it sends an fsync request itself. */
    bool syncs = fi->flags & O_DSYNC && file_of(fi)->uncached;
    int err = put > 0 && syncs ? limefs_file_sync(fs, file_of(fi), false) : 0;
    if (err)
        put = err;
    if (put < 0)
        reply_error(req, (int)put);
    else
        fuse_reply_write(req, (size_t)put);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    reply_error(req, limefs_file_sync(fs_of(req), file_of(fi), true));
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi)
{
    (void)ino;
    (void)data;
    reply_error(req, limefs_file_sync(fs_of(req), file_of(fi), false));
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi)
{
    (void)ino;
    if (offset < 0 || length <= 0)
        fuse_reply_err(req, EINVAL);
    else
        reply_error(req, limefs_file_allocate(fs_of(req), file_of(fi), mode, (uint64_t)offset,
                                              (uint64_t)length));
}

/* ---- attributes ---- */

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int which,
                       struct fuse_file_info *fi)
{
    struct limefs *fs = fs_of(req);
    struct stat now;
    if (!is_writable(req, ino))
        return;
    int err = limefs_set_attributes(fs, ino, file_of(fi), which, st);
    if (!err)
        err = limefs_attr(fs, ino, &now);
    if (err == LIMEFILE_E_NO_RECORD && !(which & FUSE_SET_ATTR_SIZE)) {
        /* The kernel sets times of a record that was removed; an error would fail close(2). */
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
    if (is_writable(req, ino))
        reply_error(req, limefs_xattr_set(fs_of(req), ino, name, value, size, flags));
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    if (is_writable(req, ino))
        reply_error(req, limefs_xattr_set(fs_of(req), ino, name, NULL, 0, 0));
}

/* ---- names ---- */

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct limefs *fs = fs_of(req);
    struct limefs_file *file;
    struct fuse_entry_param entry;
    if (!is_writable(req, parent))
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
    if (is_writable(req, parent))
        reply_entry(req, limefs_make_directory(fs_of(req), parent, name, mode, &entry), &entry);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    if (is_writable(req, parent))
        reply_entry(req, limefs_make_link(fs_of(req), parent, name, target, &entry), &entry);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (is_writable(req, parent))
        reply_error(req, limefs_remove(fs_of(req), parent, name));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (is_writable(req, parent))
        reply_error(req, limefs_remove_directory(fs_of(req), parent, name));
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
                      fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
    if (is_writable(req, parent) && is_writable(req, new_parent))
        reply_error(req, limefs_rename(fs_of(req), parent, name, new_parent, new_name, flags));
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    if (is_writable(req, ino) && is_writable(req, parent))
        reply_entry(req, limefs_link(fs_of(req), ino, parent, name, &entry), &entry);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                     dev_t dev)
{
    struct limefs *fs = fs_of(req);
    struct limefs_file *file;
    struct fuse_entry_param entry;
    if (!is_writable(req, parent))
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
    reply_error(req, limefs_dir_sync(dir_of(fi)));
}

/* ---- the caller's rights ---- */

static bool begin(fuse_req_t req, bool changes)
{
    const struct fuse_ctx *context = fuse_req_ctx(req);
    const struct limefs_caller caller = {context->uid, context->gid, context->pid,
                                         context->umask};
    int err = limefs_caller_begin(fs_of(req), &caller, changes);
    if (err)
        reply_error(req, err);
    return err == 0;
}

/* Takes the rights of the user that opened the file: the request may come from the kernel
 * itself or from any process that has the descriptor. */
static bool begin_moving(fuse_req_t req, const struct fuse_file_info *fi)
{
    const struct limefs_file *file = file_of(fi);
    int err = limefs_caller_begin_moving(fs_of(req), file->uid, file->gid);
    if (err)
        reply_error(req, err);
    return err == 0;
}

/* These define an operation that only reads (ASKS) or that changes something (CHANGES), with
 * the caller's rights, or that transfers bytes with the opener's rights (MOVES). */
#define SERVED(how, may_begin, name, parameters, ...) \
    static void how##_##name parameters               \
    {                                                 \
        if (may_begin) {                              \
            name(req, __VA_ARGS__);                   \
            limefs_caller_end();                      \
        }                                             \
    }
#define ASKS(...)    SERVED(asks, begin(req, false), __VA_ARGS__)
#define CHANGES(...) SERVED(changes, begin(req, true), __VA_ARGS__)
#define MOVES(...)   SERVED(moves, begin_moving(req, fi), __VA_ARGS__)

/* clang-format off */
ASKS(op_lookup, (fuse_req_t req, fuse_ino_t parent, const char *name), parent, name)
ASKS(op_opendir, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), ino, fi)
ASKS(op_listxattr, (fuse_req_t req, fuse_ino_t ino, size_t size), ino, size)
CHANGES(op_setxattr, (fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
        size_t size, int flags), ino, name, value, size, flags)
CHANGES(op_removexattr, (fuse_req_t req, fuse_ino_t ino, const char *name), ino, name)
CHANGES(op_create, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
        struct fuse_file_info *fi), parent, name, mode, fi)
CHANGES(op_mknod, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev),
        parent, name, mode, dev)
CHANGES(op_mkdir, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode),
        parent, name, mode)
CHANGES(op_symlink, (fuse_req_t req, const char *target, fuse_ino_t parent, const char *name),
        target, parent, name)
CHANGES(op_unlink, (fuse_req_t req, fuse_ino_t parent, const char *name), parent, name)
CHANGES(op_rmdir, (fuse_req_t req, fuse_ino_t parent, const char *name), parent, name)
CHANGES(op_rename, (fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
        const char *new_name, unsigned flags), parent, name, new_parent, new_name, flags)
CHANGES(op_link, (fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name),
        ino, parent, name)
MOVES(op_write, (fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
      off_t offset, struct fuse_file_info *fi), ino, buf, size, offset, fi)
MOVES(op_flush, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), ino, fi)
MOVES(op_fsync, (fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi),
      ino, data, fi)
MOVES(op_fallocate, (fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
      struct fuse_file_info *fi), ino, mode, offset, length, fi)
/* clang-format on */

static void may_ask_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    bool asks = !limefs_xattr_is_acl(name);
    if (asks && !begin(req, false))
        return;
    op_getxattr(req, ino, name, size);
    if (asks)
        limefs_caller_end();
}

static bool asks_for_newest(fuse_req_t req, struct limefs_dir *dir)
{
    if (!limefs_dir_is_old(fs_of(req), dir))
        return true;
    if (!begin(req, false))
        return false;
    limefs_dir_renew(fs_of(req), dir);
    limefs_caller_end();
    return true;
}

static void asks_first_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                               struct fuse_file_info *fi)
{
    (void)ino;
    if (offset > 0 || asks_for_newest(req, dir_of(fi)))
        list(req, size, offset, fi, false);
}

static void asks_first_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                                   struct fuse_file_info *fi)
{
    (void)ino;
    struct limefs_dir *dir = dir_of(fi);
    if (offset == 0 && !asks_for_newest(req, dir))
        return;
    bool looks = limefs_dir_is_folder(dir);
    if (looks && !begin(req, false))
        return;
    list(req, size, offset, fi, true);
    if (looks)
        limefs_caller_end();
}

static void asks_or_changes_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    if (!begin(req, (fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC))
        return;
    op_open(req, ino, fi);
    limefs_caller_end();
}

/* Closes the file even if the thread cannot take the opener's rights. */
static void moves_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct limefs_file *file = file_of(fi);
    if (file->writes || file->target) /* only then are bytes written on close */
        limefs_caller_begin_moving(fs_of(req), file->uid, file->gid);
    op_release(req, ino, fi);
    limefs_caller_end();
}

/* A kernel with a write-back cache sets times itself, through a file open for writing: such a
 * request runs with the opener's rights. */
static void changes_or_moves_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int which,
                                     struct fuse_file_info *fi)
{
    enum { OTHERS = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID };
    if (!(fi && !(which & OTHERS) ? begin_moving(req, fi) : begin(req, true)))
        return;
    op_setattr(req, ino, st, which, fi);
    limefs_caller_end();
}

/* Those named op_* act on what the kernel has open or has looked up already; they run with the
 * daemon's rights. */
const struct fuse_lowlevel_ops limefs_ops = {
    .init = op_init,
    .lookup = asks_op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .readlink = op_readlink,
    .open = asks_or_changes_open,
    .read = op_read,
    .release = moves_op_release,
    .lseek = op_lseek,
    .opendir = asks_op_opendir,
    .readdir = asks_first_readdir,
    .readdirplus = asks_first_readdirplus,
    .releasedir = op_releasedir,
    .statfs = op_statfs,
    .getxattr = may_ask_getxattr,
    .listxattr = asks_op_listxattr,
    .write = moves_op_write,
    .flush = moves_op_flush,
    .fsync = moves_op_fsync,
    .fallocate = moves_op_fallocate,
    .setattr = changes_or_moves_setattr,
    .setxattr = changes_op_setxattr,
    .removexattr = changes_op_removexattr,
    .create = changes_op_create,
    .mknod = changes_op_mknod,
    .mkdir = changes_op_mkdir,
    .symlink = changes_op_symlink,
    .unlink = changes_op_unlink,
    .rmdir = changes_op_rmdir,
    .rename = changes_op_rename,
    .link = changes_op_link,
    .fsyncdir = op_fsyncdir,
};
