/*
 * caller.h - with whose rights a thread works.
 *
 * A daemon of root's that serves other users (allow_other) may do more than they may. So the
 * thread that serves a request takes on the caller's rights for as long as it does: file system
 * uid and gid, supplementary groups, umask, and no capability that overrides them. What the
 * kernel then permits is what the caller may do natively, whatever the names lead to by now;
 * what is made is the caller's; quotas and the blocks reserved for root bind.
 *
 * What the daemon does for itself (finding the file that a node stands for, indexing a
 * container that all its readers share) it does with its own rights, and says so:
 * limefs_own_begin().
 *
 * A daemon that serves its own user alone has nothing to take on. One of an ordinary user that
 * serves others cannot: it refuses their changes, and what they read the kernel checks by
 * modes.
 *
 * All of it concerns the calling thread alone. A thread begins with the rights of the one that
 * starts it: so none is started while that has a caller's.
 */
#ifndef LIMEFS_CALLER_H
#define LIMEFS_CALLER_H

#include "limefs.h"

/* Who made a request, as the kernel says. */
struct limefs_caller {
    uid_t uid;
    gid_t gid;
    pid_t pid;    /* of the thread; 0: in a process namespace that we cannot see */
    mode_t umask; /* of requests that make something; else 0 */
};

/* Before any thread is started. */
void limefs_caller_init(struct limefs *);

/* The thread works with the caller's rights until limefs_caller_end(). `changes`: what is asked
 * for changes something. -EACCES: it cannot have them, and must not serve the request. */
int limefs_caller_begin(const struct limefs *, const struct limefs_caller *, bool changes);

/* The same for bytes that are moved by descriptors, for the user who opened the file: no name
 * and no mode counts for these, but quotas and reserved blocks do. */
int limefs_caller_begin_moving(const struct limefs *, uid_t, gid_t);

/* Never fails: rather than go on with the wrong rights, the daemon ends. */
void limefs_caller_end(void);

/* In between, the daemon's own rights; may be nested, and outside of a request does nothing. */
void limefs_own_begin(void);
void limefs_own_end(void);

/* Whether the caller may read (R_OK) or write (W_OK) what fd, O_PATH perhaps, has open: 0 or
 * -errno. With the daemon's own rights, or where bytes are moved: yes. */
int limefs_caller_may(int fd, int mode);

/* Whose rights the thread has. */
uid_t limefs_caller_uid(void);
gid_t limefs_caller_gid(void);

/* Bytes are moved for that user for a moment, whosever request this is: whom the thread has
 * worked for, to be given back in the same way. */
uid_t limefs_caller_swap(const struct limefs *, uid_t);

/* At the end of the main thread's work as one that serves: it unmounts with all its rights. */
void limefs_caller_release(void);

#endif
