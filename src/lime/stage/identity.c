/* identity.c - whether a file is still what it was, and what a copy has of it beside its bytes
 */
#define _GNU_SOURCE
#include "target.h"

#include <errno.h>
#include <unistd.h>

bool stage_identity_agrees(const struct limefile_identity *a, const struct limefile_identity *b)
{
    return !(limefile_identity_differences(a, b) & (LIMEFILE_INO | LIMEFILE_STATE));
}

bool stage_time_agrees(const struct timespec *source, const struct timespec *target)
{
    long kept = source->tv_nsec;
    if (source->tv_sec != target->tv_sec)
        return false;
    for (long unit = 100; kept != target->tv_nsec && unit <= 1000000000; unit *= 10)
        kept -= kept % unit;
    return kept == target->tv_nsec;
}

/* As cp -p: where the owner cannot be kept, nobody gets his rights by set-id bits. */
int stage_adopt(int fd, const struct stat *source)
{
    const struct timespec times[] = {source->st_atim, source->st_mtim};
    mode_t mode = source->st_mode & 07777;
    if (fchown(fd, source->st_uid, source->st_gid) != 0) {
        mode &= 0777;
        if (fchown(fd, (uid_t)-1, source->st_gid) != 0)
            mode = (mode & ~(mode_t)070) | (mode & 07) << 3;
    }
    return fchmod(fd, mode) != 0 || futimens(fd, times) != 0 ? -errno : 0;
}
