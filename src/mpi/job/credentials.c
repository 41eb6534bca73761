/* credentials.c - write on behalf of a user */
#define _GNU_SOURCE
#include "credentials.h"
#include "report.h"
#include "watchdog.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int dumpable = 1; /* the process's flag (PR_GET_DUMPABLE) at the start */

int job_creds_init(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    struct __user_cap_data_struct *sets = &data[CAP_TO_INDEX(CAP_SYS_RESOURCE)];
    dumpable = prctl(PR_GET_DUMPABLE);
    if (syscall(SYS_capget, &header, data) != 0)
        return -errno;
    if (!(sets->permitted & CAP_TO_MASK(CAP_SYS_RESOURCE)))
        return 0;
    sets->effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
    sets->permitted &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
    sets->inheritable &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
    return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}

/* Affects this thread only. setfsuid() returns the old fsuid, but reports no failure. So a
 * second call, with an invalid uid that changes nothing, reads the new fsuid. */
static bool set_fsuid(uid_t uid)
{
    syscall(SYS_setfsuid, uid);
    return (uid_t)syscall(SYS_setfsuid, (uid_t)-1) == uid;
}

/* setfsuid() clears the flag. MPI ranks need it to read each other's memory. */
static void restore_dumpable(void)
{
    prctl(PR_SET_DUMPABLE, dumpable);
}

static bool needs_switch(uid_t uid)
{
    return uid != 0 && geteuid() == 0;
}

int job_creds_enter(uid_t uid)
{
    if (!needs_switch(uid))
        return 0;
    bool switched = set_fsuid(uid);
    restore_dumpable();
    return switched ? 0 : EPERM;
}

void job_creds_leave(uid_t uid)
{
    if (!needs_switch(uid))
        return;
    if (!set_fsuid(0)) {
        job_report("setfsuid: cannot become root again");
        job_watchdog_abort();
    }
    restore_dumpable();
}
