/*
 * credentials.c - run each request with the rights (credentials) of the process that made it
 *
 * When a thread changes its file system uid from 0, the kernel removes the capabilities that
 * override permissions from the effective set, and restores them when the uid becomes 0 again
 * (capabilities(7)). Before its first request, a thread drops all other capabilities except
 * BASE_CAPS.
 */
#define _GNU_SOURCE
#include "credentials.h"
#include "descriptor.h"
#include "limeplatform.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

enum {
    STATUS_BYTES = 4096,
    STATUS_BYTES_MAX = 1 << 20, /* enough for 65536 groups */
    NO_PROCESS = -1, /* as a pid: the request only moves bytes, so groups do not matter */
};

/* Seconds for which a thread caches the groups of a process. */
static const double groups_cache_seconds = 0.1;

/* Capabilities that a thread keeps with any file system uid: to change its ids, to read other
 * users' processes in /proc, and to find out whether a file is being written to
 * (limefile_is_being_written(), on the daemon's own descriptors). */
#define BASE_CAPS                                                                            \
    (UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETGID | UINT64_C(1) << CAP_SYS_PTRACE | \
     UINT64_C(1) << CAP_LEASE)

/* Capabilities that the kernel removes and restores when the file system uid changes. */
#define FILE_CAPS                                                     \
    (UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_DAC_OVERRIDE |     \
     UINT64_C(1) << CAP_DAC_READ_SEARCH | UINT64_C(1) << CAP_FOWNER | \
     UINT64_C(1) << CAP_FSETID | UINT64_C(1) << CAP_LINUX_IMMUTABLE | \
     UINT64_C(1) << CAP_MKNOD | UINT64_C(1) << CAP_MAC_OVERRIDE)

static _Thread_local struct {
    bool has_own_umask;    /* CLONE_FS is unshared */
    bool caps_dropped;     /* by drop_capabilities() */
    uint64_t permitted;    /* capabilities, read by drop_capabilities() */
    bool is_switched;      /* to the rights of user `uid` */
    bool is_transfer;      /* moves bytes: rights were checked when the file was opened */
    unsigned daemon_depth; /* calls of limefs_daemon_creds_enter() minus those of _leave() */
    uid_t uid;
    struct limefs_caller groups_owner; /* the process whose groups the thread has */
    double groups_since; /* when it got them (limefs_clock_seconds()); 0: not valid */
} creds;

/* ---- rights of the thread ---- */

/* Makes the `requested` capabilities effective, as far as they are permitted. */
static int set_capabilities(uint64_t requested)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    uint64_t effective = creds.permitted & requested;
    for (int i = 0; i < 2; i++) {
        data[i].permitted = (uint32_t)(creds.permitted >> 32 * i);
        data[i].effective = (uint32_t)(effective >> 32 * i);
    }
    return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}

/* Reads the capabilities: the permitted into creds.permitted, the effective into *effective. */
static int read_capabilities(uint64_t *effective)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        return -errno;
    creds.permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
    *effective = (uint64_t)data[1].effective << 32 | data[0].effective;
    return 0;
}

/* Drops all effective capabilities but BASE_CAPS and FILE_CAPS, once for each thread. */
static int drop_capabilities(void)
{
    if (creds.caps_dropped)
        return 0;
    uint64_t effective;
    int err = read_capabilities(&effective);
    if (!err)
        err = set_capabilities(BASE_CAPS | FILE_CAPS);
    creds.caps_dropped = !err;
    return err;
}

/* Sets the umask of this thread only: unshare() separates it from those of other threads. */
static int set_umask(mode_t mask)
{
    if (!creds.has_own_umask && unshare(CLONE_FS) != 0)
        return -errno;
    creds.has_own_umask = true;
    umask(mask);
    return 0;
}

/* setfsuid(2) reports no failure; a second call with an invalid id returns the current id. */
static int set_fsuid(uid_t uid)
{
    setfsuid(uid);
    return (uid_t)setfsuid((uid_t)-1) == uid ? 0 : -EPERM;
}

/* Restores the daemon's file system uid. The result is not checked: a thread that keeps another
 * uid has fewer rights, so that its next operations fail, but it gets no additional rights. */
static void restore_fsuid(void)
{
    setfsuid(0);
}

static int set_fsgid(gid_t gid)
{
    setfsgid(gid);
    return (gid_t)setfsgid((gid_t)-1) == gid ? 0 : -EPERM;
}

/* Sets the groups of this thread. glibc's setgroups() would set those of all threads. */
static int set_group_list(size_t count, const gid_t *groups)
{
#ifdef SYS_setgroups32
    return syscall(SYS_setgroups32, count, groups) == 0 ? 0 : -errno;
#else
    return syscall(SYS_setgroups, count, groups) == 0 ? 0 : -errno;
#endif
}

static void abort_on_error(int err)
{
    if (!err)
        return;
    limefs_log(LOG_ERR, "cannot switch credentials: %s; exiting", strerror(-err));
    abort();
}

/* ---- supplementary groups ---- */

/* Returns the text of /proc/TID/status, which must be freed, or NULL. */
static char *read_status(pid_t pid)
{
    char path[64], *text = NULL;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    for (size_t cap = STATUS_BYTES; cap <= STATUS_BYTES_MAX; cap *= 4) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = -1;
        char *grown = fd < 0 ? NULL : realloc(text, cap);
        if (grown) {
            text = grown;
            n = read(fd, text, cap - 1);
        }
        if (fd >= 0)
            close(fd);
        if (n < 0)
            break;
        text[n] = '\0';
        if ((size_t)n < cap - 1)
            return text;
    }
    free(text);
    return NULL;
}

/* Returns whether the file system id, the fourth in a line like "Uid:\t0\t0\t0\t0", is `id`. */
static bool has_id(const char *status, const char *line, unsigned id)
{
    unsigned real, effective, saved, fs;
    const char *at = strstr(status, line);
    return at &&
           sscanf(at + strlen(line), "%u %u %u %u", &real, &effective, &saved, &fs) == 4 &&
           fs == id;
}

/* Stores up to `most` groups from the text of /proc/TID/status. Returns their number. */
static size_t parse_groups(const char *status, gid_t *groups, size_t most)
{
    static const char line[] = "\nGroups:";
    size_t count = 0;
    char *end;
    const char *at = strstr(status, line);
    for (at = at ? at + strlen(line) : ""; count < most; at = end) {
        unsigned long group = strtoul(at + strspn(at, " \t"), &end, 10);
        if (end == at || *at == '\n' || at[strspn(at, " \t")] == '\n')
            break;
        groups[count++] = (gid_t)group;
    }
    return count;
}

/* Gives the thread the groups of the caller's process, but none if pid is 0 or the process now
 * has other ids than the request. Then the request's uid and gid alone decide on access. */
static int set_process_groups(const struct limefs_caller *caller)
{
    int err = 0;
    char *status = caller->pid ? read_status(caller->pid) : NULL;
    size_t most = status ? strlen(status) / 2 : 0, count = 0;
    gid_t *groups = most ? malloc(most * sizeof *groups) : NULL;
    if ((caller->pid && !status) || (most && !groups))
        err = -EACCES;
    else if (status && has_id(status, "\nUid:", caller->uid) &&
             has_id(status, "\nGid:", caller->gid))
        count = parse_groups(status, groups, most);
    if (!err)
        err = set_group_list(count, groups);
    free(groups);
    free(status);
    return err;
}

/* True if the thread already has the caller's groups. For a request that only moves bytes
 * (NO_PROCESS), the groups of any process with that uid and gid are good enough. */
static bool has_cached_groups(const struct limefs_caller *caller, double now)
{
    return creds.groups_since > 0 && creds.groups_owner.uid == caller->uid &&
           creds.groups_owner.gid == caller->gid &&
           (caller->pid == NO_PROCESS || (creds.groups_owner.pid == caller->pid &&
                                          now - creds.groups_since < groups_cache_seconds));
}

static int switch_groups(const struct limefs_caller *caller)
{
    double now = limefs_clock_seconds();
    if (has_cached_groups(caller, now))
        return 0;
    creds.groups_since = 0;
    int err = caller->pid == NO_PROCESS ? set_group_list(0, NULL) : set_process_groups(caller);
    if (!err)
        err = set_fsgid(caller->gid);
    if (err)
        return err;
    creds.groups_owner = *caller;
    creds.groups_since = now;
    return 0;
}

/* ---- begin and end ---- */

void limefs_creds_init(struct limefs *fs)
{
    fs->switches_creds = fs->options.serves_others && geteuid() == 0;
    fs->denies_changes = fs->options.serves_others && geteuid() != 0;
}

/* Sets the file system uid; for root, makes all permitted capabilities effective instead. */
static int switch_user(uid_t uid)
{
    creds.uid = uid;
    return uid == 0 ? set_capabilities(UINT64_MAX) : set_fsuid(uid);
}

static int switch_to_caller(const struct limefs_caller *caller)
{
    int err = caller->uid ? switch_groups(caller) : set_fsgid(caller->gid);
    if (!caller->uid)
        creds.groups_since = 0; /* the gid has changed */
    return err ? err : switch_user(caller->uid);
}

static void switch_back(void)
{
    if (creds.uid == 0)
        abort_on_error(set_capabilities(BASE_CAPS | FILE_CAPS));
    else
        restore_fsuid();
}

/* Completes a switch of rights. On error (err), restores the daemon's and returns -EACCES. */
static int finish_switch(uid_t uid, int err)
{
    creds.is_switched = !err;
    if (!err)
        return 0;
    creds.is_transfer = false;
    if (creds.caps_dropped)
        switch_back();
    limefs_log(LOG_ERR, "request of user %u: cannot switch credentials: %s", (unsigned)uid,
               strerror(-err));
    return -EACCES;
}

int limefs_caller_creds_enter(const struct limefs *fs, const struct limefs_caller *caller,
                              bool changes)
{
    if (fs->denies_changes && changes && caller->uid != geteuid())
        return -EACCES;
    int err = changes ? set_umask(caller->umask) : 0;
    if (err || !fs->switches_creds)
        return err;
    creds.uid = caller->uid;
    err = drop_capabilities();
    return finish_switch(caller->uid, err ? err : switch_to_caller(caller));
}

int limefs_transfer_creds_enter(const struct limefs *fs, uid_t uid, gid_t gid)
{
    if (!fs->switches_creds)
        return 0;
    creds.uid = uid;
    int err = drop_capabilities();
    if (!err && uid)
        err = switch_groups(&(struct limefs_caller){.uid = uid, .gid = gid, .pid = NO_PROCESS});
    creds.is_transfer = true;
    return finish_switch(uid, err ? err : switch_user(uid));
}

void limefs_caller_creds_leave(void)
{
    if (!creds.is_switched)
        return;
    switch_back();
    creds.is_switched = creds.is_transfer = false;
}

void limefs_daemon_creds_enter(void)
{
    if (creds.is_switched && creds.daemon_depth++ == 0 && creds.uid != 0)
        restore_fsuid();
}

void limefs_daemon_creds_leave(void)
{
    if (creds.is_switched && --creds.daemon_depth == 0 && creds.uid != 0)
        abort_on_error(set_fsuid(creds.uid));
}

void limefs_creds_release(void)
{
    if (creds.caps_dropped)
        set_capabilities(UINT64_MAX);
    creds.caps_dropped = false;
}

/* ---- checks ---- */

/* Checks by opening the file, before Linux 5.8, which lacks faccessat2(2). */
static int check_by_opening(int fd, int mode)
{
    int reopened = limefile_reopen(fd, (mode & W_OK ? O_WRONLY : O_RDONLY) | O_NONBLOCK);
    if (reopened < 0)
        return reopened;
    close(reopened);
    return 0;
}

int limefs_creds_check_access(int fd, int mode)
{
    if (!creds.is_switched || creds.is_transfer || creds.daemon_depth)
        return 0;
    if (syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0)
        return 0;
    /* A container runtime's seccomp filter may return EPERM for an unknown system call. */
    return errno == ENOSYS || errno == EPERM ? check_by_opening(fd, mode) : -errno;
}

uid_t limefs_creds_swap_uid(const struct limefs *fs, uid_t uid)
{
    if (!fs->switches_creds)
        return uid;
    abort_on_error(drop_capabilities());
    bool root = creds.is_switched && creds.uid == 0; /* with all capabilities */
    if (root && uid != 0)
        abort_on_error(set_capabilities(BASE_CAPS | FILE_CAPS));
    abort_on_error(set_fsuid(uid));
    if (root && uid == 0)
        abort_on_error(set_capabilities(UINT64_MAX));
    return creds.is_switched && !creds.daemon_depth ? creds.uid : 0;
}

uid_t limefs_creds_uid(void)
{
    return creds.is_switched ? creds.uid : geteuid();
}

gid_t limefs_creds_gid(void)
{
    return creds.is_switched ? (gid_t)setfsgid((gid_t)-1) : getegid();
}
