/*
 * descriptor.h - open files safely below a directory that other users can change, and reopen a
 * file by its descriptor.
 *
 * Between two uses of a name, any user with write permission in its directory can make the name
 * refer to another file. So callers use a name once, to get a descriptor. They compare the
 * descriptor with the expected file and then work on the descriptor.
 */
#ifndef LIMEFILE_DESCRIPTOR_H
#define LIMEFILE_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

enum { LIMEFILE_FD_PATH_MAX = 32 }; /* size of limefile_fd_path()'s buffer, with the NUL */

/* Opens the relative `path` below the directory `dir`, never outside of it and never through a
 * symbolic link. `flags` are those of open(2) without O_CREAT and O_TMPFILE; O_CLOEXEC and
 * O_NOFOLLOW are added. With O_PATH, a symbolic link as the last component is opened as a link.
 * Returns a descriptor or -errno: -ELOOP for a link, -EXDEV for a path that leaves `dir`. */
int limefile_open_beneath(int dir, const char *path, int flags);

/* Does the same one component at a time, without openat2(), for Linux before 5.6. */
int limefile_walk_beneath(int dir, const char *path, int flags);

/* Fills `path` with a path to the file that fd has open, for system calls that accept no
 * descriptor, or no O_PATH descriptor. The path is valid while fd is open. */
void limefile_fd_path(int fd, char path[LIMEFILE_FD_PATH_MAX]);

/* openat(2) with O_CLOEXEC. With O_NONBLOCK, openat(2) fails with EAGAIN while another process
 * holds a lease. In this case the function retries for 5 ms, which is enough for limefs and
 * limefs-run: they release a lease at once. Returns a descriptor or -errno. */
int limefile_open_at(int dir, const char *path, int flags, mode_t mode);

/* Reopens the file that fd, possibly an O_PATH descriptor, has open; O_CLOEXEC is added. The
 * kernel checks permissions as for an open by name. Returns a descriptor or -errno. */
int limefile_reopen(int fd, int flags);

/* Checks that `name` in the directory `dir` is the file that fd has open; a symbolic link is
 * not followed. Returns 0, -ESTALE if it is another file, or another -errno. */
int limefile_check_name(int dir, const char *name, int fd);

#endif
