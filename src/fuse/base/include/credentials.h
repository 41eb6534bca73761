/*
 * credentials.h - run each request with the rights (credentials) of the process that made it.
 *
 * A daemon of root that serves other users (allow_other) has more rights than these users. So
 * while a thread serves a request, it has the caller's file system uid and gid, supplementary
 * groups and umask, and (unless the caller is root) no capability that overrides permissions.
 * The kernel then permits only what it would permit the caller itself; files that the request
 * creates belong to the caller, whose quota counts, and reserved blocks are not used.
 *
 * For its own work (finding the file of a node, indexing a container that all its readers
 * share) the daemon uses its own rights, between limefs_daemon_creds_enter() and
 * limefs_daemon_creds_leave().
 *
 * A daemon that serves only its own user switches only the umask. An ordinary user's daemon
 * cannot switch: it refuses others' changes; the kernel checks their reads by file modes.
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

/* Gives the thread the rights of the process that made the request, until
 * limefs_caller_creds_leave(). `changes`: the request changes something. Returns 0, or -errno
 * if the thread must not serve the request; -EACCES: the thread cannot get these rights. */
int limefs_caller_creds_enter(const struct limefs *, const struct limefs_caller *,
                              bool changes);

/* Gives the thread the rights of the user that opened a file, for a request that reads or
 * writes it. Only quotas and reserved blocks depend on them. */
int limefs_transfer_creds_enter(const struct limefs *, uid_t, gid_t);

/* Ends the rights of the request. Aborts the daemon if it cannot drop those of root. */
void limefs_caller_creds_leave(void);

/* Switch to the daemon's own rights and back. Calls nest; outside a request they do nothing. */
void limefs_daemon_creds_enter(void);
void limefs_daemon_creds_leave(void);

/* Returns 0 if the request's process may read (R_OK) or write (W_OK) fd's file, or -errno. fd
 * can be O_PATH. Always 0 outside limefs_caller_creds_enter(), and with the daemon's rights. */
int limefs_creds_check_access(int fd, int mode);

/* The uid and gid that the thread has for its request; the daemon's if it did not switch. */
uid_t limefs_creds_uid(void);
gid_t limefs_creds_gid(void);

/* Sets the thread's file system uid, to write bytes of a user other than the one whose request
 * it serves. Returns the previous uid, which the caller must restore with a second call. */
uid_t limefs_creds_swap_uid(const struct limefs *, uid_t);

/* Gives the main thread all its rights again after its last request, so that it can unmount. */
void limefs_creds_release(void);

#endif
