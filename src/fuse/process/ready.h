/*
 * ready.h - becoming a daemon whose parent returns when the mount can be used.
 */
#ifndef LIMEFS_READY_H
#define LIMEFS_READY_H

#include <stdbool.h>

/* Forks. The parent waits for limefs_ready() and exits with what it says, or with 1 if the
 * child dies before; the child goes on, without the descriptors that it has inherited, unless
 * one of them is wanted. 0 or -errno. */
int limefs_daemonise(bool keep_inherited);

/* Tells the waiting parent how it went: 0 is "mounted". Later calls do nothing. */
void limefs_ready(int exit_code);

#endif
