/* ops.h - the table of FUSE operations; userdata is struct limefs */
#ifndef LIMEFS_OPS_H
#define LIMEFS_OPS_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

extern const struct fuse_lowlevel_ops limefs_ops;

struct limefs_file;

/* ---- ops_verify.c ---- */

/* Verifies the record if the options require it, replies, and takes ownership of the file. */
void limefs_op_reply_open(fuse_req_t req, struct limefs_file *, struct fuse_file_info *);

/* Handles a getxattr of LIMEFS_VERIFY_XATTR or LIMEFS_CKSUM_XATTR of a record, including the
 * reply. Returns false for any other name and for files that are not records. */
bool limefs_op_verify_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);

#endif
