/* outdir.c - files in one folder, and nowhere else */
#define _GNU_SOURCE
#include "outdir.h"
#include "copy.h"
#include "tempfile.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_empty(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    if (!dir) {
        int err = -errno;
        if (again >= 0)
            close(again);
        return err;
    }
    const struct dirent *entry;
    int err = 0;
    while (!err && (errno = 0, entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            err = -ENOTEMPTY;
    if (!err)
        err = -errno;
    closedir(dir);
    return err;
}

int outdir_open(struct outdir *dir, const char *path, bool must_be_empty)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return -errno;
    *dir = (struct outdir){path, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (dir->fd < 0)
        return -errno;
    int err = must_be_empty ? is_empty(dir->fd) : 0;
    if (err)
        outdir_close(dir);
    return err;
}

void outdir_close(struct outdir *dir)
{
    close(dir->fd);
}

int outdir_create(const struct outdir *dir, const char *name, bool replace)
{
    if (replace && unlinkat(dir->fd, name, 0) != 0 && errno != ENOENT)
        return -errno;
    int fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return fd < 0 ? -errno : fd;
}

bool outdir_save(const struct outdir *dir, const struct container *c,
                 const struct limefile_record *record, const char *name, bool replace,
                 struct progress *progress)
{
    char path[4096 + LIMEFILE_NAME_MAX + 2];
    snprintf(path, sizeof path, "%s/%s", dir->path, name);
    struct stat there;
    if (replace && fstatat(dir->fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        copy_is_file(&there, c->fd)) {
        message(path,
                "create: it is the container that is read; unpack it into another folder");
        return false;
    }
    int fd = outdir_create(dir, name, replace);
    if (fd < 0) {
        message_code(path, "create", fd);
        return false;
    }
    struct copy copy = {
        .in = c->fd,
        .in_offset = record->data_offset,
        .out = fd,
        .out_offset = 0,
        .left = record->bytes,
        .progress = progress,
    };
    guard_set(dir->fd, name);
    int err = copy_run(&copy);
    if (close(fd) != 0 && !err) {
        copy.writing = true;
        err = -errno;
    }
    if (err) {
        copy_message(&copy, c->path, path, err);
        unlinkat(dir->fd, name, 0);
    }
    guard_lift();
    return !err;
}
