/* tempfile.h - create temporary files of outputs, and identify a file in a limefs mount */
#ifndef LIMEFILE_TEMPFILE_H
#define LIMEFILE_TEMPFILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Creates a temporary file, which is to replace `target`, in the directory `dir_fd`. The umask
 * limits its mode. Returns a descriptor, O_RDWR, and sets *name to the name in the directory,
 * which the caller frees; or returns -errno. */
int limefile_tempfile_create(int dir_fd, const char *target, mode_t mode, char **name);

/* Returns a text that identifies the file that fd, perhaps O_PATH, has open: "DEVICE:INODE";
 * for a file in a limefs mount, that of the file that the mount shows. only_mounted: returns ""
 * for a file that is not in a limefs mount. The caller frees the text. NULL: an error. */
char *limefile_output_file_id(int fd, bool only_mounted);

#endif
