/*
 * credentials.h - write on behalf of a user
 *
 * A job of root also writes for other users. The limits that stop a user's own writes (a quota,
 * or file system blocks reserved for root) must also stop the writes that root's ranks make for
 * that user.
 */
#ifndef JOB_CREDENTIALS_H
#define JOB_CREDENTIALS_H

#include <sys/types.h>

/* Permanently drops CAP_SYS_RESOURCE, which overrides quotas and reserved blocks, in this
 * thread and in threads that it starts later. Returns 0 or -errno. */
int job_creds_init(void);

/* Until job_creds_leave(), this thread accesses the file system with the rights of that user.
 * No effect if the job is not root's, or if uid is 0. Returns 0 or EPERM. */
int job_creds_enter(uid_t uid);
void job_creds_leave(uid_t uid);

#endif
