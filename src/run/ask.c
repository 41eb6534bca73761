/* ask.c - asks the mount where a record's bytes are, and opens the container */
#define _GNU_SOURCE
#include "limefile.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

enum {
    INHERITED = 10,   /* descriptors below it are looked at when the program starts */
    FROM = 64 * 1024, /* bytes of a record: to ask takes longer than to read less */
    CACHE = 64,       /* mounts that are remembered */
    KINDS = 4,
};

static uint64_t from = FROM;

/* Without a question to the daemon: the kernel knows what it is. */
static bool look_at(int fd, struct statx *stx)
{
    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                 STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MNT_ID_UNIQUE, stx) == 0;
}

static uint64_t number_of_mount(const struct statx *stx)
{
    return stx->stx_mask & STATX_MNT_ID_UNIQUE ? stx->stx_mnt_id : 0;
}

bool limefs_run_is(int fd, const struct limefs_run_record *record)
{
    struct statx stx;
    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID_UNIQUE,
                 &stx) == 0 &&
           stx.stx_ino == record->ino && number_of_mount(&stx) == record->mount &&
           makedev(stx.stx_dev_major, stx.stx_dev_minor) == record->dev;
}

/* A number of a mount that is never used again stands for what was found out once, by a process
 * of that user; where the kernel (before Linux 6.8) has none, it is found out each time. */
static enum limefs_run_mount mount_of(const struct statx *stx)
{
    static _Atomic uint64_t known[CACHE];
    uint64_t id = number_of_mount(stx), key = (id << 32 | geteuid()) * KINDS;
    _Atomic uint64_t *place = &known[id % CACHE];
    uint64_t kind = atomic_load(place);
    if (id && kind % KINDS != LIMEFS_RUN_UNKNOWN && kind - kind % KINDS == key)
        return (enum limefs_run_mount)(kind % KINDS);
    enum limefs_run_mount found = limefs_run_mount_of(stx->stx_dev_major, stx->stx_dev_minor);
    if (id)
        atomic_store(place, key + found);
    return found;
}

/* With the process's own rights. A pipe is not waited for. */
static int open_container(const struct limefile_range *range)
{
    struct stat st = {0};
    if (!limefs_run_may_have_more())
        return -1;
    int fd = limefs_run_real()->open(range->path,
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool right = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    struct limefile_identity now = limefile_identity_of(&st);
    if (right && limefile_identity_equal(&now, &range->container))
        return limefs_run_out_of_the_way(fd);
    limefs_run_real()->close(fd);
    return -1;
}

/* False if the kernel does not tell: before Linux 6.5, or of another user's file. */
static bool is_in_memory(int container, const struct limefile_range *range)
{
    return limefile_cached_bytes(container, range->offset, range->bytes) >=
           (int64_t)range->bytes;
}

/* Returns -1 if the mount is to read the record for as long as it is open: also if it has a
 * job, which reads faster what is not in this host's memory. */
static int find_container(int fd, struct limefs_run_record *record)
{
    char text[LIMEFILE_RANGE_TEXT_MAX];
    struct limefile_range range;
    ssize_t len = fgetxattr(fd, LIMEFILE_RANGE_XATTR, text, LIMEFILE_RANGE_TEXT_MAX - 1);
    if (len <= 0 || limefile_range_decode(text, (size_t)len, &range) != 0)
        return -1;
    record->identity = range.container;
    record->offset = range.offset;
    record->bytes = range.bytes;
    record->head = range.head;
    int container = open_container(&range);
    if (container < 0 || !range.has_job || is_in_memory(container, &range))
        return container;
    limefs_run_real()->close(container);
    return -1;
}

static void look_closer(int fd, int flags)
{
    struct statx stx;
    /* Mounts of FUSE have no device, whose number would have an upper half. */
    if (!look_at(fd, &stx) || !S_ISREG(stx.stx_mode) || stx.stx_dev_major != 0)
        return;
    enum limefs_run_mount mount = mount_of(&stx);
    if (mount == LIMEFS_RUN_OTHER || mount == LIMEFS_RUN_UNKNOWN)
        return;
    struct limefs_run_record record = {
        .dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
        .ino = stx.stx_ino,
        .mount = number_of_mount(&stx),
    };
    bool plain = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECT);
    int container = -1;
    if (plain && mount == LIMEFS_RUN_TRUSTED && stx.stx_size >= from)
        container = find_container(fd, &record);
    bool same = container >= 0 && record.head + record.bytes <= stx.stx_size;
    record.tail = record.head + record.bytes < stx.stx_size;
    if (container >= 0 && !same)
        limefs_run_real()->close(container);
    limefs_run_note(fd, same ? &record : NULL, same ? container : -1);
}

void limefs_run_look(int fd, int flags)
{
    int kept = errno, cancel = limefs_run_cancel_off();
    limefs_run_forget(fd); /* what was closed unseen */
    if (fd >= 0 && (flags & O_ACCMODE) != O_WRONLY && !(flags & (O_PATH | O_DIRECTORY)))
        look_closer(fd, flags);
    limefs_run_cancel_back(cancel);
    errno = kept;
}

void limefs_run_ask_begin(void)
{
    const char *given = getenv("LIMEFS_RUN_FROM");
    if (given && *given)
        from = strtoull(given, NULL, 10);
    for (int fd = 0; fd < INHERITED; fd++) {
        int flags = limefs_run_real()->fcntl(fd, F_GETFL);
        if (flags >= 0)
            limefs_run_look(fd, flags);
    }
}
