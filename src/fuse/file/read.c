/*
 * read.c - a request for bytes of an open file, from whichever backend has them
 */
#include "ahead.h"
#include "append.h"
#include "buffer.h"
#include "file.h"
#include "tree.h"
#include "verify.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <syslog.h>

enum {
    READ_TRIES = 3, /* when the container changes underneath a read */
};

static bool sample_stands(const struct limefs_file *file)
{
    char now[sizeof file->sample.bytes];
    struct limefile_fd fd;
    struct limefile_source *source = limefs_view_source(file->view, &fd);
    ssize_t got = limefile_read_full(source, now, file->sample.n, file->sample.at);
    return got == (ssize_t)file->sample.n &&
           memcmp(now, file->sample.bytes, file->sample.n) == 0;
}

static void take_sample(struct limefs_file *file, const char *bytes, size_t n, uint64_t at)
{
    struct limefs_sample *sample = &file->sample;
    limefs_lock(&file->lock);
    sample->n = n < sizeof sample->bytes ? n : sizeof sample->bytes;
    sample->at = at;
    memcpy(sample->bytes, bytes, sample->n);
    limefs_unlock(&file->lock);
}

/* *grown: something was added since the last check, or its bytes may have been others for a
 * while, so that what was read is to be read again. A container that was written anew, and is
 * longer, looks the same from outside; but then the sample is seldom where it was. */
static int check(struct limefs *fs, struct limefs_file *file, bool *grown)
{
    limefs_lock(&file->lock);
    struct limefile_identity before = file->checked;
    int err = limefs_view_check(fs, file->view, &file->record, &file->checked);
    *grown = !limefile_identity_equal(&before, &file->checked);
    if (*grown)
        limefs_job_drop(fs, file->view); /* before anybody can see that it was noticed */
    if (!err && *grown && !sample_stands(file)) {
        file->checked = before; /* so that it fails for ever */
        err = -ESTALE;
    }
    limefs_unlock(&file->lock);
    return err;
}

static void answer_with(struct limefs_answer *answer, const char *bytes, size_t n)
{
    answer->iov[0] = (struct iovec){(char *)bytes, n};
    answer->count = 1;
}

/* True: it has the bytes. */
static bool read_by_job(struct limefs *fs, const struct limefs_range *range,
                        struct limefs_answer *answer)
{
    if (limefs_job_read(fs, range, &answer->pieces) == 0)
        return false;
    memcpy(answer->iov, answer->pieces.iov, sizeof answer->pieces.iov);
    answer->count = answer->pieces.count;
    return true;
}

/* Through the job if it has the bytes or can be expected to, else by ourselves. */
static ssize_t read_container(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
                              uint64_t at, struct limefs_answer *answer)
{
    const struct limefile_record *record = &file->record;
    const struct limefs_range range = {.view = file->view,
                                       .begin = record->data_offset,
                                       .end = record->data_offset + record->bytes,
                                       .at = at,
                                       .n = n};
    const char *bytes;
    if (!file->view->guise && read_by_job(fs, &range, answer))
        return (ssize_t)n;
    bool ahead = limefs_ahead_stream(fs, file, n, at, answer);
    ssize_t got = ahead ? (ssize_t)n : limefs_local_read(file, buf, n, at, &bytes);
    if (got > 0) {
        if (!ahead)
            answer_with(answer, bytes, (size_t)got);
        atomic_fetch_add_explicit(&fs->local_bytes, (uint64_t)got, memory_order_relaxed);
    }
    return got;
}

/* Looks at the container after the read, so that what was read is what was there. */
static ssize_t read_record(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
                           uint64_t offset, struct limefs_answer *answer)
{
    const struct limefile_record *record = &file->record;
    if (offset >= record->bytes)
        return 0;
    if (n > record->bytes - offset)
        n = (size_t)(record->bytes - offset);
    for (int i = 0; i < READ_TRIES; i++) {
        bool grown;
        uint64_t at = record->data_offset + offset;
        ssize_t got = read_container(fs, file, buf, n, at, answer);
        if (got < 0)
            return got;
        int err = check(fs, file, &grown);
        if (err)
            return err;
        bool stale = limefs_job_is_stale(fs, &answer->pieces);
        if ((size_t)got == n && !stale && (!grown || i == READ_TRIES - 1)) {
            take_sample(file, answer->iov[0].iov_base, answer->iov[0].iov_len, at);
            return got;
        }
        limefs_answer_release(fs, answer);
    }
    return -EIO;
}

/* What is given is never older than a write that had ended when the request came (forward.h),
 * and the record was at that place (shape). 0: the job has not got it. */
static ssize_t read_written_by_job(struct limefs *fs, struct limefs_file *file, size_t n,
                                   uint64_t offset, struct limefs_answer *answer)
{
    struct limefs_view *view = file->view;
    struct limefs_place place;
    if (!fs->job || limefs_place_enter(fs, view, file->record.ordinal, &place) != 0)
        return 0;
    bool same = limefs_view_generation(fs, view, file->record.ordinal) == file->generation;
    limefs_place_leave(view);
    if (!same || place.fd != view->fd || offset >= place.bytes)
        return 0;
    const struct limefs_range range = {
        .view = view,
        .begin = place.at,
        .end = place.at + place.bytes,
        .at = place.at + offset,
        .n = n < place.bytes - offset ? n : (size_t)(place.bytes - offset),
        .shape = place.shape,
    };
    if (!read_by_job(fs, &range, answer))
        return 0;
    if (limefs_view_is_known(fs, view))
        return (ssize_t)range.n;
    limefs_job_drop(fs, view); /* nobody here has it open for writing, and somebody else has */
    limefs_answer_release(fs, answer);
    return 0;
}

/* Of a view that is, or was, written to: its records may be elsewhere and of another length
 * than when they were opened. */
static ssize_t read_written(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
                            uint64_t offset, struct limefs_answer *answer)
{
    struct limefs_view *view = file->view;
    struct limefs_place place;
    const char *bytes = buf;
    ssize_t by_job = read_written_by_job(fs, file, n, offset, answer);
    if (by_job > 0)
        return by_job;
    int err = limefs_place_enter(fs, view, file->record.ordinal, &place);
    if (err)
        return err;
    ssize_t got = 0;
    if (limefs_view_generation(fs, view, file->record.ordinal) != file->generation)
        got = -ESTALE; /* removed, and another appended */
    else if (offset < place.bytes) {
        if (n > place.bytes - offset)
            n = (size_t)(place.bytes - offset);
        if (place.fd == view->fd)
            limefs_place_gather(fs, view, place.at + offset, n);
        got = place.fd == view->fd && !view->rewritten
                  ? limefs_local_read(file, buf, n, place.at + offset, &bytes)
                  : limefile_fd_read(place.fd, buf, n, place.at + offset);
    }
    limefs_place_leave(view);
    if (got >= 0 && (err = limefs_view_check(fs, view, &file->record, NULL)) != 0)
        return err;
    if (got > 0) {
        answer_with(answer, bytes, (size_t)got);
        atomic_fetch_add_explicit(&fs->local_bytes, (uint64_t)got, memory_order_relaxed);
    }
    return got;
}

static void report(struct limefs *fs, const struct limefs_file *file, uint64_t offset, int err)
{
    char label[PATH_MAX];
    limefs_log(LOG_WARNING, "%s: record %llu: read at %llu: %s",
               limefs_tree_label(fs, file->view->node, label, sizeof label),
               (unsigned long long)file->record.ordinal, (unsigned long long)offset,
               err == -ESTALE ? "the container was changed in place; open it again"
                              : limefile_strerror(err));
}

static bool is_written(const struct limefs_file *file)
{
    return file->view->writer != NULL;
}

ssize_t limefs_file_read_record(struct limefs *fs, struct limefs_file *file, char *buf,
                                size_t n, uint64_t offset, struct limefs_answer *answer)
{
    limefs_verify_enter(&file->reader);
    ssize_t got = -ESTALE;
    if (!is_written(file))
        got = read_record(fs, file, buf, n, offset, answer);
    if (is_written(file)) { /* by now: what was read may have been elsewhere */
        limefs_answer_release(fs, answer);
        got = read_written(fs, file, buf, n, offset, answer);
    }
    if (got < 0)
        report(fs, file, offset, (int)got);
    int err = limefs_verify_leave(fs, &file->reader, offset, answer->iov, answer->count);
    return got >= 0 && err ? err : got;
}

ssize_t limefs_file_read(struct limefs *fs, struct limefs_file *file, size_t n, uint64_t offset,
                         struct limefs_answer *answer)
{
    *answer = (struct limefs_answer){0};
    atomic_fetch_add_explicit(&fs->requests, 1, memory_order_relaxed);
    char *buf = limefs_buffer(n + 2 * LIMEFILE_DIRECT_ALIGN);
    if (!buf)
        return -ENOMEM;
    if (file->face && limefs_ahead_read(fs, file, &n, offset, answer))
        return (ssize_t)n;
    if (file->face)
        return limefs_file_read_face(fs, file, buf, n, offset, answer);
    if (file->view)
        return limefs_file_read_record(fs, file, buf, n, offset, answer);
    ssize_t got =
        offset > INT64_MAX ? 0 : limefs_append_read(file->node, file->fd, buf, n, offset);
    if (got > 0)
        answer_with(answer, buf, (size_t)got);
    return got;
}

void limefs_answer_release(struct limefs *fs, struct limefs_answer *answer)
{
    limefs_job_release(fs, &answer->pieces);
    if (answer->block)
        limefs_ahead_release(fs, answer->block);
    answer->block = NULL;
    answer->count = 0;
}
