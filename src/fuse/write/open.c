/* open.c - records opened for writing, and closed */
#define _GNU_SOURCE
#include "job.h"
#include "store.h"
#include "writing.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

struct limefs_target *limefs_writer_target(const struct limefs_writer *writer, uint64_t ordinal)
{
    struct limefs_target *target = writer->targets;
    while (target && target->ordinal != ordinal)
        target = target->next;
    return target;
}

/* Each user of a target is one of the writer, and holds the view. */
int limefs_target_attach(struct limefs_writer *writer, uint64_t ordinal,
                         struct limefs_target **out)
{
    struct limefs_target *target = limefs_writer_target(writer, ordinal);
    if (!target && !(target = calloc(1, sizeof *target)))
        return -ENOMEM;
    if (target->users++ == 0) {
        target->writer = writer;
        target->ordinal = ordinal;
        target->fd = -1;
        target->noted_mtime = LIMEFS_NO_MTIME;
        target->next = writer->targets;
        writer->targets = target;
    }
    writer->users++; /* the caller is one */
    limefs_view_hold(writer->fs, writer->view);
    limefs_store_prepare(writer->fs, writer->view);
    *out = target;
    return 0;
}

int limefs_target_open(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                       bool appends, struct limefs_target **out)
{
    struct limefs_writer *writer;
    int err = limefs_writer_use(fs, view, &writer);
    if (err)
        return err;
    limefs_take(&writer->lock);
    err = limefs_writer_catch_up(writer);
    if (!err)
        err = limefs_writer_check(writer);
    if (!err && appends)
        err = limefs_writer_may_append(writer, ordinal);
    if (!err)
        err = limefs_target_attach(writer, ordinal, out);
    limefs_leave(&writer->lock);
    limefs_writer_give_up(writer);
    return err;
}

uint64_t limefs_target_ordinal(const struct limefs_target *target)
{
    return target->ordinal;
}

int limefs_writer_give_up_last(struct limefs_writer *writer, const struct limefile_last *last,
                               bool forced)
{
    char path[PATH_MAX];
    const char *label = limefs_writer_label(writer, path, sizeof path);
    struct limefs_change change;
    int err = 0, failed = limefs_last_error(&writer->last);
    bool grows = limefs_last_is_growing(&writer->last);
    if (!last->committed && !failed && !forced)
        err = limefs_writer_commit(writer);
    else if (!last->committed) {
        limefs_log(LOG_WARNING, "%s: record %llu (%s) was not finished%s%s: it is taken away",
                   label, (unsigned long long)last->ordinal, last->type, failed ? ", " : "",
                   failed ? limefile_strerror(failed) : "");
        err = limefs_writer_drop_last(writer);
    } else if (grows && (failed || forced)) {
        limefs_log(LOG_WARNING, "%s: record %llu (%s) keeps its old length of %llu bytes",
                   label, (unsigned long long)last->ordinal, last->type,
                   (unsigned long long)last->bytes);
        limefs_job_change(writer->fs, writer->view, &change, last->data_offset, UINT64_MAX,
                          true);
        err = limefile_commit(writer->editor, last->bytes);
        writer->length = last->bytes;
        limefs_job_changed(writer->fs, writer->view, &change);
        limefs_view_renew(writer->fs, writer->view, last->ordinal);
    } else if (grows)
        err = limefs_writer_commit(writer);
    if (!err)
        limefs_last_settles(&writer->last);
    else
        limefs_log(LOG_ERR, "%s: record %llu: close: %s", label,
                   (unsigned long long)last->ordinal, limefile_strerror(err));
    return err;
}

static void forget_target(struct limefs_writer *writer, struct limefs_target *target)
{
    struct limefs_target **at = &writer->targets;
    while (*at != target)
        at = &(*at)->next;
    *at = target->next;
    if (target->fd >= 0)
        close(target->fd);
    free(target);
}

/* What was collected takes the record's place, or goes. */
static void end_aside(struct limefs_target *target, int err, bool forced)
{
    struct limefs_writer *writer = target->writer;
    char path[PATH_MAX];
    if (!limefs_collected_is_news(&target->collected))
        return;
    if (!err)
        err = limefs_collected_error(&target->collected);
    if (!err && !forced)
        err = limefs_aside_finish(target);
    if (!err && !forced)
        return;
    limefs_log(err ? LOG_ERR : LOG_WARNING, "%s: record %llu keeps its old data: %s",
               limefs_writer_label(writer, path, sizeof path),
               (unsigned long long)target->ordinal,
               err ? limefile_strerror(err) : "the new ones were not finished");
    limefs_view_renew(writer->fs, writer->view, target->ordinal);
}

void limefs_target_close(struct limefs *fs, struct limefs_target *target, bool forced)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    limefs_take(&writer->lock);
    limefs_writer_flush_store(writer);
    int err = limefs_writer_catch_up(writer);
    if (!err && limefs_collected_is_news(&target->collected) &&
        !limefs_collected_error(&target->collected) && !forced)
        err = limefs_writer_make_ready(writer); /* lets others in meanwhile */
    if (--target->users == 0) {
        if (limefs_collected_is(&target->collected))
            end_aside(target, err, forced);
        else if (!err && limefs_writer_is_last(writer, target->ordinal, &last))
            limefs_writer_give_up_last(writer, &last, forced);
        if (!err)
            limefs_target_set_noted_mtime(target);
        forget_target(writer, target);
        limefs_job_touched(fs, writer->view);
    }
    limefs_leave(&writer->lock);
    limefs_lock(&writer->parting);
    pthread_cond_broadcast(&writer->parted);
    limefs_unlock(&writer->parting);
    limefs_writer_give_up(writer);
}
