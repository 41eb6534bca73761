/* existing.c - lock the file that a copy will replace, and check that it still has the name */
#define _GNU_SOURCE
#include "target.h"
#include "limeoutput.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool is_same(const struct stage_existing *e, const struct stat *st)
{
    return e->device == st->st_dev && e->inode == st->st_ino;
}

int stage_existing_lock(struct stage_existing *e, const char *path, const struct stat *st)
{
    struct stat open_st;
    stage_existing_release(e);
    *e = (struct stage_existing){true, -1, st->st_dev, st->st_ino};
    if (!S_ISREG(st->st_mode)) /* a link is replaced, not the file that it leads to */
        return 0;
    e->fd = limefile_output_lock(AT_FDCWD, path);
    int err = e->fd < 0 ? e->fd : 0;
    if (!err && fstat(e->fd, &open_st) != 0)
        err = -errno;
    if (!err && !is_same(e, &open_st))
        err = -ESTALE;
    return err;
}

int stage_existing_check(const struct stage_existing *e, int folder, const char *name)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    return e->exists && is_same(e, &st) ? 0 : -EEXIST;
}

void stage_existing_release(struct stage_existing *e)
{
    if (e->exists && e->fd >= 0)
        close(e->fd);
    *e = (struct stage_existing){.fd = -1};
}
