/* tempfile.h - create temporary files of outputs, and identify a file in a limefs mount */
#ifndef LIMEFILE_TEMPFILE_H
#define LIMEFILE_TEMPFILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Creates, in the directory `dir_fd`, a temporary file that will replace `target`. The umask
 * limits its mode. Returns an O_RDWR descriptor, with the temporary file's name in *name, which
 * the caller frees; or -errno. */
int limefile_tempfile_create(int dir_fd, const char *target, mode_t mode, char **name);

/* Returns the device and inode of the open file fd (O_PATH suffices) as a text "DEVICE:INODE".
 * For a file in a limefs mount, the numbers are those of the original file outside the mount.
 * only_mounted: "" for a file outside limefs mounts. The caller frees the text. NULL: error. */
char *limefile_output_file_id(int fd, bool only_mounted);

#endif
