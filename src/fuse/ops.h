/* ops.h - the table of FUSE operations; userdata is struct limefs */
#ifndef LIMEFS_OPS_H
#define LIMEFS_OPS_H

#include <fuse_lowlevel.h>

extern const struct fuse_lowlevel_ops limefs_ops;

#endif
