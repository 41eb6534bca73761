/* tempfile.h - create temporary files of outputs, and identify a file in a limefs mount */
#ifndef LIMEFILE_TEMPFILE_H
#define LIMEFILE_TEMPFILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Creates a temporary file for `target` in the directory `dir_fd`, with a mode that the umask
 * limits. Returns a descriptor, O_RDWR, or -errno; the caller frees *name. */
int limefile_tempfile_create(int dir_fd, const char *target, mode_t mode, char **name);

/* Returns "DEVICE:INODE" of the file that fd, perhaps O_PATH, has open; for a file in a limefs
 * mount, of the file that the mount shows. only_mounted: "" for a file that is not in a limefs
 * mount. The caller frees the text. NULL: out of memory. */
char *limefile_output_identify(int fd, bool only_mounted);

#endif
