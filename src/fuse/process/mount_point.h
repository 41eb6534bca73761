/* mount_point.h - find out what is mounted at a directory, and limefs -u: unmount it */
#ifndef LIMEFS_MOUNT_POINT_H
#define LIMEFS_MOUNT_POINT_H

#include <stdbool.h>

enum { LIMEFS_MOUNT_TYPE_MAX = 64 };

/* Gets the file system type of the topmost mount at an absolute path without links. Returns
 * false if it is not a mount point. */
bool limefs_mount_point_type(const char *path, char type[LIMEFS_MOUNT_TYPE_MAX]);

/* Unmounts an absolute path without links, also if programs use the mount. */
void limefs_mount_point_detach(const char *path);

/* Runs limefs -u MOUNTPOINT. Returns the exit status, or -1 if argv[1] is not -u. */
int limefs_unmount_main(int argc, char *argv[]);

#endif
