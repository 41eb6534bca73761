/* aheadstream.c - reads ahead of small requests that follow each other in a record */
#include "blocks.h"

enum {
    LEAST = 64 << 10,    /* who asks for less does not go on in sequence */
    REQUEST = 128 << 10, /* what the kernel asks for, if nobody has told it otherwise */
    APART = 1 << 20,     /* several threads take the requests: they come out of order */
    IN_TURN = 2,         /* so many requests before it begins */
    FIRST = 2 << 20,     /* how far ahead of a new reader; */
    WINDOW = 16 << 20,   /* of one who goes on */
};

static bool applies(const struct limefs *fs, const struct limefs_file *file, size_t n)
{
    return fs->ahead && fs->ahead->started && !fs->reads_far && !file->ours &&
           !file->view->guise && n >= LEAST && n < LIMEFILE_DIRECT_MIN;
}

/* False: some of it is being read. */
static bool drop_all(struct limefs_ahead *ahead, const struct limefs_file *file,
                     struct limefs_closing *closing)
{
    bool all = true;
    for (int i = 0; i < LIMEFS_BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if (block->state == LIMEFS_BLOCK_FREE || block->target->file != file)
            continue;
        if (block->state == LIMEFS_BLOCK_READING)
            all = false;
        else
            limefs_block_drop(ahead, block, closing);
    }
    return all;
}

/* What was queued is of no use: it begins anew behind `at`. */
static void begin_at(struct limefs_ahead *ahead, struct limefs_file *file, uint64_t at,
                     struct limefs_closing *closing)
{
    drop_all(ahead, file, closing);
    file->ahead.begin = file->ahead.end = at;
    file->ahead.window = FIRST;
}

static void note(struct limefs_ahead *ahead, struct limefs_file *file, size_t n, uint64_t at,
                 struct limefs_closing *closing)
{
    struct limefs_ahead_stream *stream = &file->ahead;
    uint64_t distance = at > stream->next ? at - stream->next : stream->next - at;
    if (stream->length == 0 || distance > APART) {
        stream->length = 0;
        stream->next = at + n;
        begin_at(ahead, file, at, closing);
    }
    if (stream->next < at + n)
        stream->next = at + n;
    stream->length++;
}

/* The kernel need not read the same into its page cache. */
static void cover(struct limefs_file *file)
{
    limefs_lock(&file->lock);
    limefs_stream_cover(&file->stream, file->ahead.end - file->record.data_offset);
    limefs_unlock(&file->lock);
}

/* From there on, unless it was queued. What is in memory is read from there. `part`: the first
 * request of a block is shorter by so much. */
static void queue_window(struct limefs_ahead *ahead, struct limefs_file *file, uint64_t from,
                         size_t part)
{
    struct limefs_ahead_stream *stream = &file->ahead;
    uint64_t end = file->record.data_offset + file->record.bytes;
    if (stream->end < from)
        stream->begin = stream->end = from;
    while (stream->end < end && stream->end < from + stream->window) {
        uint64_t left = end - stream->end;
        struct limefs_block block = {.offset = stream->end, .n = LIMEFS_BLOCK_BYTES - part};
        if (left < block.n)
            block.n = (size_t)left;
        part = 0;
        if (limefile_is_cached(file->view->fd, block.offset, block.n) ||
            !limefs_local_has_direct(file) || !limefs_block_queue_stream(ahead, file, &block))
            return;
        stream->end += block.n;
        cover(file);
    }
}

/* A block that has those bytes, once it was read; or NULL. */
static struct limefs_block *take(struct limefs_ahead *ahead, struct limefs_file *file, size_t n,
                                 uint64_t at, struct limefs_closing *closing)
{
    struct limefs_ahead_stream *stream = &file->ahead;
    struct limefs_block *block;
    while ((block = limefs_block_of_stream(ahead, file, at)) != NULL &&
           block->state != LIMEFS_BLOCK_KEPT)
        limefs_wait(&ahead->read, &ahead->lock);
    if (!block || n > block->offset + block->n - at || !limefs_block_stands(file, block)) {
        if (at >= stream->begin && at < stream->end)
            begin_at(ahead, file, stream->next, closing);
        return NULL;
    }
    block->readers++;
    block->taken += n;
    if (block->taken >= block->n) {
        limefs_block_drop(ahead, block, closing);
        stream->window = stream->window < WINDOW ? 2 * stream->window : WINDOW;
    }
    return block;
}

bool limefs_ahead_stream(struct limefs *fs, struct limefs_file *file, size_t n, uint64_t at,
                         struct limefs_answer *answer)
{
    struct limefs_ahead *ahead = fs->ahead;
    struct limefs_closing closing = {.count = 0};
    if (!applies(fs, file, n))
        return false;
    limefs_lock(&ahead->lock);
    note(ahead, file, n, at, &closing);
    if (file->ahead.length == 1 && at == file->record.data_offset)
        queue_window(ahead, file, at, -n % REQUEST);
    else if (file->ahead.length >= IN_TURN)
        queue_window(ahead, file, file->ahead.next, 0);
    struct limefs_block *block = take(ahead, file, n, at, &closing);
    if (block) {
        answer->iov[0] = (struct iovec){(char *)block->bytes + (at - block->offset), n};
        answer->count = 1;
        answer->block = block;
    }
    limefs_blocks_unlock(ahead, &closing);
    return block != NULL;
}

void limefs_ahead_closing(struct limefs *fs, struct limefs_file *file)
{
    struct limefs_ahead *ahead = fs->ahead;
    struct limefs_closing closing = {.count = 0};
    if (!ahead || file->ours || file->ahead.length == 0)
        return;
    limefs_lock(&ahead->lock);
    while (!drop_all(ahead, file, &closing))
        limefs_wait(&ahead->read, &ahead->lock);
    limefs_blocks_unlock(ahead, &closing);
}
