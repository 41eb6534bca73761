/* listen.h - create and remove the Unix socket that clients connect to */
#ifndef JOB_LISTEN_H
#define JOB_LISTEN_H

/* Returns 0 if `path` is free or the socket of a dead job, -EADDRINUSE if a job listens there,
 * -EEXIST if `path` is not a socket, -EPERM if it is another user's, or another -errno. */
int job_listen_check(const char *path);

/* Creates a listening socket with mode 0600 at `path`. Replaces the socket of a dead job.
 * `path` must stay valid. Returns the descriptor or -errno. A process may call it once. */
int job_listen(const char *path);

/* Unlinks the socket, unless another file has replaced it. Any thread may call it. */
void job_listen_remove(void);

#endif
