/* ops.h - the table of FUSE operations; the session's userdata must be a struct limefs */
#ifndef LIMEFS_OPS_H
#define LIMEFS_OPS_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

extern const struct fuse_lowlevel_ops limefs_ops;

struct limefs_file;

/* Replies to an open request (ops_verify.c), perhaps later: after the record was verified, if
 * the options require it. Takes ownership of the file; closes it if the reply is an error. */
void limefs_op_reply_open(fuse_req_t req, struct limefs_file *, struct fuse_file_info *);

/* Handles a getxattr of LIMEFS_VERIFY_XATTR or LIMEFS_CKSUM_XATTR of a record, including the
 * reply. Returns false for any other name and for files that are not records. */
bool limefs_op_verify_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);

#endif
