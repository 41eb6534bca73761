/* outdir.c - write records to files in a directory */
#define _GNU_SOURCE
#include "outdir.h"
#include "record_input.h"
#include "limeoutput.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_not_empty(void *context, const char *name)
{
    (void)context;
    (void)name;
    return -ENOTEMPTY;
}

int outdir_open(struct outdir *dir, const char *path, bool must_be_empty)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return -errno;
    *dir = (struct outdir){.path = path, .fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (dir->fd < 0)
        return -errno;
    limefile_output_remove_stale(dir->fd);
    int err = must_be_empty ? directory_each(dir->fd, ".", 0, fail_not_empty, NULL) : 0;
    if (err)
        outdir_close(dir);
    return err;
}

void outdir_close(struct outdir *dir)
{
    close(dir->fd);
}

int outdir_finish(const struct outdir *dir)
{
    int err = dir->without_sync ? syncfs(dir->fd) : fsync(dir->fd);
    return err == 0 || errno == EINVAL ? 0 : -errno;
}

bool outdir_save(const struct outdir *dir, const struct container *c,
                 const struct limefile_record *record, const char *name, bool replace,
                 struct progress *progress)
{
    char path[4096 + LIMEFILE_NAME_MAX + 2];
    struct limefile_output file;
    snprintf(path, sizeof path, "%s/%s", dir->path, name);
    int err = limefile_output_open_at(&file, dir->fd, name, replace, &c->fd, 1);
    if (err) {
        message_output(path, "create", err);
        return false;
    }
    struct limefile_copy copy = {
        .out = file.fd,
        .out_offset = 0,
        .left = record->bytes,
        .progress = progress_add,
        .context = progress,
    };
    file.without_sync = dir->without_sync;
    err = container_copy(c, record, &copy);
    if (err) {
        message_copy(&copy, c->path, path, err);
        limefile_output_abort(&file);
        return false;
    }
    err = limefile_output_commit(&file);
    if (err)
        message_output(path, "write", err);
    return !err;
}
