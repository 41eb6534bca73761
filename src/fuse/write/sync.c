/* sync.c - when what was written is on the disk, and who is told if it is not */
#define _GNU_SOURCE
#include "holders.h"
#include "job.h"
#include "store.h"
#include "writing.h"

#include <unistd.h>

/* A failure concerns all that was written before, by whomever. */
static void tell_all(struct limefs_writer *writer, int err)
{
    for (struct limefs_target *target = writer->targets; target; target = target->next)
        target->error = err;
}

/* The last record, while it grows, may not be what was written to it. */
int limefs_writer_tell(struct limefs_writer *writer, int err)
{
    if (err) {
        limefs_last_fails(&writer->last, err, false);
        tell_all(writer, err);
    }
    return err;
}

int limefs_writer_flush_store(struct limefs_writer *writer)
{
    return limefs_writer_tell(writer,
                              limefs_store_flush(writer->fs, &writer->shared, 0, UINT64_MAX));
}

int limefs_writer_sync_store(struct limefs_writer *writer)
{
    return limefs_writer_tell(writer, limefs_store_sync(writer->fs, &writer->shared));
}

int limefs_writer_fsync(struct limefs_writer *writer)
{
    struct limefile_fd file;
    limefile_fd_init(&file, writer->shared.fd);
    return limefs_writer_tell(writer, file.source.ops->sync(&file.source));
}

/* A new record, or an inner one that was emptied, to which nothing was written yet. */
static bool is_bare(const struct limefs_target *target)
{
    const struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    if (limefs_collected_is(&target->collected))
        return limefs_collected_is_empty(&target->collected);
    return writer->editor && limefs_writer_is_last(writer, target->ordinal, &last) &&
           !last.committed && writer->length == 0 && !limefs_last_error(&writer->last);
}

/* `held`: a copy of the descriptor that is closed is still there, for somebody to write by. */
static int settle(struct limefs_target *target, bool held)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    if (held && target->users == 1 && is_bare(target))
        return 0;
    if (limefs_collected_is(&target->collected)) {
        int err = limefs_collected_error(&target->collected);
        if (!err && limefs_collected_is_news(&target->collected))
            err = limefs_writer_make_ready(writer);
        return err ? err : limefs_aside_finish(target);
    }
    if (!limefs_writer_is_last(writer, target->ordinal, &last) ||
        !limefs_last_is_growing(&writer->last))
        return 0;
    return limefs_writer_commit(writer);
}

int limefs_target_sync(struct limefs *fs, struct limefs_target *target, bool closing)
{
    struct limefs_writer *writer = target->writer;
    int err = limefs_writer_share(writer);
    if (!err)
        err = limefs_writer_sync_store(writer);
    if (!err) { /* the bulk of it, while others go on */
        if (limefs_sync_begins(&writer->shared))
            err = limefs_writer_fsync(writer);
        limefs_sync_ends(&writer->shared);
    }
    /* With another user there is another open file, of which we could find a descriptor. */
    bool held = closing && !err && target->users == 1 && is_bare(target);
    limefs_leave(&writer->lock);
    held = held && limefs_record_is_held(fs, writer->view, target->ordinal);
    limefs_take(&writer->lock);
    int met = atomic_exchange(&target->error, 0);
    if (!err)
        err = met;
    if (!err)
        err = settle(target, held);
    if (!err)
        limefs_target_set_noted_mtime(target);
    limefs_job_touched(writer->fs, writer->view);
    limefs_leave(&writer->lock);
    return err;
}
