/*
 * unfinished.h - the temporary files of outputs, and what identifies a file in a limefs mount.
 */
#ifndef LIMEFILE_UNFINISHED_H
#define LIMEFILE_UNFINISHED_H

#include <stdbool.h>
#include <sys/types.h>

/* Creates a temporary file for `target` in the directory `dir_fd`, with a mode that the umask
 * limits. Returns a descriptor, O_RDWR, or -errno; *name is the caller's to free. */
int limefile_unfinished_create(int dir_fd, const char *target, mode_t mode, char **name);

/* Returns "DEVICE:INODE" of the file that fd, O_PATH perhaps, has open, or of the file of which
 * a limefs mount makes it. only_mounted: "" for a file that is not in a limefs mount. The
 * caller frees it. NULL: out of memory. */
char *limefile_output_file_of(int fd, bool only_mounted);

#endif
