/* files.c - user.limefs.files: which file is behind an inode of the mount */
#define _GNU_SOURCE
#include "faces.h"
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

enum { FILE_MAX = 44 }; /* "DEVICE:INODE" */

/* Formats the open file's device and inode; with a cap of 0 only returns the length. */
static ssize_t format_file(int fd, char *buf, size_t cap)
{
    char text[FILE_MAX];
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    int n = snprintf(text, sizeof text, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    if (cap && (size_t)n > cap)
        return -ERANGE;
    if (cap)
        memcpy(buf, text, (size_t)n);
    return n;
}

static ssize_t file_of_node(struct limefs *fs, struct limefs_node *node, char *buf, size_t cap)
{
    struct limefs_view *view;
    if (node->kind == LIMEFS_CONTAINER) {
        ssize_t len = limefs_view_current(fs, node, &view);
        if (len)
            return len;
        len = format_file(view->fd, buf, cap);
        limefs_view_unpin(fs, view);
        return len;
    }
    int fd = limefs_tree_hold(fs, node);
    if (fd < 0)
        return fd;
    ssize_t len = format_file(fd, buf, cap);
    close(fd);
    return len;
}

ssize_t limefs_xattr_files(struct limefs *fs, uint64_t id, char *buf, size_t cap)
{
    uint64_t ordinal;
    struct limefs_node *node = limefs_inode_node(fs, id);
    if (node)
        return file_of_node(fs, node, buf, cap);
    struct limefs_face *face = limefs_inode_face(fs, id, &ordinal);
    struct limefs_view *view = face ? NULL : limefs_inode_view(fs, id, &ordinal);
    ssize_t len = face ? limefs_face_use(fs, face) : view ? limefs_view_pin(fs, view) : -ESTALE;
    if (len)
        return len;
    len = format_file((face ? limefs_face_view(face) : view)->fd, buf, cap);
    if (face)
        limefs_face_leave(fs, face);
    else
        limefs_view_unpin(fs, view);
    return len;
}
