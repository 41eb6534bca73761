/*
 * ahead.c - reads ahead from one file of a face to the next
 *
 * A block is QUEUED, READING, and then READ. A thread gives it to the kernel (GIVING), unless a
 * request has come for that file, whose reader has caught up; or the kernel does not know the
 * file yet: then it is KEPT for requests, for a short while.
 */
#define _GNU_SOURCE
#include "ahead.h"
#include "clock.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    BLOCK = 1 << 20,
    ROOM = BLOCK + 2 * LIMEFILE_DIRECT_ALIGN,
    BLOCKS = 24,
    WINDOW = 16 << 20, /* how far ahead of the reader */
    THREADS = 4,
    RUNS = 4,
    IN_TURN = 2, /* so many files are opened one after another before it begins */
    KEEP_SECONDS = 2,
};

enum state {
    FREE,
    QUEUED,
    READING,
    GIVING,
    KEPT,
};

/* A file that blocks are of. */
struct target {
    struct limefs_file *file; /* our own; NULL: free */
    unsigned blocks;
    bool wanted;  /* requests come for it: its reader is there */
    bool unknown; /* to the kernel */
};

struct limefs_block {
    enum state state;
    struct target *target; /* unless it is FREE */
    uint64_t offset, order;
    size_t n;
    const char *bytes;         /* in its part of the room */
    struct limefs_stamp stamp; /* of the container before it was read */
    unsigned readers;          /* who answer from it, also after it was dropped */
    double since;              /* it is KEPT */
};

/* Files of a face that are opened one after another. */
struct run {
    uint64_t face;   /* the number by which the kernel knows it; 0: none */
    uint64_t number; /* of the file that was opened last */
    unsigned length;
    bool live;                  /* requests came: the kernel has not got all of it */
    uint64_t next, next_offset; /* not asked for yet */
};

struct limefs_ahead {
    struct limefs *fs;
    pthread_t threads[THREADS];
    unsigned started, running;
    struct limefs_lock lock;
    pthread_cond_t work, read; /* something is queued, or it ends; a block was read, or dropped */
    bool ending;
    uint64_t orders;
    unsigned next_run;
    char *room; /* ROOM for each block; NULL: nothing was read yet */
    struct limefs_block blocks[BLOCKS];
    struct target targets[BLOCKS];
    struct run runs[RUNS];
};

/* Files that are to be closed once the lock is given back. */
struct closing {
    struct limefs_file *files[BLOCKS];
    unsigned count;
};

static void unlock(struct limefs_ahead *ahead, const struct closing *closing)
{
    limefs_unlock(&ahead->lock);
    for (unsigned i = 0; i < closing->count; i++)
        limefs_file_close(ahead->fs, closing->files[i]);
}

/* ---- blocks; with the lock held ---- */

static void drop(struct limefs_ahead *ahead, struct limefs_block *block, struct closing *closing)
{
    struct target *target = block->target;
    block->state = FREE;
    block->target = NULL;
    if (--target->blocks == 0) {
        closing->files[closing->count++] = target->file;
        *target = (struct target){0};
    }
    pthread_cond_broadcast(&ahead->read);
}

static bool is_of(const struct target *target, const struct limefs_face *face, uint64_t number)
{
    return target->file && target->file->face == face && target->file->number == number;
}

static struct limefs_block *find_block(struct limefs_ahead *ahead,
                                       const struct limefs_file *file, uint64_t offset)
{
    for (int i = 0; i < BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if (block->state != FREE && is_of(block->target, file->face, file->number) &&
            offset >= block->offset && offset - block->offset < block->n)
            return block;
    }
    return NULL;
}

static struct limefs_block *first_queued(struct limefs_ahead *ahead)
{
    struct limefs_block *first = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if (block->state == QUEUED && (!first || block->order < first->order))
            first = block;
    }
    return first;
}

static struct limefs_block *free_block(struct limefs_ahead *ahead)
{
    for (int i = 0; i < BLOCKS; i++)
        if (ahead->blocks[i].state == FREE && ahead->blocks[i].readers == 0)
            return &ahead->blocks[i];
    return NULL;
}

static struct target *target_of(struct limefs_ahead *ahead, struct limefs_face *face,
                                uint64_t number)
{
    struct target *target = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        if (is_of(&ahead->targets[i], face, number))
            return &ahead->targets[i];
        if (!ahead->targets[i].file)
            target = &ahead->targets[i];
    }
    if (!target || limefs_file_of_face(ahead->fs, face, number, &target->file) != 0)
        return NULL;
    return target;
}

/* ---- what to read ---- */

/* The length of a file that is all data of the record, or 0. */
static uint64_t stored_bytes(const struct limefile_face *files, uint64_t number)
{
    struct limefile_face_entry entry;
    struct limefile_face_piece piece;
    if (number >= limefile_face_entries(files))
        return 0;
    limefile_face_entry(files, number, &entry);
    if (entry.directory || entry.bytes == 0)
        return 0;
    limefile_face_piece(files, number, 0, &piece);
    return piece.what == LIMEFILE_FACE_STORED && piece.bytes == entry.bytes ? entry.bytes : 0;
}

/* False: no more now. */
static bool queue_block(struct limefs_ahead *ahead, struct run *run, struct limefs_face *face,
                        size_t n)
{
    struct limefs_block *block = free_block(ahead);
    struct target *target = block ? target_of(ahead, face, run->next) : NULL;
    if (!target)
        return false;
    target->blocks++;
    *block = (struct limefs_block){.state = QUEUED,
                                   .target = target,
                                   .offset = run->next_offset,
                                   .order = ahead->orders++,
                                   .n = n};
    pthread_cond_signal(&ahead->work);
    return true;
}

/* All that begins within the window from the reader's place on, and was not asked for yet. */
static void queue_window(struct limefs_ahead *ahead, struct run *run,
                         const struct limefs_file *file, uint64_t offset)
{
    const struct limefile_face *files = limefs_face_files(file->face);
    uint64_t bytes = stored_bytes(files, file->number), place = bytes - offset;
    if (run->next <= file->number) {
        run->next = file->number + 1;
        run->next_offset = 0;
    }
    for (uint64_t i = file->number + 1; i < run->next && place < WINDOW; i++)
        place += stored_bytes(files, i);
    place += run->next_offset;
    while (place < WINDOW && (bytes = stored_bytes(files, run->next)) > 0) {
        uint64_t left = bytes - run->next_offset;
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        if (!queue_block(ahead, run, file->face, n))
            return;
        place += n;
        run->next_offset += n;
        if (run->next_offset == bytes) {
            run->next++;
            run->next_offset = 0;
        }
    }
}

static struct run *run_of(struct limefs_ahead *ahead, const struct limefs_file *file)
{
    uint64_t face = limefs_face_inode(file->face, 0);
    for (int i = 0; i < RUNS; i++)
        if (ahead->runs[i].face == face)
            return &ahead->runs[i];
    struct run *run = &ahead->runs[ahead->next_run++ % RUNS];
    *run = (struct run){.face = face, .number = UINT64_MAX - 1};
    return run;
}

/* What its reader has passed, or will not come to. */
static void drop_others(struct limefs_ahead *ahead, const struct limefs_file *file,
                        bool in_turn, struct closing *closing)
{
    for (int i = 0; i < BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if ((block->state == QUEUED || block->state == KEPT) &&
            block->target->file->face == file->face &&
            (block->target->file->number < file->number ||
             (!in_turn && block->target->file->number > file->number)))
            drop(ahead, block, closing);
    }
}

/* One of several files, and all of it data of the record. */
static bool applies(const struct limefs *fs, const struct limefs_file *file, uint64_t *bytes)
{
    if (!fs->ahead || limefile_face_entries(limefs_face_files(file->face)) == 1)
        return false;
    *bytes = stored_bytes(limefs_face_files(file->face), file->number);
    return *bytes > 0;
}

void limefs_ahead_opened(struct limefs *fs, const struct limefs_file *file)
{
    struct limefs_ahead *ahead = fs->ahead;
    struct closing closing = {.count = 0};
    uint64_t bytes;
    if (!applies(fs, file, &bytes))
        return;
    limefs_lock(&ahead->lock);
    struct run *run = run_of(ahead, file);
    bool in_turn = file->number == run->number + 1;
    if (in_turn)
        run->length++;
    else if (file->number != run->number)
        *run = (struct run){.face = run->face};
    run->number = file->number;
    drop_others(ahead, file, in_turn, &closing);
    if (run->live && run->length >= IN_TURN - 1)
        queue_window(ahead, run, file, 0);
    unlock(ahead, &closing);
}

/* ---- requests ---- */

static bool is_as_it_was(const struct limefs_file *file, const struct limefs_stamp *stamp)
{
    struct stat st;
    if (fstat(file->view->fd, &st) != 0)
        return false;
    struct limefs_stamp now = limefs_stamp_of(&st);
    return limefs_stamp_same_data(&now, stamp);
}

/* A block that was read and has those bytes; NULL: the request is to read them itself. */
static struct limefs_block *take_block(struct limefs_ahead *ahead,
                                       const struct limefs_file *file, size_t n,
                                       uint64_t offset, struct closing *closing)
{
    struct limefs_block *block;
    while ((block = find_block(ahead, file, offset)) != NULL && block->state == READING) {
        block->target->wanted = true;
        limefs_wait(&ahead->read, &ahead->lock);
    }
    if (!block)
        return NULL;
    block->target->wanted = true;
    uint64_t end = block->offset + block->n;
    bool has = block->state != QUEUED && n <= end - offset && is_as_it_was(file, &block->stamp);
    if (has)
        block->readers++;
    if (block->state != GIVING && (!has || offset + n == end))
        drop(ahead, block, closing);
    return has ? block : NULL;
}

bool limefs_ahead_read(struct limefs *fs, const struct limefs_file *file, size_t *n,
                       uint64_t offset, struct limefs_answer *answer)
{
    struct limefs_ahead *ahead = fs->ahead;
    struct closing closing = {.count = 0};
    uint64_t bytes;
    if (!applies(fs, file, &bytes) || offset >= bytes)
        return false;
    size_t want = bytes - offset < *n ? (size_t)(bytes - offset) : *n;
    limefs_lock(&ahead->lock);
    struct run *run = run_of(ahead, file);
    struct limefs_block *block = take_block(ahead, file, want, offset, &closing);
    if (run->number == file->number) {
        run->live = true;
        if (run->length >= IN_TURN - 1)
            queue_window(ahead, run, file, offset);
    }
    if (block) {
        answer->iov[0] =
            (struct iovec){(char *)block->bytes + (offset - block->offset), want};
        *n = want;
        answer->count = 1;
        answer->block = block;
    }
    unlock(ahead, &closing);
    return block != NULL;
}

void limefs_ahead_release(struct limefs *fs, struct limefs_block *block)
{
    limefs_lock(&fs->ahead->lock);
    block->readers--;
    limefs_unlock(&fs->ahead->lock);
}

/* ---- the threads ---- */

static bool read_block(struct limefs_ahead *ahead, struct limefs_block *block)
{
    struct limefs_file *file = block->target->file;
    struct limefs_answer answer = {0};
    struct stat st;
    char *buf = ahead->room + (size_t)(block - ahead->blocks) * ROOM;
    if (fstat(file->view->fd, &st) != 0)
        return false;
    block->stamp = limefs_stamp_of(&st);
    ssize_t got = limefs_file_read_face(ahead->fs, file, buf, block->n, block->offset, &answer);
    block->bytes = answer.iov[0].iov_base;
    return got == (ssize_t)block->n && answer.count == 1;
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
    if (!err && !is_as_it_was(file, &block->stamp))
        fuse_lowlevel_notify_inval_inode(session, ino, (off_t)block->offset, (off_t)block->n);
    return err;
}

/* With the lock held, which is let go meanwhile. */
static void serve_block(struct limefs_ahead *ahead, struct limefs_block *block,
                        struct closing *closing)
{
    struct target *target = block->target; /* stays, as it has a block */
    block->state = READING;
    limefs_unlock(&ahead->lock);
    bool whole = read_block(ahead, block);
    limefs_lock(&ahead->lock);
    pthread_cond_broadcast(&ahead->read);
    if (!whole) {
        drop(ahead, block, closing);
        return;
    }
    if (!target->wanted && !target->unknown && !ahead->ending) {
        block->state = GIVING;
        limefs_unlock(&ahead->lock);
        int err = give_block(ahead, block);
        limefs_lock(&ahead->lock);
        if (err != -ENOENT) {
            drop(ahead, block, closing);
            return;
        }
        target->unknown = true;
    }
    block->state = KEPT;
    block->since = limefs_seconds();
}

/* Blocks that nobody came for. */
static void drop_old(struct limefs_ahead *ahead, double before, struct closing *closing)
{
    bool used = false;
    for (int i = 0; i < BLOCKS; i++) {
        struct limefs_block *block = &ahead->blocks[i];
        if (block->state == KEPT && block->since <= before)
            drop(ahead, block, closing);
        used = used || block->state != FREE || block->readers > 0;
    }
    if (!used && ahead->room) {
        munmap(ahead->room, (size_t)BLOCKS * ROOM);
        ahead->room = NULL;
    }
}

/* Large pages: the kernel pins what it copies from page by page. */
static bool has_room(struct limefs_ahead *ahead)
{
    if (ahead->room)
        return true;
    void *room = mmap(NULL, (size_t)BLOCKS * ROOM, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return false;
    madvise(room, (size_t)BLOCKS * ROOM, MADV_HUGEPAGE);
    ahead->room = room;
    return true;
}

static void *work(void *data)
{
    struct limefs_ahead *ahead = data;
    limefs_lock(&ahead->lock);
    while (!ahead->ending) {
        struct closing closing = {.count = 0};
        struct limefs_block *block = first_queued(ahead);
        if (block && has_room(ahead))
            serve_block(ahead, block, &closing);
        else if (block)
            drop(ahead, block, &closing);
        else if (!ahead->room)
            limefs_wait(&ahead->work, &ahead->lock);
        else {
            double now = limefs_seconds();
            struct timespec until = limefs_clock_time(now + KEEP_SECONDS);
            if (!limefs_wait_until(&ahead->work, &ahead->lock, &until))
                drop_old(ahead, now, &closing);
        }
        if (closing.count) {
            unlock(ahead, &closing);
            limefs_lock(&ahead->lock);
        }
    }
    ahead->running--;
    limefs_unlock(&ahead->lock);
    return NULL;
}

/* ---- beginning and end ---- */

void limefs_ahead_begin(struct limefs *fs)
{
    const struct limefs_options *options = &fs->options;
    sigset_t all, before;
    if (options->rw || options->direct_io || fs->job || options->verify != LIMEFS_VERIFY_OFF)
        return;
    struct limefs_ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return;
    ahead->fs = fs;
    limefs_lock_init(&ahead->lock, LIMEFS_LOCK_AHEAD);
    limefs_condition_init(&ahead->work);
    limefs_condition_init(&ahead->read);
    sigfillset(&all); /* signals are for the loop */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    limefs_lock(&ahead->lock);
    while (ahead->started < THREADS &&
           pthread_create(&ahead->threads[ahead->started], NULL, work, ahead) == 0)
        ahead->running = ++ahead->started;
    limefs_unlock(&ahead->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    fs->ahead = ahead;
}

bool limefs_ahead_stop(struct limefs *fs)
{
    struct limefs_ahead *ahead = fs->ahead;
    if (!ahead)
        return true;
    limefs_lock(&ahead->lock);
    ahead->ending = true;
    pthread_cond_broadcast(&ahead->work);
    bool ended = ahead->running == 0;
    limefs_unlock(&ahead->lock);
    return ended;
}

void limefs_ahead_end(struct limefs *fs)
{
    struct limefs_ahead *ahead = fs->ahead;
    struct closing closing = {.count = 0};
    if (!ahead)
        return;
    limefs_ahead_stop(fs);
    for (unsigned i = 0; i < ahead->started; i++)
        pthread_join(ahead->threads[i], NULL);
    limefs_lock(&ahead->lock);
    for (int i = 0; i < BLOCKS; i++)
        if (ahead->blocks[i].state != FREE)
            drop(ahead, &ahead->blocks[i], &closing);
    drop_old(ahead, 0, &closing);
    unlock(ahead, &closing);
    limefs_lock_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->work);
    pthread_cond_destroy(&ahead->read);
    free(ahead);
    fs->ahead = NULL;
}
