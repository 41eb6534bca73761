/* listen.h - the Unix socket that clients find */
#ifndef JOB_LISTEN_H
#define JOB_LISTEN_H

#include <sys/types.h>

/* Whether a job answers there: -EADDRINUSE; or something else is there: -EEXIST. 0: free, or
 * the socket of a job that is dead. */
int job_listen_check(const char *path);

/* A listening socket of mode 0600 at `path`, in the place of a dead one; -errno. */
int job_listen(const char *path, dev_t *dev, ino_t *ino);

/* Removes it if it is still that one. */
void job_listen_remove(const char *path, dev_t dev, ino_t ino);

/* For who does not know which one it is, at the end: does away with what job_listen() has made
 * in this process, or else with what it made in one that is about to die, on the same host.
 * What answers for longer than a second stays. */
void job_listen_clear(const char *path);

#endif
