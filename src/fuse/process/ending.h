/*
 * ending.h - a signal that ends the daemon: what is to be told before requests are dropped
 */
#ifndef LIMEFS_ENDING_H
#define LIMEFS_ENDING_H

#include "limefs.h"

#include <fuse_lowlevel.h>

/* Until release, SIGTERM, SIGINT and SIGHUP (where they are not ignored) end the session; while
 * a loop runs (begin to end), only after limefs_files_end_closing(), which end calls, too. All
 * are called by the thread that runs the loop. 0 or -errno. */
int limefs_ending_catch(struct limefs *, struct fuse_session *);
int limefs_ending_begin(void);
void limefs_ending_end(void);
void limefs_ending_release(void);

#endif
