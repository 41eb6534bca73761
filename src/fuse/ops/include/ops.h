/* ops.h - the table of FUSE operations; the session's userdata must be a struct limefs */
#ifndef LIMEFS_OPS_H
#define LIMEFS_OPS_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

extern const struct fuse_lowlevel_ops limefs_ops;

struct limefs_file;

/* Replies to an open request (ops_verify.c). If the record must be read before, the work queue
 * replies later. Takes ownership of the file, and closes it if the reply is an error. */
void limefs_op_reply_open(fuse_req_t req, struct limefs_file *, struct fuse_file_info *);

/* If name is LIMEFS_VERIFY_XATTR or LIMEFS_CKSUM_XATTR, and ino is a record, handles the
 * getxattr request, including the reply. Returns false for other names and files. */
bool limefs_op_verify_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);

#endif
