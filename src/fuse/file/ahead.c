/* ahead.c - who reads the files of a face in turn, and what comes next */
#include "blocks.h"

enum {
    WINDOW = 16 << 20, /* how far ahead of the reader */
    IN_TURN = 2,       /* so many files are opened one after another before it begins */

    /* The first request for a file is as long as the kernel reads ahead at first, which is more
     * than the reader takes at once: this much for 256 KiB. Of a file that is read around the
     * page cache it is what the reader takes. */
    LARGE = 1 << 20,
    LARGE_AROUND = 256 << 10,
};

/* The data of the record that a file consists of; bytes 0: it does not, or there is none. */
static struct limefile_face_piece stored_data(const struct limefile_face *files,
                                              uint64_t number)
{
    struct limefile_face_entry entry;
    struct limefile_face_piece piece = {.bytes = 0};
    if (number >= limefile_face_entries(files))
        return piece;
    limefile_face_entry(files, number, &entry);
    if (!entry.directory)
        limefile_face_piece(files, number, 0, &piece);
    if (piece.what != LIMEFILE_FACE_STORED || piece.bytes != entry.bytes)
        piece.bytes = 0;
    return piece;
}

/* What comes next is in memory: no disk waits for the reader, and threads that read ahead only
 * take the processors from it. */
static bool is_cached(const struct limefs_file *file, uint64_t at)
{
    return file->view->guise ||
           limefile_is_cached(file->view->fd, file->record.data_offset + at,
                              LIMEFS_BLOCK_BYTES);
}

/* All that begins within the window from the reader's place on, and was not asked for yet. The
 * files follow each other in the record, too, whose offsets tell how far ahead that is. */
static void queue_window(struct limefs_ahead *ahead, struct limefs_ahead_run *run,
                         const struct limefs_file *file, uint64_t offset)
{
    const struct limefile_face *files = limefs_face_files(file->face);
    uint64_t reader = stored_data(files, file->number).at + offset;
    struct limefile_face_piece next = stored_data(files, run->next);
    if (next.bytes == 0 || next.at + run->next_offset - reader >= WINDOW ||
        is_cached(file, next.at + run->next_offset))
        return;
    while (next.bytes > 0 && next.at + run->next_offset - reader < WINDOW) {
        uint64_t left = next.bytes - run->next_offset;
        struct limefs_block block = {.offset = run->next_offset};
        block.n = left < LIMEFS_BLOCK_BYTES ? (size_t)left : LIMEFS_BLOCK_BYTES;
        if (!limefs_block_queue(ahead, file->face, run->next, &block))
            return;
        run->next_offset += block.n;
        if (run->next_offset == next.bytes) {
            next = stored_data(files, ++run->next);
            run->next_offset = 0;
        }
    }
}

/* The kernel reads ahead in a file itself, once it asks for it. */
static void leave_to_kernel(struct limefs_ahead_run *run, uint64_t number)
{
    if (run->next > number)
        return;
    run->next = number + 1;
    run->next_offset = 0;
}

static struct limefs_ahead_run *run_of(struct limefs_ahead *ahead,
                                       const struct limefs_file *file)
{
    uint64_t face = limefs_face_inode(file->face, 0);
    for (int i = 0; i < LIMEFS_AHEAD_RUNS; i++)
        if (ahead->runs[i].face == face)
            return &ahead->runs[i];
    struct limefs_ahead_run *run = &ahead->runs[ahead->next_run++ % LIMEFS_AHEAD_RUNS];
    *run = (struct limefs_ahead_run){.face = face, .number = UINT64_MAX - 1};
    return run;
}

/* What its reader has passed, or will not come to. */
static void drop_others(struct limefs_ahead *ahead, const struct limefs_file *file,
                        bool in_turn, struct limefs_closing *closing)
{
    for (int i = 0; i < LIMEFS_BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if ((block->state == LIMEFS_BLOCK_QUEUED || block->state == LIMEFS_BLOCK_KEPT) &&
            block->target->file->face == file->face &&
            (block->target->file->number < file->number ||
             (!in_turn && block->target->file->number > file->number)))
            limefs_block_drop(ahead, block, closing);
    }
}

/* Nothing more is given to the kernel of a file that it is about to ask for. */
static void stop_giving(struct limefs_ahead *ahead, const struct limefs_file *file)
{
    bool giving;
    do {
        giving = false;
        for (int i = 0; i < LIMEFS_BLOCKS; i++) {
            struct limefs_block *block = &ahead->blocks[i];
            if (block->state == LIMEFS_BLOCK_FREE || block->target->file->face != file->face ||
                block->target->file->number != file->number)
                continue;
            block->target->open = true;
            giving = giving || block->state == LIMEFS_BLOCK_GIVING;
        }
        if (giving)
            limefs_wait(&ahead->read, &ahead->lock);
    } while (giving);
}

/* ---- around the mount's page cache ---- */

static bool is_in_memory(const struct limefs_file *file, uint64_t at, uint64_t bytes)
{
    return !file->view->guise &&
           limefile_cached_bytes(file->view->fd, file->record.data_offset + at, bytes) >=
               (int64_t)bytes; /* whole pages are counted */
}

/* Whoever opens a file again may do so many times: then the kernel keeps it. */
static bool goes_around(const struct limefs *fs, struct limefs_ahead_run *run,
                        const struct limefs_file *file)
{
    const struct limefile_face_piece data =
        stored_data(limefs_face_files(file->face), file->number);
    if (!fs->maps_around || run->small || run->large < IN_TURN ||
        (file->number >= run->first && file->number < run->end) ||
        !is_in_memory(file, data.at, data.bytes))
        return false;
    if (file->number != run->end)
        run->first = file->number;
    run->end = file->number + 1;
    return true;
}

/* The first request for a file tells how much its reader takes at once. */
static void note_first(struct limefs_ahead_run *run, const struct limefs_file *file, size_t n)
{
    run->large = n >= (file->around ? LARGE_AROUND : LARGE) ? run->large + 1 : 0;
    run->small = run->small || (file->around && run->large == 0);
}

/* One of several files, and all of it data of the record. */
static bool applies(const struct limefs *fs, const struct limefs_file *file, uint64_t *bytes)
{
    if (!fs->ahead || limefile_face_entries(limefs_face_files(file->face)) == 1)
        return false;
    *bytes = stored_data(limefs_face_files(file->face), file->number).bytes;
    return *bytes > 0;
}

void limefs_ahead_opened(struct limefs *fs, struct limefs_file *file)
{
    struct limefs_ahead *ahead = fs->ahead;
    struct limefs_closing closing = {.count = 0};
    uint64_t bytes;
    if (!applies(fs, file, &bytes))
        return;
    limefs_lock(&ahead->lock);
    stop_giving(ahead, file);
    struct limefs_ahead_run *run = run_of(ahead, file);
    bool in_turn = file->number == run->number + 1;
    if (in_turn)
        run->length++;
    else if (file->number != run->number)
        *run =
            (struct limefs_ahead_run){.face = run->face, .first = run->first, .end = run->end};
    run->number = file->number;
    file->around = in_turn && goes_around(fs, run, file);
    drop_others(ahead, file, in_turn, &closing);
    if (run->next < file->number || run->next_offset == 0)
        leave_to_kernel(run, file->number);
    if (run->live && run->length >= IN_TURN - 1)
        queue_window(ahead, run, file, 0);
    limefs_blocks_unlock(ahead, &closing);
}

/* ---- requests ---- */

/* A block that was read and has those bytes; NULL: the request is to read them itself. */
static struct limefs_block *take_block(struct limefs_ahead *ahead,
                                       const struct limefs_file *file, size_t n,
                                       uint64_t offset, struct limefs_closing *closing)
{
    struct limefs_block *block;
    while ((block = limefs_block_find(ahead, file, offset)) != NULL &&
           block->state == LIMEFS_BLOCK_READING) {
        limefs_wait(&ahead->read, &ahead->lock);
    }
    if (!block)
        return NULL;
    uint64_t end = block->offset + block->n;
    bool has = block->state != LIMEFS_BLOCK_QUEUED && n <= end - offset &&
               limefs_block_stands(file, block);
    if (has)
        block->readers++;
    if (block->state != LIMEFS_BLOCK_GIVING && (!has || offset + n == end))
        limefs_block_drop(ahead, block, closing);
    return has ? block : NULL;
}

bool limefs_ahead_read(struct limefs *fs, const struct limefs_file *file, size_t *n,
                       uint64_t offset, struct limefs_answer *answer)
{
    struct limefs_ahead *ahead = fs->ahead;
    struct limefs_closing closing = {.count = 0};
    uint64_t bytes;
    if (!applies(fs, file, &bytes) || offset >= bytes)
        return false;
    size_t want = bytes - offset < *n ? (size_t)(bytes - offset) : *n;
    limefs_lock(&ahead->lock);
    struct limefs_block *block = take_block(ahead, file, want, offset, &closing);
    struct limefs_ahead_run *run = run_of(ahead, file); /* after it, which may have waited */
    if (run->number == file->number) {
        run->live = true;
        if (offset == 0)
            note_first(run, file, *n);
        leave_to_kernel(run, file->number);
        if (run->length >= IN_TURN - 1)
            queue_window(ahead, run, file, offset);
    }
    if (block) {
        answer->iov[0] = (struct iovec){(char *)block->bytes + (offset - block->offset), want};
        *n = want;
        answer->count = 1;
        answer->block = block;
    }
    limefs_blocks_unlock(ahead, &closing);
    return block != NULL;
}

void limefs_ahead_release(struct limefs *fs, struct limefs_block *block)
{
    limefs_lock(&fs->ahead->lock);
    if (--block->readers == 0 && block->state == LIMEFS_BLOCK_FREE)
        limefs_block_leave(fs->ahead, block);
    limefs_unlock(&fs->ahead->lock);
}
