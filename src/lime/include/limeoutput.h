/*
 * limeoutput.h - write an output file so that it appears complete or not at all, and replaces
 * neither an input nor a container that another process writes to.
 *
 *     limefile_output_open     checks the target and creates a temporary file next to it
 *     ...                      the program writes to `fd`, or any process opens `temporary`
 *     limefile_output_commit   syncs the temporary file and gives it the target's name
 *     limefile_output_abort    or removes it
 *
 * A program that runs on several ranks calls these functions on one rank; the others open
 * `temporary` for writing and close it before the commit.
 *
 * The temporary file is called .TARGET.lime-tmp-HOST-PID-START-COUNT. SIGINT, SIGTERM and
 * SIGHUP remove it (limecleanup.h); a process that ends in another way leaves it behind.
 * limefile_output_open() removes such a file from the target's directory if it has the same
 * user and the process that created it was on this host and has ended. Not thread-safe.
 *
 * Results are 0 or -errno; for a target that cannot be written, LIMEFILE_E_OUTPUT_*,
 * LIMEFILE_E_NOT_FILE or -EISDIR. A message is "FILE: " and limefile_strerror().
 */
#ifndef LIMEOUTPUT_H
#define LIMEOUTPUT_H

#include "limefile.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* An attribute of every file and directory in a limefs mount: "DEVICE:INODE", in decimal, of
 * the container or file that the mount shows there. listxattr(2) does not list it. */
#define LIMEFILE_FILES_XATTR "user.limefs.files"

struct limefile_output {
    int fd;            /* the temporary file, O_RDWR */
    char *temporary;   /* its absolute path; NULL after limefile_output_open_at() */
    bool without_sync; /* set by the caller: commit does not sync the file */

    /* Private. */
    char *directory; /* directory of the target, absolute */
    int dir_fd;      /* descriptor of `directory` */
    char *name;      /* name of the target in `directory` */
    char *temp_name; /* name of the temporary file in `directory` */
    char *identity;  /* for limefile_output_is_target() */
    int old;         /* descriptor of the existing target, a regular file, locked; or -1 */
    bool exists;     /* the target existed at the open, with this device and inode */
    dev_t device;
    ino_t inode;
    mode_t mode;         /* mode of a new target */
    bool is_link;        /* limefile_output_open_at(): the target is a symbolic link, which is
                          * replaced */
    bool is_one_of_many; /* opened by limefile_output_open_at() */
};

/* Checks the target and creates the temporary file. A target that is a symbolic link to a
 * regular file stays a link; the commit replaces the file that it leads to.
 *
 *   path    of the target
 *   force   replace an existing target; if false, LIMEFILE_E_OUTPUT_EXISTS is returned for it
 *   inputs  descriptors of the `count` files that the program reads
 *
 * LIMEFILE_E_OUTPUT_INPUT: the target is an input (see limefile_output_is_target()).
 * LIMEFILE_E_OUTPUT_LOCKED: the target is a container that another process has locked
 * (limefile_lock()). After success, this process holds the lock until commit or abort.
 * LIMEFILE_E_OUTPUT_LINK: the target is a symbolic link that leads nowhere. After success, the
 * caller must call commit or abort. A commit that fails includes the abort. */
int limefile_output_open(struct limefile_output *, const char *path, bool force,
                         const int *inputs, size_t count);

/* The two steps of limefile_output_open(), for programs with too many inputs to have them open
 * at once. Between the steps, the program calls limefile_output_is_target() for each input.
 * Only the second step creates a file. After a successful step, the caller must call the next
 * one or abort. */
int limefile_output_find(struct limefile_output *, const char *path);
int limefile_output_create(struct limefile_output *, bool force);

/* Does what limefile_output_open() does, for one of many files in the directory `dir_fd`. A
 * symbolic link `name` is replaced, not followed. If the directory is in a limefs mount, it
 * could show an input; the caller must have excluded this with limefile_output_same_file().
 * This function does not remove old temporary files, and the commit does not sync the
 * directory: the caller does both once for all files, with limefile_output_remove_stale() and
 * fsync(2). */
int limefile_output_open_at(struct limefile_output *, int dir_fd, const char *name, bool force,
                            const int *inputs, size_t count);

/* Returns true if fd, an open file or directory, is the target. A file or directory in a limefs
 * mount counts as the container or file that it shows, even in part. Call this function for
 * inputs that are opened after the output. */
bool limefile_output_is_target(const struct limefile_output *, int fd);

/* Gives the temporary file the owner and mode of the old target, or of a new file if the target
 * did not exist; syncs it, renames it to the target, and syncs the directory.
 * LIMEFILE_E_OUTPUT_CHANGED: another process has replaced, removed or created the target since
 * limefile_output_open(); the target stays. After an error the temporary file is removed,
 * unless only the sync of the directory failed: then the target is the new file. */
int limefile_output_commit(struct limefile_output *);

/* Removes the temporary file. Does nothing after a commit. */
void limefile_output_abort(struct limefile_output *);

/* Removes the temporary files that killed processes of this user and host have left in the
 * directory `dir_fd`, a descriptor. limefile_output_open() calls it. */
void limefile_output_remove_stale(int dir_fd);

/* Returns true if `name` is that of a temporary file. */
bool limefile_output_is_temporary(const char *name);

/* Returns true if two open files or directories are one file, or show one file in mounts. */
bool limefile_output_same_file(int fd, int other);

/* For programs with their own temporary files: opens the existing file `name` in the directory
 * `dir_fd`, a descriptor or AT_FDCWD, and acquires its container lock, if the file system has
 * locks. Closing the descriptor releases the lock. Returns a descriptor, -EBUSY if another
 * process holds the lock, or another -errno. */
int limefile_output_lock(int dir_fd, const char *name);

#endif
