/* kernel_notify.c - notify the kernel that a plain file has grown, or was changed in place */
#include "kernel_notify.h"
#include "kernel_mtime.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <unistd.h>

/* Dropping pages may wait for a READ request, which another thread must serve. So only one
 * thread notifies at a time, and only if the daemon has others. The caller holds fs->lock. */
static bool may_notify(const struct limefs *fs, const struct limefs_node *node)
{
    return fs->session && fs->threads > 1 && !fs->is_notifying && !node->plain.writers &&
           node->plain.bytes != LIMEFS_BYTES_MOVED;
}

/* Returns true if the kernel must be notified of a new size. *old: the size that it knows. */
static bool begin_growth(struct limefs *fs, struct limefs_node *node, off_t size, off_t *old)
{
    limefs_lock(&fs->lock);
    *old = node->plain.kernel_size;
    bool may = may_notify(fs, node) && *old < size;
    if (may) {
        fs->is_notifying = true;
        node->plain.bytes = LIMEFS_BYTES_GROWN;
    }
    limefs_unlock(&fs->lock);
    return may;
}

/* Storing the last byte makes the kernel extend the file. It reads the others on demand. */
static int notify_size(struct fuse_session *se, uint64_t ino, int fd, off_t old, off_t size)
{
    char last;
    struct fuse_bufvec stored = FUSE_BUFVEC_INIT(1);
    stored.buf[0].mem = &last;
    if (pread(fd, &last, 1, size - 1) != 1)
        return -EIO;
    int err = fuse_lowlevel_notify_inval_inode(se, ino, old, 0);
    return err ? err : fuse_lowlevel_notify_store(se, ino, size - 1, &stored, 0);
}

void limefs_notify_growth(struct limefs *fs, struct limefs_node *node, int fd,
                          const struct stat *st)
{
    off_t old;
    if (!S_ISREG(st->st_mode) || !begin_growth(fs, node, st->st_size, &old))
        return;
    int err = notify_size(fs->session, limefs_inode_node_id(node), fd, old, st->st_size);
    limefs_lock(&fs->lock);
    fs->is_notifying = false;
    if (!err)
        node->plain.kernel_size = st->st_size;
    limefs_unlock(&fs->lock);
}

void limefs_notify_change(struct limefs *fs, struct limefs_node *node, const struct stat *st)
{
    struct limefile_identity stamp = limefile_identify(st);
    limefs_lock(&fs->lock);
    bool may = may_notify(fs, node) && node->plain.bytes == LIMEFS_BYTES_AS_REPORTED &&
               node->plain.kernel_size == stamp.size &&
               !limefs_kernel_mtime_is_current(node, &stamp) &&
               !limefile_identity_same_data(&node->plain.cached_identity, &stamp);
    fs->is_notifying |= may;
    limefs_unlock(&fs->lock);
    if (!may)
        return;
    int err = fuse_lowlevel_notify_inval_inode(fs->session, limefs_inode_node_id(node), 0, 0);
    limefs_lock(&fs->lock);
    fs->is_notifying = false;
    if (!err)
        node->plain.cached_identity = stamp;
    limefs_unlock(&fs->lock);
}
