/*
 * read.c - answers read requests from the job's window, blocks read ahead, or the container
 *
 * Bytes that an export has in common with its record are read like the record. Computed bytes
 * are made from the record's bytes, which are read in the same way into a second buffer.
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
    READ_TRIES = 3, /* if the container changes during a read */
};

void limefs_answer_release(struct limefs *fs, struct limefs_answer *answer)
{
    if (fs->job)
        limefs_job_release(fs, &answer->pieces);
    else
        limefs_ahead_release(fs, &answer->pieces);
    answer->count = 0;
}

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

/* Checks that the container still has the record. *grown: it has, or may have, changed since
 * the last check, so the bytes must be read again. A container that was overwritten and is
 * longer looks like one that has grown, but then the sample is rarely at the same offset. */
static int check(struct limefs *fs, struct limefs_file *file, bool *grown)
{
    limefs_lock(&file->lock);
    struct limefile_identity before = file->checked;
    int err = limefs_view_check(fs, file->view, &file->record, &file->checked);
    *grown = !limefile_identity_equal(&before, &file->checked);
    if (*grown)
        limefs_job_drop(fs, file->view); /* before another thread sees the new `checked` */
    if (!err && *grown && !sample_stands(file)) {
        file->checked = before; /* every later check must fail, too */
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

/* Returns true if the window or the blocks read ahead have the bytes. */
static bool read_fetched(struct limefs *fs, struct limefs_file *file,
                         const struct limefs_range *range, struct limefs_answer *answer)
{
    struct limefs_pieces *pieces = &answer->pieces;
    if ((fs->job ? limefs_job_read(fs, range, pieces)
                 : limefs_ahead_read(fs, file, range, pieces)) == 0)
        return false;
    memcpy(answer->iov, pieces->iov, sizeof pieces->iov);
    answer->count = pieces->count;
    return true;
}

static void count_local(struct limefs *fs, ssize_t bytes)
{
    atomic_fetch_add_explicit(&fs->stats.local_bytes, (uint64_t)bytes, memory_order_relaxed);
}

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
    ssize_t got = (ssize_t)n;
    if (file->view->guise || !read_fetched(fs, file, &range, answer)) {
        got = limefs_local_read(file, buf, n, at, &bytes);
        if (got > 0)
            answer_with(answer, bytes, (size_t)got);
    }
    if (got > 0 && !(fs->job && answer->pieces.count))
        count_local(fs, got);
    return got;
}

/* Checks the container after the read: only then the bytes are known to be the record's. */
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

/* Reads from the job's window. The bytes are never older than a write that ended before this
 * request (forward.h), and the record was at this place (shape). Returns 0 without them. */
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
    if (!read_fetched(fs, file, &range, answer))
        return 0;
    if (limefs_view_is_known(fs, view))
        return (ssize_t)range.n;
    limefs_job_drop(fs, view); /* a process outside of this mount has changed the container */
    limefs_answer_release(fs, answer);
    return 0;
}

/* Reads a record of a view that this mount writes to or has written to: since the open, the
 * record may have moved and changed its length. */
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
        got = -ESTALE; /* the record was removed, and another one appended */
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
        count_local(fs, got);
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

/* Reads the record that is open, or that the open file is an export of. buf has room for n
 * bytes and two blocks of LIMEFILE_DIRECT_ALIGN. */
static ssize_t read_any_record(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
                               uint64_t offset, struct limefs_answer *answer)
{
    limefs_verify_enter(&file->reader);
    ssize_t got = -ESTALE;
    if (!is_written(file))
        got = read_record(fs, file, buf, n, offset, answer);
    if (is_written(file)) { /* also if that began during the read: the record may have moved */
        limefs_answer_release(fs, answer);
        got = read_written(fs, file, buf, n, offset, answer);
    }
    if (got < 0)
        report(fs, file, offset, (int)got);
    int err = limefs_verify_leave(fs, &file->reader, offset, answer->iov, answer->count);
    return got >= 0 && err ? err : got;
}

/* ---- exports ---- */

/* The record as source of computed bytes. The library requests a few sites at a time, so at
 * least `ahead` bytes are read at once: those for the whole request, if it goes in order. */
struct source {
    struct limefs *fs;
    struct limefs_file *file;
    size_t ahead;
    struct limefs_answer answer; /* of the last read */
    uint64_t at;                 /* its offset in the record */
    size_t n;                    /* its bytes */
};

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

static int refill(struct source *source, size_t n, uint64_t offset)
{
    size_t want = n < source->ahead ? source->ahead : n;
    char *own = limefs_second_buffer(want + 2 * LIMEFILE_DIRECT_ALIGN);
    limefs_answer_release(source->fs, &source->answer);
    source->n = 0;
    if (!own)
        return -ENOMEM;
    ssize_t got = read_any_record(source->fs, source->file, own, want, offset, &source->answer);
    if (got < 0)
        return (int)got;
    source->at = offset;
    source->n = (size_t)got;
    return 0;
}

/* Copies bytes [from, from + n) of an answer. */
static void copy_part(const struct limefs_answer *answer, size_t from, size_t n, char *to)
{
    for (int i = 0; i < answer->count && n > 0; i++) {
        size_t len = answer->iov[i].iov_len;
        size_t skip = from < len ? from : len, part = len - skip < n ? len - skip : n;
        memcpy(to, (const char *)answer->iov[i].iov_base + skip, part);
        from -= skip;
        to += part;
        n -= part;
    }
}

/* Returns bytes [from, from + n) of an answer, or NULL if they are not in one piece. */
static const char *whole_part(const struct limefs_answer *answer, size_t from, size_t n)
{
    for (int i = 0; i < answer->count; from -= answer->iov[i++].iov_len)
        if (from < answer->iov[i].iov_len)
            return n <= answer->iov[i].iov_len - from
                       ? (const char *)answer->iov[i].iov_base + from
                       : NULL;
    return NULL;
}

/* Gives the library the bytes that it requests. */
static ssize_t lend_source(void *context, void *buf, size_t n, uint64_t offset,
                           const void **data)
{
    struct source *source = context;
    bool there = offset >= source->at && offset - source->at <= source->n &&
                 n <= source->n - (offset - source->at);
    int err = there ? 0 : refill(source, n, offset);
    if (err)
        return err;
    size_t from = (size_t)(offset - source->at);
    if (n > source->n - from)
        n = source->n - from; /* the end of the record */
    *data = whole_part(&source->answer, from, n);
    if (!*data) {
        copy_part(&source->answer, from, n, buf);
        *data = buf;
    }
    return (ssize_t)n;
}

static ssize_t compute(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
                       uint64_t offset, struct limefs_answer *answer)
{
    struct limefile_face_entry entry;
    limefile_face_entry(limefs_face_files(file->face), file->number, &entry);
    double ratio = (double)file->record.bytes / (double)entry.bytes;
    struct source source = {.fs = fs, .file = file};
    if (!limefs_face_jumps(file->face)) /* openQCD's order jumps back and forth */
        source.ahead = (size_t)((double)n * ratio) + 1;
    ssize_t got = limefile_face_read_lent(limefs_face_files(file->face), file->number, buf, n,
                                          offset, lend_source, &source);
    limefs_answer_release(fs, &source.answer);
    if (got > 0)
        answer_with(answer, buf, (size_t)got);
    return got;
}

/* The parts of a request: the export's own bytes, stored bytes of the record, own bytes. */
struct parts {
    struct iovec before, after;
    size_t stored;
    uint64_t at; /* offset of the stored bytes in the record */
};

static size_t add_own(const struct limefile_face *face, uint64_t number, uint64_t offset,
                      size_t n, struct iovec *own)
{
    struct limefile_face_piece piece;
    limefile_face_piece(face, number, offset, &piece);
    if (piece.source != LIMEFILE_FACE_OWN)
        return 0;
    *own = (struct iovec){(unsigned char *)piece.own, smaller(piece.bytes, n)};
    return own->iov_len;
}

/* Returns how many of the n bytes are in `parts`: fewer if the file ends or has more parts. */
static size_t find_parts(const struct limefs_file *file, size_t n, uint64_t offset,
                         struct parts *parts)
{
    const struct limefile_face *face = limefs_face_files(file->face);
    struct limefile_face_piece piece;
    *parts = (struct parts){0};
    size_t used = add_own(face, file->number, offset, n, &parts->before);
    if (used < n) {
        limefile_face_piece(face, file->number, offset + used, &piece);
        if (piece.source == LIMEFILE_FACE_STORED) {
            parts->stored = smaller(piece.bytes, n - used);
            parts->at = piece.at;
            used += parts->stored;
        }
    }
    if (used < n && parts->stored)
        used += add_own(face, file->number, offset + used, n - used, &parts->after);
    return used;
}

/* Copies own bytes to a buffer of the thread: the answer may outlive the export. */
static int copy_own(struct parts *parts)
{
    char *own = limefs_second_buffer(parts->before.iov_len + parts->after.iov_len + 1);
    if (!own)
        return -ENOMEM;
    struct iovec *const both[] = {&parts->before, &parts->after};
    for (int i = 0; i < 2; own += both[i++]->iov_len)
        if (both[i]->iov_len) {
            memcpy(own, both[i]->iov_base, both[i]->iov_len);
            both[i]->iov_base = own;
        }
    return 0;
}

/* Adds the own bytes before and after those that were read from the record. */
static void surround(struct limefs_answer *answer, const struct parts *parts)
{
    struct iovec iov[LIMEFS_ANSWER_PARTS];
    int count = 0;
    if (parts->before.iov_len)
        iov[count++] = parts->before;
    for (int i = 0; i < answer->count; i++)
        iov[count++] = answer->iov[i];
    if (parts->after.iov_len)
        iov[count++] = parts->after;
    memcpy(answer->iov, iov, (size_t)count * sizeof *iov);
    answer->count = count;
}

static ssize_t read_parts(struct limefs *fs, struct limefs_file *file, char *buf,
                          struct parts *parts, struct limefs_answer *answer)
{
    int err = parts->before.iov_len + parts->after.iov_len ? copy_own(parts) : 0;
    if (err)
        return err;
    if (parts->stored) {
        ssize_t got = read_any_record(fs, file, buf, parts->stored, parts->at, answer);
        if (got < 0)
            return got;
        if ((size_t)got < parts->stored)
            return LIMEFILE_E_SHRUNK;
    }
    surround(answer, parts);
    return (ssize_t)(parts->before.iov_len + parts->stored + parts->after.iov_len);
}

static ssize_t read_face(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
                         uint64_t offset, struct limefs_answer *answer)
{
    struct limefile_face_entry entry;
    struct parts parts;
    limefile_face_entry(limefs_face_files(file->face), file->number, &entry);
    if (offset >= entry.bytes)
        return 0;
    n = smaller(entry.bytes - offset, n);
    int err = limefs_face_check(fs, file->face);
    if (err)
        return err;
    ssize_t got = find_parts(file, n, offset, &parts) == n
                      ? read_parts(fs, file, buf, &parts, answer)
                      : compute(fs, file, buf, n, offset, answer);
    err = limefs_face_check(fs, file->face); /* the bytes may be newer than the export */
    return err ? err : got;
}

/* ---- any file ---- */

ssize_t limefs_file_read(struct limefs *fs, struct limefs_file *file, size_t n, uint64_t offset,
                         struct limefs_answer *answer)
{
    *answer = (struct limefs_answer){0};
    atomic_fetch_add_explicit(&fs->stats.requests, 1, memory_order_relaxed);
    char *buf = limefs_buffer(n + 2 * LIMEFILE_DIRECT_ALIGN);
    if (!buf)
        return -ENOMEM;
    if (file->face)
        return read_face(fs, file, buf, n, offset, answer);
    if (file->view)
        return read_any_record(fs, file, buf, n, offset, answer);
    ssize_t got =
        offset > INT64_MAX ? 0 : limefs_append_read(file->node, file->fd, buf, n, offset);
    if (got > 0)
        answer_with(answer, buf, (size_t)got);
    return got;
}
