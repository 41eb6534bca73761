/* limeplatform.h - define what headers before Linux 6.5 and glibc 2.34 lack
 *
 * Files that include it define _GNU_SOURCE. A kernel that is too old for a system call returns
 * ENOSYS, and EINVAL for a flag. */
#ifndef LIMEPLATFORM_H
#define LIMEPLATFORM_H

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY 1027
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#if !__GLIBC_PREREQ(2, 34)
int close_range(unsigned first, unsigned last, int flags);
void closefrom(int first);

/* Ignores descriptors that are not open. */
static inline int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions,
                                                           int first)
{
    int err = 0, end = (int)sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd < end && !err; fd++)
        err = posix_spawn_file_actions_addclose(actions, fd);
    return err;
}
#endif

#endif
