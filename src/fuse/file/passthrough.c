/*
 * passthrough.c - files of a tree that the kernel reads itself
 *
 * Of one inode the kernel reads either all open files itself, and all from the same file, or
 * none: else it refuses to open it. It counts its open files itself, and each leaves its count
 * before we hear that it was closed. So what is open here covers what is open there.
 */
#include "passthrough.h"
#include "caller.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* struct fuse_backing_map and its requests, of FUSE 7.40; the system's header may be older */
struct backing_map {
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};
#define BACKING_OPEN  _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

/* Its number; 0: the kernel does not take it. Who reads the file later does so with the rights
 * that it was opened with. */
static int back(struct limefs *fs, int fd)
{
    struct backing_map map = {.fd = fd};
    limefs_admin_begin();
    int id = ioctl(fuse_session_fd(fs->session), BACKING_OPEN, &map);
    int err = errno;
    limefs_admin_end();
    if (id > 0)
        return id;
    if (err == EPERM || err == ENOTTY || err == EOPNOTSUPP)
        fs->passes = false;
    return 0;
}

int limefs_passthrough_prepare(struct limefs *fs, const struct limefs_node *node, int fd)
{
    if (!fs->passes)
        return 0;
    limefs_lock(&fs->lock);
    bool first = node->plain.opens == 0;
    limefs_unlock(&fs->lock);
    return first ? back(fs, fd) : 0;
}

int limefs_passthrough_opened(struct limefs *fs, struct limefs_node *node, int backing)
{
    if (node->plain.opens++ == 0) {
        node->plain.backing = backing;
        backing = 0;
    }
    if (node->plain.backing)
        atomic_fetch_add_explicit(&fs->passed_files, 1, memory_order_relaxed);
    return backing;
}

int limefs_passthrough_closed(struct limefs_node *node)
{
    int backing = node->plain.backing;
    if (--node->plain.opens > 0)
        return 0;
    node->plain.backing = 0;
    return backing;
}

void limefs_passthrough_drop(struct limefs *fs, int backing)
{
    uint32_t id = (uint32_t)backing;
    if (!backing || !fs->session)
        return;
    limefs_admin_begin();
    ioctl(fuse_session_fd(fs->session), BACKING_CLOSE, &id);
    limefs_admin_end();
}
