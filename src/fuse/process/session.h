/* session.h - control which thread gets a request, and negotiate what libfuse cannot */
#ifndef LIMEFS_SESSION_H
#define LIMEFS_SESSION_H

#include <fuse_lowlevel.h>

/* Call it after mounting and before the session loop. Returns 0 or -errno. */
int limefs_session_setup(struct fuse_session *);

#endif
