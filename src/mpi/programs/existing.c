/* existing.c - refuse to overwrite a file that existed before */
#include "existing.h"
#include "limeoutput.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int existing_check(const char *path, bool force)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return 0; /* opening it fails if it cannot be created */
    if (!force)
        return LIMEFILE_E_OUTPUT_EXISTS;
    int fd = limefile_output_lock(AT_FDCWD, path);
    if (fd < 0)
        return fd == -EBUSY ? LIMEFILE_E_OUTPUT_LOCKED : fd;
    int err = limefile_check_fd(fd);
    close(fd); /* MPI libraries have locks of their own */
    return err;
}

const char *existing_reason(int code)
{
    return code == LIMEFILE_E_OUTPUT_EXISTS ? "exists already; --force overwrites it"
                                            : limefile_strerror(code);
}
