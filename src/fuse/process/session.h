/* session.h - control which thread gets a request, and negotiate what libfuse cannot */
#ifndef LIMEFS_SESSION_H
#define LIMEFS_SESSION_H

#include <fuse_lowlevel.h>

/* Call it after mounting and before the loop. A request then wakes the thread that began to
 * wait last; where containers may be written to, the kernel asks for no privileges before each
 * write. Returns 0 or -errno. */
int limefs_session_setup(struct fuse_session *);

#endif
