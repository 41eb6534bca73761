/* mend.c - a container that is made good before it is written to */
#define _GNU_SOURCE
#include "caller.h"
#include "descriptor.h"
#include "writing.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

static void note(void *context, const char *text)
{
    char path[PATH_MAX];
    limefs_log(LOG_NOTICE, "%s: recover: %s", limefs_writer_label(context, path, sizeof path),
               text);
}

/* Copies the bytes and brings them to the disk, name and all. */
static int fill_kept(const struct limefs_writer *writer, int folder, int fd, uint64_t from,
                     uint64_t size)
{
    int err = limefile_copy(writer->shared.fd, from, fd, 0, size - from, NULL, NULL);
    return err ? err : fsync(fd) == 0 && fsync(folder) == 0 ? 0 : -errno;
}

/* Beside the container, as `lime repair` does; whether or not who writes may make files there.
 */
static int keep(void *context, uint64_t from, uint64_t size)
{
    struct limefs_writer *writer = context;
    char *made = NULL, path[PATH_MAX];
    const char *container;
    limefs_own_begin();
    int folder = limefs_writer_folder(writer, &container);
    int fd = folder < 0
                 ? folder
                 : limefile_create_kept(folder, container, from, writer->shared.fd, &made);
    limefs_own_end();
    if (folder < 0)
        return folder;
    int err = fd < 0 ? fd : fill_kept(writer, folder, fd, from, size);
    if (fd >= 0)
        close(fd);
    if (err && fd >= 0) {
        limefs_own_begin();
        unlinkat(folder, made, 0);
        limefs_own_end();
    }
    close(folder);
    limefs_log(err ? LOG_ERR : LOG_NOTICE, "%s: recover: %s %s%s%s",
               limefs_writer_label(writer, path, sizeof path),
               err ? "bytes behind the last record cannot be kept in" : "they are kept in",
               made ? made : container, err ? ": " : "", err ? limefile_strerror(err) : "");
    free(made);
    return err;
}

int limefs_writer_recover(struct limefs_writer *writer)
{
    char path[PATH_MAX];
    int err = limefile_recover(&writer->file.source, note, keep, writer);
    if (!err)
        return 0;
    if (err == LIMEFILE_E_FLAGS || err == LIMEFILE_E_MIXED) {
        limefs_log(LOG_ERR, "%s: write: %s; nothing was changed, see 'lime repair -n'",
                   limefs_writer_label(writer, path, sizeof path), limefile_strerror(err));
        return -EROFS;
    }
    limefs_log(LOG_ERR, "%s: write: %s; look at it with lime check, mend it with lime repair",
               limefs_writer_label(writer, path, sizeof path), limefile_strerror(err));
    return err == -ENOSPC || err == -EDQUOT ? err : -EIO;
}
