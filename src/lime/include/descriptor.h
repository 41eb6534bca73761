/*
 * descriptor.h - files by descriptor: opened below a directory whatever other users do to the
 * names meanwhile, and opened again without a name.
 *
 * Names are hints: between two looks at one, anybody who may write to its folder can make it
 * lead elsewhere. So a name is used once, to get a descriptor; the descriptor is compared with
 * what was meant, and acted on.
 */
#ifndef LIMEFILE_DESCRIPTOR_H
#define LIMEFILE_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

enum {
    LIMEFILE_FD_PATH_MAX = 32, /* bytes of a path that limefile_fd_path() makes, with its NUL */
};

/*
 * Opens `path`, which is relative, below the directory `folder`: never outside of it, and
 * through no symbolic link. flags as for open(2), but without O_CREAT and O_TMPFILE;
 * O_CLOEXEC and O_NOFOLLOW are added. With O_PATH a last component that is a link is itself
 * opened. Returns a descriptor or -errno: -ELOOP for a link, -EXDEV for a way out.
 */
int limefile_open_beneath(int folder, const char *path, int flags);

/* The same, component by component, as where Linux has no openat2() (before 5.6). */
int limefile_walk_beneath(int folder, const char *path, int flags);

/* A path to the very file that fd has open, for calls that take no descriptor, or none that is
 * O_PATH. It is good as long as fd is open. */
void limefile_fd_path(int fd, char path[LIMEFILE_FD_PATH_MAX]);

/* openat(2) with O_CLOEXEC, for O_NONBLOCK: a lease that its holder gives back at once, as
 * limefs and limefs-run do, is waited for; others are EAGAIN. Returns a descriptor or -errno.
 */
int limefile_open_at(int folder, const char *path, int flags, mode_t mode);

/* Opens the file that fd, O_PATH perhaps, has open, once more; O_CLOEXEC is added. The caller's
 * rights are checked as for its name. Returns a descriptor or -errno. */
int limefile_reopen(int fd, int flags);

/* 0 if the name in the directory, which is not followed if it is a link, is that of the open
 * file; -ESTALE if it is another one's; -errno. */
int limefile_check_name(int folder, const char *name, int fd);

#endif
