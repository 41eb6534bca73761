/* ops_change.c - FUSE operations that change something: unpack the request, call, reply */
#define _GNU_SOURCE
#include "attributes.h"
#include "change.h"
#include "dir.h"
#include "faces.h"
#include "ops.h"
#include "xattr.h"

#include <errno.h>
#include <fcntl.h>

static struct limefs *fs_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static struct limefs_file *file_of(const struct fuse_file_info *fi)
{
    return fi ? (struct limefs_file *)(uintptr_t)fi->fh : NULL;
}

static void reply(fuse_req_t req, int code)
{
    fuse_reply_err(req, limefs_errno(code));
}

static void reply_entry(fuse_req_t req, int code, const struct fuse_entry_param *entry)
{
    if (code)
        reply(req, code);
    else if (fuse_reply_entry(req, entry) != 0)
        limefs_forget(fs_of(req), entry->ino, 1); /* the kernel has not got it */
}

/* Whatever has that number: nothing in a mount that only reads, and no face, nor what is in its
 * directory. */
static bool is_writable(fuse_req_t req, fuse_ino_t ino)
{
    uint64_t ordinal;
    bool writable = fs_of(req)->options.rw && !limefs_inode_face(fs_of(req), ino, &ordinal);
    if (!writable)
        fuse_reply_err(req, EROFS);
    return writable;
}

/* ---- bytes ---- */

void limefs_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)ino;
    struct limefs *fs = fs_of(req);
    ssize_t put = limefs_file_write(fs, file_of(fi), buf, size, (uint64_t)offset);
    /* Where the kernel caches what is written, it asks for that itself. */
    bool syncs = fi->flags & O_DSYNC && file_of(fi)->uncached;
    int err = put > 0 && syncs ? limefs_file_sync(fs, file_of(fi), false) : 0;
    if (err)
        put = err;
    if (put < 0)
        reply(req, (int)put);
    else
        fuse_reply_write(req, (size_t)put);
}

void limefs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    reply(req, limefs_file_sync(fs_of(req), file_of(fi), true));
}

void limefs_op_fsync(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi)
{
    (void)ino;
    (void)data;
    reply(req, limefs_file_sync(fs_of(req), file_of(fi), false));
}

void limefs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi)
{
    (void)ino;
    if (offset < 0 || length <= 0)
        fuse_reply_err(req, EINVAL);
    else
        reply(req, limefs_file_allocate(fs_of(req), file_of(fi), mode, (uint64_t)offset,
                                        (uint64_t)length));
}

/* ---- attributes ---- */

void limefs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int which,
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
        /* Removed; but the kernel would keep the failure for the next one at its place. */
        now =
            (struct stat){.st_ino = ino, .st_mode = S_IFREG | S_IRUSR | S_IWUSR, .st_nlink = 0};
        err = 0;
    }
    if (err)
        reply(req, err);
    else
        fuse_reply_attr(req, &now, fs->options.attr_timeout);
}

void limefs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags)
{
    if (is_writable(req, ino))
        reply(req, limefs_xattr_set(fs_of(req), ino, name, value, size, flags));
}

void limefs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    if (is_writable(req, ino))
        reply(req, limefs_xattr_set(fs_of(req), ino, name, NULL, 0, 0));
}

/* ---- names ---- */

void limefs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct limefs *fs = fs_of(req);
    struct limefs_file *file;
    struct fuse_entry_param entry;
    if (!is_writable(req, parent))
        return;
    int err = limefs_create(fs, parent, name, mode, fi->flags, &file, &entry);
    if (err) {
        reply(req, err);
        return;
    }
    fi->fh = (uintptr_t)file;
    if (fuse_reply_create(req, &entry, fi) != 0) {
        limefs_file_close(fs, file);
        limefs_forget(fs, entry.ino, 1);
    }
}

void limefs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct fuse_entry_param entry;
    if (is_writable(req, parent))
        reply_entry(req, limefs_make_directory(fs_of(req), parent, name, mode, &entry), &entry);
}

void limefs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    if (is_writable(req, parent))
        reply_entry(req, limefs_make_link(fs_of(req), parent, name, target, &entry), &entry);
}

void limefs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (is_writable(req, parent))
        reply(req, limefs_remove(fs_of(req), parent, name));
}

void limefs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (is_writable(req, parent))
        reply(req, limefs_remove_directory(fs_of(req), parent, name));
}

void limefs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
                      fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
    if (is_writable(req, parent) && is_writable(req, new_parent))
        reply(req, limefs_rename(fs_of(req), parent, name, new_parent, new_name, flags));
}

void limefs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    if (is_writable(req, ino) && is_writable(req, parent))
        reply_entry(req, limefs_link(fs_of(req), ino, parent, name, &entry), &entry);
}

void limefs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                     dev_t dev)
{
    struct limefs *fs = fs_of(req);
    struct limefs_file *file;
    struct fuse_entry_param entry;
    if (!is_writable(req, parent))
        return;
    int err = S_ISREG(mode) ? limefs_create(fs, parent, name, mode, O_EXCL, &file, &entry)
                            : limefs_make_special(fs, parent, name, mode, dev, &entry);
    if (!err && S_ISREG(mode)) { /* nobody will close it */
        err = limefs_file_sync(fs, file, false);
        limefs_file_close(fs, file);
        if (err)
            limefs_forget(fs, entry.ino, 1);
    }
    reply_entry(req, err, &entry);
}

void limefs_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi)
{
    (void)ino;
    (void)data;
    reply(req, limefs_dir_sync((struct limefs_dir *)(uintptr_t)fi->fh));
}
