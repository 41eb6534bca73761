/* listen.h - the Unix socket that clients find */
#ifndef JOB_LISTEN_H
#define JOB_LISTEN_H

/* Whether a job answers there: -EADDRINUSE; or something else is there: -EEXIST. 0: free, or
 * the socket of a job that is dead. */
int job_listen_check(const char *path);

/* Creates a listening socket of mode 0600 at `path`, which must stay valid, in the place of a
 * dead one. Returns its descriptor or -errno. Once in a process. */
int job_listen(const char *path);

/* Removes that socket's name, unless another file has taken it. Any thread may call it. */
void job_listen_remove(void);

#endif
