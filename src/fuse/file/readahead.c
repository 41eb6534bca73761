/* readahead.c - threads that read blocks of containers ahead */
#define _GNU_SOURCE
#include "readahead.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    THREADS = 4,
    BLOCKS = 24,
    BLOCK_BYTES = 1 << 20,
    STRIDE = BLOCK_BYTES + LIMEFILE_DIRECT_ALIGN, /* direct reads end at whole pages */
    MEMORY_BYTES = BLOCKS * STRIDE,
    REQUEST_MIN = 64 << 10, /* bytes of the smallest request that is answered from blocks */
    RUN_MIN = 256 << 10,    /* bytes that must be read in sequence before blocks are read */
    IDLE_SECONDS = 8,       /* until the memory of unused blocks is freed */
};

struct limefs_readahead {
    struct limefs *fs;
    pthread_t threads[THREADS];
    unsigned started;
    struct limefs_lock lock;     /* guards the fields below */
    pthread_cond_t block_queued; /* a block was queued, or the threads must end */
    pthread_cond_t block_loaded; /* a block was read */
    bool stopping;
    struct limefs_prefetch forward; /* its slots are the blocks */
    char *memory;                   /* of all blocks; NULL while no file is read ahead */
    struct {
        struct limefs_file *file;       /* for which the block is being read, or NULL */
        struct limefile_identity stamp; /* of the container before the block was read */
    } block[BLOCKS];
    int queue[BLOCKS]; /* blocks that no thread has begun to read, oldest first */
    int queue_length;
};

/* ---- the threads ---- */

/* Reads a block. Called without the lock. Returns false on error, and if the container has just
 * changed: a second change in the same tick of the clock would leave its times the same. */
static bool read_block(struct limefs_readahead *ahead, int number)
{
    struct limefs_file *file = ahead->block[number].file;
    const struct limefs_extent *block = &ahead->forward.slot[number];
    char *to = ahead->memory + (size_t)number * STRIDE;
    size_t n = (size_t)(block->to - block->from);
    const char *bytes;
    struct timespec now;
    struct stat st;
    clock_gettime(CLOCK_REALTIME, &now);
    if (fstat(file->snap->fd, &st) != 0)
        return false;
    ahead->block[number].stamp = limefile_identify(&st);
    if (!limefs_identity_is_reliable(&ahead->block[number].stamp, &now, false))
        return false;
    return limefs_local_read(file, to, n, block->from, &bytes) == (ssize_t)n;
}

/* Removes the first block of the queue, which is not empty. Called with the lock held. */
static int pop_block(struct limefs_readahead *ahead)
{
    int number = ahead->queue[0];
    ahead->queue_length--;
    for (int i = 0; i < ahead->queue_length; i++)
        ahead->queue[i] = ahead->queue[i + 1];
    return number;
}

/* Unmaps the memory unless a block is held, loading or recently used. Lock held. */
static void release_idle_memory(struct limefs_readahead *ahead)
{
    double before = limefs_clock_seconds() - IDLE_SECONDS;
    for (int i = 0; i < BLOCKS; i++) {
        const struct limefs_extent *block = &ahead->forward.slot[i];
        if (block->holds || block->state == LIMEFS_EXTENT_LOADING || block->last_used > before)
            return;
    }
    limefs_prefetch_reset(&ahead->forward);
    munmap(ahead->memory, MEMORY_BYTES);
    ahead->memory = NULL;
}

/* Waits until a block is queued; may time out, and then frees idle memory. Lock held. */
static void wait_for_queue(struct limefs_readahead *ahead)
{
    struct timespec until = limefs_clock_timespec(limefs_clock_seconds() + IDLE_SECONDS);
    if (!ahead->memory)
        limefs_cond_wait(&ahead->block_queued, &ahead->lock);
    else if (!limefs_cond_wait_until(&ahead->block_queued, &ahead->lock, &until) &&
             ahead->memory)
        release_idle_memory(ahead);
}

static void *load_blocks(void *data)
{
    struct limefs_readahead *ahead = data;
    limefs_lock(&ahead->lock);
    while (!ahead->stopping) {
        if (ahead->queue_length == 0) {
            wait_for_queue(ahead);
            continue;
        }
        int number = pop_block(ahead);
        bool is_read = false;
        if (!ahead->forward.slot[number].dropped) {
            limefs_unlock(&ahead->lock);
            is_read = read_block(ahead, number);
            limefs_lock(&ahead->lock);
        }
        limefs_prefetch_end_load(&ahead->forward, number, is_read, limefs_clock_seconds());
        ahead->block[number].file = NULL;
        pthread_cond_broadcast(&ahead->block_loaded);
    }
    limefs_unlock(&ahead->lock);
    return NULL;
}

/* ---- requests ---- */

/* Allocates the blocks. Huge pages save time, as the kernel pins each page of a reply. */
static bool ensure_memory(struct limefs_readahead *ahead)
{
    if (ahead->memory)
        return true;
    void *memory =
        mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    madvise(memory, MEMORY_BYTES, MADV_HUGEPAGE);
    ahead->memory = memory;
    return true;
}

/* True if the page cache has the whole block, or the kernel cannot report it. If the kernel's
 * own slower read-ahead has cached only a part of the block, it is still worth reading. */
static bool is_cached(const struct limefs_file *file, uint64_t from, uint64_t to)
{
    int64_t cached = limefile_cached_bytes(file->snap->fd, from, (size_t)(to - from));
    return cached < 0 || (uint64_t)cached >= to - from;
}

/* Queues blocks for the threads, except cached ones. Called with the lock held; releases it for
 * calls on the file. The blocks stay in state LOADING, which also keeps their memory. */
static void queue_blocks(struct limefs_readahead *ahead, struct limefs_file *file,
                         const int *blocks, int count)
{
    for (int i = 0; i < count; i++) {
        const struct limefs_extent block = ahead->forward.slot[blocks[i]];
        bool is_useful = ensure_memory(ahead);
        if (is_useful) {
            limefs_unlock(&ahead->lock);
            is_useful = !is_cached(file, block.from, block.to);
            limefs_lock(&ahead->lock);
        }
        if (!is_useful) {
            limefs_prefetch_end_load(&ahead->forward, blocks[i], false, block.last_used);
            pthread_cond_broadcast(&ahead->block_loaded);
            continue;
        }
        ahead->block[blocks[i]].file = file;
        ahead->queue[ahead->queue_length++] = blocks[i];
        pthread_cond_signal(&ahead->block_queued);
    }
}

/* Waits until the blocks with these bytes are read. Returns their number; 0: not in blocks. */
static int wait_for_blocks(struct limefs_readahead *ahead, const struct limefs_read_req *want,
                           int blocks[LIMEFS_CHUNKS_MAX])
{
    bool ready, has_waited = false;
    int count;
    while ((count = limefs_prefetch_find(&ahead->forward, want, blocks, &ready)) > 0 &&
           !ready) {
        if (!has_waited)
            limefs_prefetch_note_wait(&ahead->forward, want);
        has_waited = true;
        limefs_cond_wait(&ahead->block_loaded, &ahead->lock);
    }
    return count;
}

/* True if the container is still as it was before these blocks were read. The caller holds the
 * blocks, but not the lock. */
static bool are_current(const struct limefs_readahead *ahead, const struct limefs_file *file,
                        const int *blocks, int count)
{
    struct stat st;
    if (fstat(file->snap->fd, &st) != 0)
        return false;
    struct limefile_identity now = limefile_identify(&st);
    for (int i = 0; i < count; i++)
        if (!limefile_identity_equal(&now, &ahead->block[blocks[i]].stamp))
            return false;
    return true;
}

/* True if a read of n bytes may use blocks. The kernel prefetches no next file of an export. */
static bool is_eligible(const struct limefs *fs, const struct limefs_file *file, size_t n)
{
    bool is_part =
        file->export && limefile_export_entry_count(limefs_export_files(file->export)) > 1;
    return n >= REQUEST_MIN &&
           (is_part || (!fs->has_large_readahead && n < LIMEFILE_DIRECT_MIN));
}

int limefs_readahead_read(struct limefs *fs, struct limefs_file *file,
                          const struct limefs_read_range *range, struct limefs_chunks *pieces)
{
    struct limefs_readahead *ahead = fs->readahead;
    int loads[LIMEFS_SLOTS_MAX], blocks[LIMEFS_CHUNKS_MAX];
    bool is_sequential;
    pieces->count = 0;
    if (!ahead || !is_eligible(fs, file, range->n))
        return 0;
    const struct limefs_read_req want = limefs_read_req_for(range);
    limefs_lock(&ahead->lock);
    int count = limefs_prefetch_plan(&ahead->forward, &want, BLOCKS, loads, &is_sequential);
    queue_blocks(ahead, file, loads, count);
    count = wait_for_blocks(ahead, &want, blocks);
    if (count)
        limefs_prefetch_hold(&ahead->forward, &want, blocks, count, ahead->memory, STRIDE,
                             pieces);
    limefs_unlock(&ahead->lock);
    if (count && !are_current(ahead, file, blocks, count)) {
        limefs_lock(&ahead->lock);
        limefs_prefetch_release(&ahead->forward, pieces);
        limefs_prefetch_invalidate(&ahead->forward, want.snap_id);
        limefs_unlock(&ahead->lock);
        pieces->count = 0;
    }
    return pieces->count;
}

void limefs_readahead_release(struct limefs *fs, struct limefs_chunks *pieces)
{
    if (pieces->count == 0)
        return;
    limefs_lock(&fs->readahead->lock);
    limefs_prefetch_release(&fs->readahead->forward, pieces);
    limefs_unlock(&fs->readahead->lock);
}

/* ---- start and stop ---- */

void limefs_readahead_wait(struct limefs *fs, const struct limefs_file *file)
{
    struct limefs_readahead *ahead = fs->readahead;
    if (!ahead || !file->snap)
        return;
    limefs_lock(&ahead->lock);
    for (int i = 0; i < BLOCKS; i++)
        while (ahead->block[i].file == file)
            limefs_cond_wait(&ahead->block_loaded, &ahead->lock);
    limefs_unlock(&ahead->lock);
}

void limefs_readahead_start(struct limefs *fs)
{
    struct limefs_readahead *ahead =
        fs->options.direct_io || fs->job ? NULL : calloc(1, sizeof *ahead);
    if (!ahead)
        return;
    ahead->fs = fs;
    limefs_prefetch_init(&ahead->forward, BLOCKS * (uint64_t)BLOCK_BYTES, BLOCK_BYTES, RUN_MIN);
    limefs_lock_init(&ahead->lock, LIMEFS_LOCK_READAHEAD);
    limefs_cond_init(&ahead->block_queued);
    limefs_cond_init(&ahead->block_loaded);
    while (ahead->started < THREADS &&
           limefs_thread_start(&ahead->threads[ahead->started], NULL, load_blocks, ahead) == 0)
        ahead->started++;
    fs->readahead = ahead;
    if (ahead->started == 0)
        limefs_readahead_stop(fs);
}

void limefs_readahead_stop(struct limefs *fs)
{
    struct limefs_readahead *ahead = fs->readahead;
    if (!ahead)
        return;
    fs->readahead = NULL;
    limefs_lock(&ahead->lock);
    ahead->stopping = true;
    pthread_cond_broadcast(&ahead->block_queued);
    limefs_unlock(&ahead->lock);
    for (unsigned i = 0; i < ahead->started; i++)
        pthread_join(ahead->threads[i], NULL);
    if (ahead->memory)
        munmap(ahead->memory, MEMORY_BYTES);
    limefs_lock_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->block_queued);
    pthread_cond_destroy(&ahead->block_loaded);
    free(ahead);
}
