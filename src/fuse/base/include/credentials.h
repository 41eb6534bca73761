/*
 * credentials.h - run each request with the rights (credentials) of the process that made it.
 *
 * A daemon of root that serves other users (allow_other) has more rights than they have. While
 * a thread serves a request, it therefore has the caller's file system uid and gid,
 * supplementary groups and umask, and no capability that overrides them. The kernel then
 * permits only what it would permit the caller itself; files that the request creates belong
 * to the caller, whose quota counts, and blocks reserved for root are not used.
 *
 * For its own work (finding the file of a node, indexing a container that all its readers
 * share) the daemon uses its own rights, between limefs_daemon_creds_enter() and
 * limefs_daemon_creds_leave().
 *
 * A daemon that serves only its own user switches nothing. A daemon of an ordinary user cannot
 * switch: it refuses changes by other users, and the kernel checks their reads by file modes.
 *
 * All functions act on the calling thread alone. A new thread inherits the rights of the thread
 * that starts it, so a thread that has a caller's rights must not start one.
 */
#ifndef LIMEFS_CREDENTIALS_H
#define LIMEFS_CREDENTIALS_H

#include "limefs.h"

/* The process that made a request, as the kernel reports it. */
struct limefs_caller {
    uid_t uid;
    gid_t gid;
    pid_t pid;    /* thread id; 0: in a PID namespace that the daemon cannot see */
    mode_t umask; /* 0 if the request does not create a file */
};

/* Decides whether to switch rights or to refuse changes. Call it before starting a thread. */
void limefs_creds_init(struct limefs *);

/* Gives the thread the caller's rights until limefs_caller_creds_leave(). `changes`: the
 * request changes something. Returns 0 or -errno, after which the thread must not serve the
 * request; -EACCES: it cannot have these rights. */
int limefs_caller_creds_enter(const struct limefs *, const struct limefs_caller *,
                              bool changes);

/* The same for a request that moves bytes by a descriptor, with the rights of the user that
 * opened the file. Names and modes do not matter for it; quotas and reserved blocks do. */
int limefs_transfer_creds_enter(const struct limefs *, uid_t, gid_t);

/* Restores the daemon's rights. The daemon aborts rather than continue with the wrong ones. */
void limefs_caller_creds_leave(void);

/* Give the thread the daemon's own rights. Calls nest; outside a request they do nothing. */
void limefs_daemon_creds_enter(void);
void limefs_daemon_creds_leave(void);

/* Returns 0 if the caller may read (R_OK) or write (W_OK) the file of fd, which may be O_PATH,
 * otherwise -errno. Always 0 while the thread has the daemon's rights or only moves bytes. */
int limefs_creds_check_access(int fd, int mode);

/* The uid and gid whose rights the thread has. */
uid_t limefs_creds_uid(void);
gid_t limefs_creds_gid(void);

/* Sets the uid with which the thread moves bytes, whatever request it serves. Returns the
 * previous uid, which the caller must restore with a second call. */
uid_t limefs_creds_swap_uid(const struct limefs *, uid_t);

/* Restores all rights of the main thread after its last request, so that it can unmount. */
void limefs_creds_release(void);

#endif
