/* The system's <linux/fuse.h>, in which the last member of struct fuse_open_out is called
 * OPEN_OUT_LAST: `padding` before Linux 6.9, `backing_id` after. */
#include <stdint.h>
#define padding    OPEN_OUT_LAST
#define backing_id OPEN_OUT_LAST
#include_next <linux/fuse.h>
#undef padding
#undef backing_id
