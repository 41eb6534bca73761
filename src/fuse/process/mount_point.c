/* mount_point.c - find out what is mounted at a directory, and limefs -u: unmount it */
#define _GNU_SOURCE
#include "mount_point.h"
#include "limefs.h"

#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

bool limefs_mount_point_type(const char *path, char type[LIMEFS_MOUNT_TYPE_MAX])
{
    char line[8 * PATH_MAX]; /* a byte of the source or the mount point may take 4 */
    struct mntent entry;
    FILE *file = setmntent("/proc/self/mounts", "re");
    bool found = false;
    while (file && getmntent_r(file, &entry, line, sizeof line))
        if (strcmp(entry.mnt_dir, path) == 0) { /* the last one is the topmost */
            snprintf(type, LIMEFS_MOUNT_TYPE_MAX, "%s", entry.mnt_type);
            found = true;
        }
    if (file)
        endmntent(file);
    return found;
}

static int report_unmount(const char *path, const char *problem, int exit_code)
{
    limefs_log(LOG_ERR, "%s: %s", path, problem);
    return exit_code;
}

/* Unmounts the mount at an absolute path without links. shown: the path for messages. */
static int unmount_path(const char *path, const char *shown)
{
    char type[LIMEFS_MOUNT_TYPE_MAX];
    if (!limefs_mount_point_type(path, type) || strcmp(type, "fuse.limefs") != 0)
        return report_unmount(shown, "not a limefs mount", 2);
    if (umount2(path, UMOUNT_NOFOLLOW) == 0)
        return 0;
    if (errno == EBUSY)
        return report_unmount(shown,
                              "unmount: busy; a program uses it or has a file of it open", 1);
    if (errno == EPERM) {
        /* fusermount3 has root's rights, and unmounts its user's mounts. */
        execlp("fusermount3", "fusermount3", "-u", "--", path, NULL);
        shown = "fusermount3";
    }
    limefs_log(LOG_ERR, "%s: unmount: %s", shown, strerror(errno));
    return 1;
}

void limefs_mount_point_detach(const char *path)
{
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        execlp("fusermount3", "fusermount3", "-u", "-z", "--", path, NULL);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

int limefs_unmount_main(int argc, char *argv[])
{
    if (argc < 2 || strcmp(argv[1], "-u") != 0)
        return -1;
    if (argc != 3)
        return report_unmount("-u", "one mount point expected; usage: limefs -u MOUNTPOINT", 2);
    char *path = realpath(argv[2], NULL);
    if (!path)
        return report_unmount(argv[2], strerror(errno), 2);
    int exit_code = unmount_path(path, argv[2]);
    free(path);
    return exit_code;
}
