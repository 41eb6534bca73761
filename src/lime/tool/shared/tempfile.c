/* tempfile.c - files without a name, and directories synced */
#define _GNU_SOURCE
#include "tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sync_folder_of(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int err = fd < 0 || (fsync(fd) != 0 && errno != EINVAL) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    free(copy);
    return err;
}

int tempfile_unnamed(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    FILE *file = tmpfile(); /* that file system has no such thing */
    fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
    int err = errno;
    if (file)
        fclose(file);
    return fd < 0 ? -err : fd;
}
