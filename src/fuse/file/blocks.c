/* blocks.c - blocks that are read ahead, and the files that they are of */
#include "blocks.h"

void limefs_blocks_unlock(struct limefs_ahead *ahead, const struct limefs_closing *closing)
{
    limefs_unlock(&ahead->lock);
    for (unsigned i = 0; i < closing->count; i++)
        limefs_file_close(ahead->fs, closing->files[i]);
}

/* The same few again and again, which are in the processor's caches. */
void limefs_block_place(struct limefs_ahead *ahead, struct limefs_block *block)
{
    int i = 0;
    while (ahead->taken[i]) /* there are as many as blocks */
        i++;
    ahead->taken[i] = true;
    block->place = ahead->room + (size_t)i * LIMEFS_BLOCK_ROOM;
}

void limefs_block_leave(struct limefs_ahead *ahead, struct limefs_block *block)
{
    if (block->place)
        ahead->taken[(size_t)(block->place - ahead->room) / LIMEFS_BLOCK_ROOM] = false;
    block->place = NULL;
}

void limefs_block_drop(struct limefs_ahead *ahead, struct limefs_block *block,
                       struct limefs_closing *closing)
{
    struct limefs_ahead_target *target = block->target;
    block->state = LIMEFS_BLOCK_FREE;
    block->target = NULL;
    if (block->readers == 0)
        limefs_block_leave(ahead, block);
    if (--target->blocks == 0) {
        if (target->file->ours)
            closing->files[closing->count++] = target->file;
        *target = (struct limefs_ahead_target){0};
    }
    pthread_cond_broadcast(&ahead->read);
}

static bool is_of(const struct limefs_ahead_target *target, const struct limefs_face *face,
                  uint64_t number)
{
    return target->file && target->file->ours && target->file->face == face &&
           target->file->number == number;
}

struct limefs_block *limefs_block_find(struct limefs_ahead *ahead,
                                       const struct limefs_file *file, uint64_t offset)
{
    for (int i = 0; i < LIMEFS_BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if (block->state != LIMEFS_BLOCK_FREE &&
            is_of(block->target, file->face, file->number) && offset >= block->offset &&
            offset - block->offset < block->n)
            return block;
    }
    return NULL;
}

struct limefs_block *limefs_block_of_stream(struct limefs_ahead *ahead,
                                            const struct limefs_file *file, uint64_t at)
{
    for (int i = 0; i < LIMEFS_BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if (block->state != LIMEFS_BLOCK_FREE && block->target->file == file &&
            at >= block->offset && at - block->offset < block->n)
            return block;
    }
    return NULL;
}

struct limefs_block *limefs_block_queued(struct limefs_ahead *ahead)
{
    struct limefs_block *first = NULL;
    for (int i = 0; i < LIMEFS_BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if (block->state == LIMEFS_BLOCK_QUEUED && (!first || block->order < first->order))
            first = block;
    }
    return first;
}

static struct limefs_block *free_block(struct limefs_ahead *ahead)
{
    for (int i = 0; i < LIMEFS_BLOCKS; i++)
        if (ahead->blocks[i].state == LIMEFS_BLOCK_FREE && ahead->blocks[i].readers == 0)
            return &ahead->blocks[i];
    return NULL;
}

static struct limefs_ahead_target *target_of(struct limefs_ahead *ahead,
                                             struct limefs_face *face, uint64_t number)
{
    struct limefs_ahead_target *target = NULL;
    for (int i = 0; i < LIMEFS_BLOCKS; i++) {
        if (is_of(&ahead->targets[i], face, number))
            return &ahead->targets[i];
        if (!ahead->targets[i].file)
            target = &ahead->targets[i];
    }
    if (!target || limefs_file_of_face(ahead->fs, face, number, &target->file) != 0)
        return NULL;
    target->open = limefs_file_is_open(ahead->fs, face, number);
    return target;
}

static void queue_for(struct limefs_ahead *ahead, struct limefs_ahead_target *target,
                      struct limefs_block *block, const struct limefs_block *what)
{
    target->blocks++;
    *block = *what;
    block->state = LIMEFS_BLOCK_QUEUED;
    block->target = target;
    block->order = ahead->orders++;
    pthread_cond_signal(&ahead->work);
}

bool limefs_block_queue(struct limefs_ahead *ahead, struct limefs_face *face, uint64_t number,
                        const struct limefs_block *what)
{
    struct limefs_block *block = free_block(ahead);
    struct limefs_ahead_target *target = block ? target_of(ahead, face, number) : NULL;
    if (!target)
        return false;
    queue_for(ahead, target, block, what);
    return true;
}

bool limefs_block_queue_stream(struct limefs_ahead *ahead, struct limefs_file *file,
                               const struct limefs_block *what)
{
    struct limefs_block *block = free_block(ahead);
    struct limefs_ahead_target *target = NULL;
    for (int i = 0; block && i < LIMEFS_BLOCKS; i++)
        if (ahead->targets[i].file == file || (!ahead->targets[i].file && !target))
            target = &ahead->targets[i];
    if (!target)
        return false;
    if (!target->file) /* else a thread may be reading it, without the lock */
        target->file = file;
    queue_for(ahead, target, block, what);
    return true;
}

bool limefs_block_stands(const struct limefs_file *file, const struct limefs_block *block)
{
    struct stat st;
    if (fstat(file->view->fd, &st) != 0)
        return false;
    struct limefile_identity now = limefile_identity_of(&st);
    return limefile_identity_equal(&now, &block->stamp);
}
