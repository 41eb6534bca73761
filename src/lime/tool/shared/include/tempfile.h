/*
 * tempfile.h - a file that is there whole or not at all: written under another name in the
 * target's folder, synced, and renamed at the end. A signal removes what is unfinished.
 */
#ifndef TEMPFILE_H
#define TEMPFILE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* `path`, seen from `folder` (a descriptor, or AT_FDCWD), is removed if SIGINT, SIGTERM or
 * SIGHUP ends the process before the guard is lifted. One file at a time; the path is not
 * copied. */
void guard_set(int folder, const char *path);
void guard_lift(void);

/* The same for what stands in `fd` from byte `end` on: it is cut. */
void guard_end(int fd, uint64_t end);

/* Between the two, these signals wait. */
void guard_hold(sigset_t *before);
void guard_release(const sigset_t *before);

/* Does one of them wait that will end the process? */
bool guard_waits(void);

struct tempfile {
    int fd;
    char *target; /* what it will be: symbolic links followed */
    char *path;   /* what it is until then */
};

/* Each gives -errno; tempfile_open also LIMEFILE_E_NOT_FILE for a target that exists and is
 * no regular file. After success exactly one of commit and abort must be called. */
int tempfile_open(struct tempfile *, const char *target);
int tempfile_commit(struct tempfile *);
void tempfile_abort(struct tempfile *);

/* Opens a file without a name in that folder, or in /tmp where it cannot have one: a
 * descriptor, or -errno. */
int tempfile_unnamed(const char *folder);

/* Makes a change of names in the folder of `path` durable. */
int sync_folder_of(const char *path);

#endif
