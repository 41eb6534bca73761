/* ops.h - the table of FUSE operations; userdata is struct limefs */
#ifndef LIMEFS_OPS_H
#define LIMEFS_OPS_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

extern const struct fuse_lowlevel_ops limefs_ops;

struct limefs_file;

/* ---- ops_verify.c ---- */

/* Replies to an open, once the record is verified where that is wanted. Takes the file. */
void limefs_op_reply_open(fuse_req_t req, struct limefs_file *, struct fuse_file_info *);

/* A getxattr of LIMEFS_VERIFY or LIMEFS_CKSUM: true if that is what it is, and it is taken care
 * of. */
bool limefs_op_verify(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);

/* ---- ops_change.c ---- */

void limefs_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi);
void limefs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void limefs_op_fsync(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi);
void limefs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi);
void limefs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int which,
                       struct fuse_file_info *fi);
void limefs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags);
void limefs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void limefs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi);
void limefs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void limefs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void limefs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void limefs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void limefs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
                      fuse_ino_t new_parent, const char *new_name, unsigned flags);
void limefs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void limefs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                     dev_t dev);
void limefs_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi);

#endif
