/* times.c - when a container that is written to was changed */
#define _GNU_SOURCE
#include "caller.h"
#include "writing.h"

#include <errno.h>
#include <sys/stat.h>

#define SECOND INT64_C(1000000000)

int limefs_times_set(struct limefs *fs, struct limefs_view *view,
                     const struct timespec times[2])
{
    int err = futimens(view->fd, times) == 0 ? 0 : -errno;
    limefs_view_touched(fs, view);
    return err;
}

/* Those who have the container that is to be replaced would take it for one that was changed.
 */
static bool keep_times(struct limefs_target *target, const struct timespec times[2])
{
    if (!target || !limefs_collected_is_news(&target->collected) ||
        limefs_collected_error(&target->collected))
        return false;
    for (int i = 0; i < 2; i++)
        if (times[i].tv_nsec != UTIME_OMIT)
            target->times[i] = times[i];
    return true;
}

/* What was noted before is older than what is set. */
static void forget_noted(const struct limefs_writer *writer)
{
    for (struct limefs_target *target = writer->targets; target; target = target->next)
        target->noted_mtime = LIMEFS_NO_MTIME;
}

/* Its length is made known when it is closed, which changes the container once more. */
static void keep_for_the_end(struct limefs_target *target, const struct timespec *mtime)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    bool sets = mtime->tv_nsec != UTIME_OMIT && mtime->tv_nsec != UTIME_NOW;
    if (sets && limefs_last_is_growing(&writer->last) &&
        limefs_writer_is_last(writer, target->ordinal, &last))
        limefs_target_note_mtime(target, mtime);
}

int limefs_record_set_times(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                            const struct timespec times[2])
{
    struct limefs_writer *writer = view->writer;
    if (!writer)
        return limefs_times_set(fs, view, times);
    limefs_take(&writer->lock);
    if (times[1].tv_nsec != UTIME_OMIT)
        forget_noted(writer);
    struct limefs_target *target = limefs_writer_target(writer, ordinal);
    int err = keep_times(target, times) ? 0 : limefs_times_set(fs, view, times);
    if (!err && target)
        keep_for_the_end(target, &times[1]);
    limefs_leave(&writer->lock);
    return err;
}

bool limefs_target_note_mtime(struct limefs_target *target, const struct timespec *time)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)time->tv_sec, SECOND, &ns) ||
        __builtin_add_overflow(ns, (int64_t)time->tv_nsec, &ns) || ns < 0)
        return false;
    target->noted_mtime = ns;
    return true;
}

void limefs_target_set_noted_mtime(struct limefs_target *target)
{
    struct limefs_writer *writer = target->writer;
    int64_t ns = atomic_exchange(&target->noted_mtime, LIMEFS_NO_MTIME);
    const struct timespec times[2] = {{0, UTIME_OMIT}, {ns / SECOND, ns % SECOND}};
    if (ns == LIMEFS_NO_MTIME)
        return;
    limefs_own_begin(); /* who has it open for writing need not own it */
    limefs_times_set(writer->fs, writer->view, times);
    limefs_own_end();
}
