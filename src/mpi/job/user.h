/*
 * user.h - for whom a rank writes
 *
 * A job of root's writes for others too. What stops a user's writes, a quota or the blocks of a
 * file system that are reserved for root, must stop those that root's ranks make for that user.
 */
#ifndef JOB_USER_H
#define JOB_USER_H

#include <sys/types.h>

/* Gives up CAP_SYS_RESOURCE, which goes beyond quotas and reserved blocks, for good: in this
 * thread and those that it starts later. 0 or -errno. */
int job_user_start(void);

/* What this thread does until it leaves, it does with the rights of that user, as far as the
 * file system is concerned. Nothing changes where the job is not root's, or for root. 0, or
 * EPERM. */
int job_user_enter(uid_t uid);
void job_user_leave(uid_t uid);

#endif
