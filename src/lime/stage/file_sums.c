/* file_sums.c - compute the sums of a file, which is read once, ahead of the sums */
#define _GNU_SOURCE
#include "copy_ring.h"
#include "sums.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RING_BLOCKS = 4 };

static int sum_blocks(struct stage_ring *ring, struct stage_sums *sums,
                      bool (*count)(void *context, uint64_t bytes), void *context)
{
    const struct stage_block *block;
    while ((block = stage_ring_next(ring))) {
        stage_sums_add(sums, block->data, block->n);
        count(context, block->n);
        stage_ring_submit(ring);
    }
    return stage_ring_end(ring);
}

int stage_sums_file(int fd, unsigned kinds, bool (*count)(void *context, uint64_t bytes),
                    void *context, struct stage_digest *out)
{
    char byte;
    struct stat st;
    struct stage_ring ring;
    struct stage_sums sums;
    if (fstat(fd, &st) != 0)
        return -errno;
    struct stage_transfer transfer = {
        .in = {.fd = fd}, .out = {.fd = -1, .direct_fd = -1}, .size = (uint64_t)st.st_size};
    int err = stage_sums_init(&sums, kinds);
    if (err)
        return err;
    stage_port_open_direct(&transfer.in, O_RDONLY);
    err = stage_ring_init(&ring, RING_BLOCKS, NULL, 0);
    if (!err)
        err = stage_ring_begin(&ring, &transfer);
    if (!err)
        err = sum_blocks(&ring, &sums, count, context);
    if (!err && pread(fd, &byte, 1, st.st_size) == 1)
        err = -ESTALE; /* the file has grown, or is one of /proc, whose sizes are 0 */
    stage_sums_result(&sums, out);
    transfer.in.fd = -1; /* the caller closes it */
    stage_port_close(&transfer.in);
    stage_ring_release(&ring);
    stage_sums_release(&sums);
    return err;
}
