/* lock.c - lock a container so that it has one writer at a time */
#define _GNU_SOURCE
#include "limeedit.h"

#include <errno.h>
#include <fcntl.h>

/* Calls fcntl() for the whole file. F_OFD_GETLK fills *all. Returns 0, -EBUSY or -errno. */
static int call_fcntl(int fd, int command, short type, struct flock *all)
{
    *all = (struct flock){.l_type = type, .l_whence = SEEK_SET};
    if (fcntl(fd, command, all) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

int limefile_lock(int fd)
{
    struct flock all;
    return call_fcntl(fd, F_OFD_SETLK, F_WRLCK, &all);
}

int limefile_lock_shared(int fd)
{
    struct flock all;
    return call_fcntl(fd, F_OFD_SETLK, F_RDLCK, &all);
}

int limefile_lock_test(int fd)
{
    struct flock all;
    int err = call_fcntl(fd, F_OFD_GETLK, F_WRLCK, &all);
    return err ? err : all.l_type == F_UNLCK ? 0 : -EBUSY;
}
