/* aheadthread.c - the threads that read ahead: from the container into the kernel's pages */
#define _GNU_SOURCE
#include "blocks.h"
#include "clock.h"
#include "thread.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    KEEP_SECONDS = 2,      /* what nobody comes for */
    KEEP_MORE_SECONDS = 8, /* of a file that somebody has open */
};

static bool read_block(struct limefs_ahead *ahead, struct limefs_block *block)
{
    struct limefs_file *file = block->target->file;
    struct limefs_answer answer = {0};
    struct stat st;
    if (fstat(file->view->fd, &st) != 0)
        return false;
    block->stamp = limefile_identity_of(&st);
    ssize_t got =
        limefs_file_read_face(ahead->fs, file, block->place, block->n, block->offset, &answer);
    block->bytes = answer.iov[0].iov_base;
    return got == (ssize_t)block->n && answer.count == 1;
}

/* From the container itself. What is changed within a tick of the clock looks the same before
 * and after. */
static bool read_stream_block(struct limefs_block *block)
{
    struct limefs_file *file = block->target->file;
    struct timespec now;
    struct stat st;
    clock_gettime(CLOCK_REALTIME, &now);
    if (fstat(file->view->fd, &st) != 0 || limefile_time_is_racy(&st.st_ctim, &now))
        return false;
    block->stamp = limefile_identity_of(&st);
    return limefs_local_read(file, block->place, block->n, block->offset, &block->bytes) ==
           (ssize_t)block->n;
}

/* -ENOENT: the kernel does not know the file. What it was given after it had heard of a change
 * it is to forget. */
static int give_block(struct limefs_ahead *ahead, const struct limefs_block *block)
{
    const struct limefs_file *file = block->target->file;
    struct fuse_session *session = ahead->fs->session;
    struct fuse_bufvec bytes = FUSE_BUFVEC_INIT(block->n);
    fuse_ino_t ino = limefs_face_inode(file->face, file->number + 1);
    bytes.buf[0].mem = (char *)block->bytes;
    int err = fuse_lowlevel_notify_store(session, ino, (off_t)block->offset, &bytes, 0);
    if (!err && !limefs_block_stands(file, block))
        fuse_lowlevel_notify_inval_inode(session, ino, (off_t)block->offset, (off_t)block->n);
    return err;
}

/* With the lock held, which is let go meanwhile. */
static void serve_block(struct limefs_ahead *ahead, struct limefs_block *block,
                        struct limefs_closing *closing)
{
    struct limefs_ahead_target *target = block->target; /* stays, as it has a block */
    block->state = LIMEFS_BLOCK_READING;
    limefs_block_place(ahead, block);
    limefs_unlock(&ahead->lock);
    bool ours = target->file->ours;
    bool whole = ours ? read_block(ahead, block) : read_stream_block(block);
    limefs_lock(&ahead->lock);
    pthread_cond_broadcast(&ahead->read);
    if (!whole) {
        limefs_block_drop(ahead, block, closing);
        return;
    }
    if (ours && !target->open && !target->unknown && !ahead->ending) {
        block->state = LIMEFS_BLOCK_GIVING;
        limefs_unlock(&ahead->lock);
        int err = give_block(ahead, block);
        limefs_lock(&ahead->lock);
        if (err != -ENOENT) {
            limefs_block_drop(ahead, block, closing);
            return;
        }
        target->unknown = true;
        pthread_cond_broadcast(&ahead->read);
    }
    block->state = LIMEFS_BLOCK_KEPT;
    block->since = limefs_seconds();
}

/* Blocks that nobody came for. */
static void drop_old(struct limefs_ahead *ahead, double before, struct limefs_closing *closing)
{
    bool used = false;
    for (int i = 0; i < LIMEFS_BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if (block->state == LIMEFS_BLOCK_KEPT &&
            block->since <= before - (block->target->file->ours ? 0 : KEEP_MORE_SECONDS))
            limefs_block_drop(ahead, block, closing);
        used = used || block->state != LIMEFS_BLOCK_FREE || block->readers > 0;
    }
    if (!used && ahead->room) {
        munmap(ahead->room, (size_t)LIMEFS_BLOCKS * LIMEFS_BLOCK_ROOM);
        ahead->room = NULL;
    }
}

/* Large pages: the kernel pins what it copies from page by page. */
static bool has_room(struct limefs_ahead *ahead)
{
    if (ahead->room)
        return true;
    void *room = mmap(NULL, (size_t)LIMEFS_BLOCKS * LIMEFS_BLOCK_ROOM, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return false;
    madvise(room, (size_t)LIMEFS_BLOCKS * LIMEFS_BLOCK_ROOM, MADV_HUGEPAGE);
    ahead->room = room;
    return true;
}

static void *work(void *data)
{
    struct limefs_ahead *ahead = data;
    limefs_lock(&ahead->lock);
    while (!ahead->ending) {
        struct limefs_closing closing = {.count = 0};
        struct limefs_block *block = limefs_block_queued(ahead);
        if (block && has_room(ahead))
            serve_block(ahead, block, &closing);
        else if (block)
            limefs_block_drop(ahead, block, &closing);
        else if (!ahead->room)
            limefs_wait(&ahead->work, &ahead->lock);
        else {
            double now = limefs_seconds();
            struct timespec until = limefs_clock_time(now + KEEP_SECONDS);
            if (!limefs_wait_until(&ahead->work, &ahead->lock, &until))
                drop_old(ahead, now, &closing);
        }
        if (closing.count) {
            limefs_blocks_unlock(ahead, &closing);
            limefs_lock(&ahead->lock);
        }
    }
    limefs_unlock(&ahead->lock);
    return NULL;
}

/* ---- beginning and end ---- */

void limefs_ahead_begin(struct limefs *fs)
{
    const struct limefs_options *options = &fs->options;
    if (options->rw || options->direct_io || fs->job || options->verify != LIMEFS_VERIFY_OFF)
        return;
    struct limefs_ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return;
    ahead->fs = fs;
    limefs_lock_init(&ahead->lock, LIMEFS_LOCK_AHEAD);
    limefs_condition_init(&ahead->work);
    limefs_condition_init(&ahead->read);
    limefs_lock(&ahead->lock);
    while (ahead->started < LIMEFS_AHEAD_THREADS &&
           limefs_thread_start(&ahead->threads[ahead->started], NULL, work, ahead) == 0)
        ahead->started++;
    limefs_unlock(&ahead->lock);
    fs->ahead = ahead;
}

void limefs_ahead_end(struct limefs *fs)
{
    struct limefs_ahead *ahead = fs->ahead;
    struct limefs_closing closing = {.count = 0};
    if (!ahead)
        return;
    limefs_lock(&ahead->lock);
    ahead->ending = true;
    pthread_cond_broadcast(&ahead->work);
    limefs_unlock(&ahead->lock);
    for (unsigned i = 0; i < ahead->started; i++)
        pthread_join(ahead->threads[i], NULL);
    limefs_lock(&ahead->lock);
    for (int i = 0; i < LIMEFS_BLOCKS; i++)
        if (ahead->blocks[i].state != LIMEFS_BLOCK_FREE)
            limefs_block_drop(ahead, &ahead->blocks[i], &closing);
    drop_old(ahead, 0, &closing);
    limefs_blocks_unlock(ahead, &closing);
    limefs_lock_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->work);
    pthread_cond_destroy(&ahead->read);
    free(ahead);
    fs->ahead = NULL;
}
