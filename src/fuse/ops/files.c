/* files.c - user.limefs.files: which files are behind an inode of the mount */
#define _GNU_SOURCE
#include "faces.h"
#include "guise.h"
#include "joined.h"
#include "limeoutput.h"
#include "tree.h"
#include "view.h"
#include "xattr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 44 }; /* " DEVICE:INODE" */

/* Appends a file to the *used bytes of text in buf; with a cap of 0 it only counts. */
static int append_file(int fd, char *buf, size_t cap, size_t *used)
{
    char text[FILE_MAX];
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    int n = snprintf(text, sizeof text, "%s%ju:%ju", *used ? " " : "", (uintmax_t)st.st_dev,
                     (uintmax_t)st.st_ino);
    if (cap && *used + (size_t)n > cap)
        return -ERANGE;
    if (cap)
        memcpy(buf + *used, text, (size_t)n);
    *used += (size_t)n;
    return 0;
}

/* view is pinned. */
static ssize_t files_of_view(const struct limefs_view *view, char *buf, size_t cap)
{
    const struct limefs_joined *set = limefs_guise_set(view->guise);
    size_t used = 0, volumes = set ? limefs_joined_volumes(set) : 1;
    int err = 0;
    for (size_t i = 0; !err && i < volumes; i++)
        err = append_file(set ? limefs_joined_fd(set, i) : view->fd, buf, cap, &used);
    return err ? err : (ssize_t)used;
}

static ssize_t files_of_node(struct limefs *fs, struct limefs_node *node, char *buf, size_t cap)
{
    struct limefs_view *view;
    size_t used = 0;
    if (node->kind == LIMEFS_CONTAINER) {
        ssize_t len = limefs_view_current(fs, node, &view);
        if (len)
            return len;
        len = files_of_view(view, buf, cap);
        limefs_view_unpin(fs, view);
        return len;
    }
    int fd = limefs_tree_hold(fs, node);
    if (fd < 0)
        return fd;
    int err = append_file(fd, buf, cap, &used);
    close(fd);
    return err ? err : (ssize_t)used;
}

ssize_t limefs_xattr_files(struct limefs *fs, uint64_t id, char *buf, size_t cap)
{
    uint64_t ordinal;
    struct limefs_node *node = limefs_inode_node(fs, id);
    if (node)
        return files_of_node(fs, node, buf, cap);
    struct limefs_face *face = limefs_inode_face(fs, id, &ordinal);
    struct limefs_view *view = face ? NULL : limefs_inode_view(fs, id, &ordinal);
    ssize_t len = face ? limefs_face_use(fs, face) : view ? limefs_view_pin(fs, view) : -ESTALE;
    if (len)
        return len;
    len = files_of_view(face ? limefs_face_view(face) : view, buf, cap);
    if (face)
        limefs_face_leave(fs, face);
    else
        limefs_view_unpin(fs, view);
    return len;
}
