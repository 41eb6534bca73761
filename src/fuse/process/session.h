/* session.h - how threads wait for requests, and what libfuse cannot ask the kernel for */
#ifndef LIMEFS_SESSION_H
#define LIMEFS_SESSION_H

#include <fuse_lowlevel.h>

/* After it is mounted, before its loop: a request wakes the thread that began to wait last;
 * where containers may be written to, the kernel asks for no privileges before each write.
 * 0 or -errno. */
int limefs_session_adjust(struct fuse_session *);

#endif
