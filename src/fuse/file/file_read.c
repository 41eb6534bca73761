/*
 * file_read.c - serve read requests with bytes of the job's window, of the read-ahead or of the
 * container itself
 *
 * Stored bytes of an export, which its record contains unchanged, are read like the record.
 * Computed bytes are made from the record's bytes, which are read into a second buffer.
 */
#include "readahead.h"
#include "append.h"
#include "thread_buffer.h"
#include "file.h"
#include "tree.h"
#include "verify.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <syslog.h>

enum { READ_TRIES = 3 }; /* if the container changes during a read */

void limefs_file_result_release(struct limefs *fs, struct limefs_file_result *result)
{
    if (fs->job)
        limefs_job_release(fs, &result->pieces);
    else
        limefs_readahead_release(fs, &result->pieces);
    result->count = 0;
}

/* True if the container still has the bytes of the sample. Called with file->lock held. */
static bool sample_matches(const struct limefs_file *file)
{
    char now[sizeof file->sample.bytes];
    struct limefile_fd fd;
    struct limefile_source *source = limefs_snapshot_source(file->snap, &fd);
    ssize_t got = limefile_read_full(source, now, file->sample.n, file->sample.at);
    return got == (ssize_t)file->sample.n &&
           memcmp(now, file->sample.bytes, file->sample.n) == 0;
}

static void save_sample(struct limefs_file *file, const char *bytes, size_t n, uint64_t at)
{
    struct limefs_sample *sample = &file->sample;
    limefs_lock(&file->lock);
    sample->n = n < sizeof sample->bytes ? n : sizeof sample->bytes;
    sample->at = at;
    memcpy(sample->bytes, bytes, sample->n);
    limefs_unlock(&file->lock);
}

/* Returns 0 if the container still has the record, or -errno. Sets *has_changed to whether the
 * container has or may have changed since the previous check: the caller must then read again.
 * The other checks allow a container to grow, so they miss that a longer one was written over
 * it. Comparing the sample (bytes of an earlier read) reveals nearly all such cases. */
static int check_record(struct limefs *fs, struct limefs_file *file, bool *has_changed)
{
    limefs_lock(&file->lock);
    struct limefile_identity before = file->last_valid;
    int err = limefs_snapshot_check_record(fs, file->snap, &file->record, &file->last_valid);
    *has_changed = !limefile_identity_equal(&before, &file->last_valid);
    if (*has_changed) /* before another thread can see the new last_valid */
        limefs_job_invalidate(fs, file->snap);
    if (!err && *has_changed && !sample_matches(file)) {
        file->last_valid = before; /* every later check must fail, too */
        err = -ESTALE;
    }
    limefs_unlock(&file->lock);
    return err;
}

/* Sets the result to n bytes, unless n is 0 or an error. Returns n. */
static ssize_t set_result(struct limefs_file_result *result, const char *bytes, ssize_t n)
{
    if (n > 0) {
        result->iov[0] = (struct iovec){(char *)bytes, (size_t)n};
        result->count = 1;
    }
    return n;
}

/* Returns true if the job's window or blocks read ahead have the bytes; then sets *result. */
static bool read_prefetched(struct limefs *fs, struct limefs_file *file,
                            const struct limefs_read_range *range,
                            struct limefs_file_result *result)
{
    struct limefs_chunks *pieces = &result->pieces;
    if ((fs->job ? limefs_job_read(fs, range, pieces)
                 : limefs_readahead_read(fs, file, range, pieces)) == 0)
        return false;
    memcpy(result->iov, pieces->iov, sizeof pieces->iov);
    result->count = pieces->count;
    return true;
}

static void count_local_bytes(struct limefs *fs, ssize_t bytes)
{
    atomic_fetch_add_explicit(&fs->stats.local_bytes, (uint64_t)bytes, memory_order_relaxed);
}

/* Reads n bytes at offset `at` of the container, into buf unless they were prefetched. Returns
 * their number (fewer than n at the end of the file) or -errno. Makes result point to them. */
static ssize_t read_from_container(struct limefs *fs, struct limefs_file *file, char *buf,
                                   size_t n, uint64_t at, struct limefs_file_result *result)
{
    const struct limefile_record *record = &file->record;
    const struct limefs_read_range range = {.snap = file->snap,
                                            .begin = record->data_offset,
                                            .end = record->data_offset + record->bytes,
                                            .at = at,
                                            .n = n};
    const char *bytes;
    ssize_t got = (ssize_t)n;
    if (file->snap->adapter || !read_prefetched(fs, file, &range, result)) {
        got = limefs_local_read(file, buf, n, at, &bytes);
        set_result(result, bytes, got);
    }
    if (got > 0 && !(fs->job && result->pieces.count))
        count_local_bytes(fs, got);
    return got;
}

/* Reads bytes of the record, then checks the container. If the container has not changed since
 * the previous check, the bytes are the record's. If it has changed (perhaps only its times)
 * but still has the record, tries again, READ_TRIES times in all. The final try's bytes are
 * used even if the container has changed once more, because check_record() has found the record
 * in its place. Returns their number, 0 at the record's end, or -errno: -ESTALE if the record
 * may have been replaced, -EIO if the final try got too few or stale bytes. */
static ssize_t read_and_check_record(struct limefs *fs, struct limefs_file *file, char *buf,
                                     size_t n, uint64_t offset,
                                     struct limefs_file_result *result)
{
    const struct limefile_record *record = &file->record;
    if (offset >= record->bytes)
        return 0;
    if (n > record->bytes - offset)
        n = (size_t)(record->bytes - offset);
    for (int i = 0; i < READ_TRIES; i++) {
        bool has_changed;
        uint64_t at = record->data_offset + offset;
        ssize_t got = read_from_container(fs, file, buf, n, at, result);
        if (got < 0)
            return got;
        int err = check_record(fs, file, &has_changed);
        if (err)
            return err;
        bool is_stale = limefs_job_is_stale(fs, &result->pieces);
        if ((size_t)got == n && !is_stale && (!has_changed || i == READ_TRIES - 1)) {
            save_sample(file, result->iov[0].iov_base, result->iov[0].iov_len, at);
            return got;
        }
        limefs_file_result_release(fs, result);
    }
    return -EIO;
}

/* Reads from the job's window. Returns 0 if the window does not have the bytes. Bytes in the
 * window include all writes that ended before this request (prefetch.h). limefs_job_read()
 * finds no bytes if the record has moved since the unlock (range.layout). */
static ssize_t read_written_from_job(struct limefs *fs, struct limefs_file *file, size_t n,
                                     uint64_t offset, struct limefs_file_result *result)
{
    struct limefs_snapshot *snap = file->snap;
    struct limefs_location place;
    if (!fs->job || limefs_location_lock(fs, snap, file->record.ordinal, &place) != 0)
        return 0;
    bool is_same =
        limefs_snapshot_generation(fs, snap, file->record.ordinal) == file->generation;
    limefs_location_unlock(snap);
    if (!is_same || place.fd != snap->fd || offset >= place.bytes)
        return 0;
    const struct limefs_read_range range = {
        .snap = snap,
        .begin = place.at,
        .end = place.at + place.bytes,
        .at = place.at + offset,
        .n = n < place.bytes - offset ? n : (size_t)(place.bytes - offset),
        .layout = place.layout,
    };
    if (!read_prefetched(fs, file, &range, result))
        return 0;
    if (limefs_snapshot_is_known(fs, snap))
        return (ssize_t)range.n;
    limefs_job_invalidate(fs, snap); /* another program has changed the container */
    limefs_file_result_release(fs, result);
    return 0;
}

/* Reads a record of a snapshot that this mount writes to or has written to: since the open,
 * the record may have moved and changed its length. */
static ssize_t read_writable_record(struct limefs *fs, struct limefs_file *file, char *buf,
                                    size_t n, uint64_t offset,
                                    struct limefs_file_result *result)
{
    struct limefs_snapshot *snap = file->snap;
    struct limefs_location place;
    const char *bytes = buf;
    ssize_t from_job = read_written_from_job(fs, file, n, offset, result);
    if (from_job > 0)
        return from_job;
    int err = limefs_location_lock(fs, snap, file->record.ordinal, &place);
    if (err)
        return err;
    ssize_t got = 0;
    if (limefs_snapshot_generation(fs, snap, file->record.ordinal) != file->generation)
        got = -ESTALE; /* the record was removed, and another one has its ordinal */
    else if (offset < place.bytes) {
        if (n > place.bytes - offset)
            n = (size_t)(place.bytes - offset);
        if (place.fd == snap->fd)
            limefs_location_flush(fs, snap, place.at + offset, n);
        got = place.fd == snap->fd && !snap->file_replaced
                  ? limefs_local_read(file, buf, n, place.at + offset, &bytes)
                  : limefile_fd_read(place.fd, buf, n, place.at + offset);
    }
    limefs_location_unlock(snap);
    if (got >= 0 && (err = limefs_snapshot_check_record(fs, snap, &file->record, NULL)) != 0)
        return err;
    if (got > 0)
        count_local_bytes(fs, got);
    return set_result(result, bytes, got);
}

static void report_read_error(struct limefs *fs, const struct limefs_file *file,
                              uint64_t offset, int err)
{
    char label[PATH_MAX];
    limefs_log(LOG_WARNING, "%s: record %llu: read at %llu: %s",
               limefs_tree_display_path(fs, file->snap->node, label, sizeof label),
               (unsigned long long)file->record.ordinal, (unsigned long long)offset,
               err == -ESTALE ? "the container was changed in place; reopen the file"
                              : limefile_strerror(err));
}

static bool has_writer(const struct limefs_file *file)
{
    return file->snap->writer != NULL;
}

/* Reads file->record: the open record, or the one from which an open export is made. buf has
 * room for n bytes and two blocks of LIMEFILE_DIRECT_ALIGN. */
static ssize_t read_any_record(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
                               uint64_t offset, struct limefs_file_result *result)
{
    limefs_verify_read_begin(&file->reader);
    ssize_t got = -ESTALE;
    if (!has_writer(file))
        got = read_and_check_record(fs, file, buf, n, offset, result);
    if (has_writer(file)) { /* a writer may have started during the read and moved the record */
        limefs_file_result_release(fs, result);
        got = read_writable_record(fs, file, buf, n, offset, result);
    }
    if (got < 0)
        report_read_error(fs, file, offset, (int)got);
    int err = limefs_verify_read_end(fs, &file->reader, offset, result->iov, result->count);
    return got >= 0 && err ? err : got;
}

/* ---- exports ---- */

/* The record as the source of computed bytes. limefile_export_read() requests few sites at a
 * time. To read the record less often, each read gets at least min_read bytes: as many as the
 * program's request needs, or 0 if the export has another order of sites than the record. */
struct record_source {
    struct limefs *fs;
    struct limefs_file *file;
    size_t min_read;
    struct limefs_file_result result; /* of the latest read */
    uint64_t at;                      /* its offset in the record */
    size_t n;                         /* number of its bytes */
};

static size_t min_size(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* Reads n bytes, or min_read if that is more, from `offset` of the record; fewer at its end. */
static int refill_source(struct record_source *source, size_t n, uint64_t offset)
{
    size_t size = n < source->min_read ? source->min_read : n;
    char *buf = limefs_second_thread_buffer(size + 2 * LIMEFILE_DIRECT_ALIGN);
    limefs_file_result_release(source->fs, &source->result);
    source->n = 0;
    if (!buf)
        return -ENOMEM;
    ssize_t got = read_any_record(source->fs, source->file, buf, size, offset, &source->result);
    if (got < 0)
        return (int)got;
    source->at = offset;
    source->n = (size_t)got;
    return 0;
}

/* Copies bytes [from, from + n) of a result into `to`. */
static void copy_part_of(const struct limefs_file_result *result, size_t from, size_t n,
                         char *to)
{
    for (int i = 0; i < result->count && n > 0; i++) {
        size_t len = result->iov[i].iov_len;
        size_t skip = from < len ? from : len, part = len - skip < n ? len - skip : n;
        memcpy(to, (const char *)result->iov[i].iov_base + skip, part);
        from -= skip;
        to += part;
        n -= part;
    }
}

/* Returns bytes [from, from + n) of a result, or NULL if they are not contiguous. */
static const char *find_contiguous(const struct limefs_file_result *result, size_t from,
                                   size_t n)
{
    for (int i = 0; i < result->count; from -= result->iov[i++].iov_len)
        if (from < result->iov[i].iov_len)
            return n <= result->iov[i].iov_len - from
                       ? (const char *)result->iov[i].iov_base + from
                       : NULL;
    return NULL;
}

/* Callback of limefile_export_read(): sets *data to n bytes of the record, perhaps in buf. */
static ssize_t get_source_bytes(void *context, void *buf, size_t n, uint64_t offset,
                                const void **data)
{
    struct record_source *source = context;
    bool is_buffered = offset >= source->at && offset - source->at <= source->n &&
                       n <= source->n - (offset - source->at);
    int err = is_buffered ? 0 : refill_source(source, n, offset);
    if (err)
        return err;
    size_t from = (size_t)(offset - source->at);
    if (n > source->n - from)
        n = source->n - from; /* the end of the record */
    *data = find_contiguous(&source->result, from, n);
    if (!*data) {
        copy_part_of(&source->result, from, n, buf);
        *data = buf;
    }
    return (ssize_t)n;
}

static ssize_t read_computed_bytes(struct limefs *fs, struct limefs_file *file, char *buf,
                                   size_t n, uint64_t offset, struct limefs_file_result *result)
{
    struct limefile_export_entry entry;
    limefile_export_entry(limefs_export_files(file->export), file->number, &entry);
    double ratio = (double)file->record.bytes / (double)entry.bytes;
    struct record_source source = {.fs = fs, .file = file};
    if (!limefs_export_is_reordered(file->export)) /* openQCD's order jumps back and forth */
        source.min_read = (size_t)((double)n * ratio) + 1;
    ssize_t got = limefile_export_read(limefs_export_files(file->export), file->number, buf, n,
                                       offset, get_source_bytes, &source);
    limefs_file_result_release(fs, &source.result);
    return set_result(result, buf, got);
}

/* The parts of a request: own bytes of the export, stored bytes of the record, own bytes. */
struct export_parts {
    struct iovec before, after;
    size_t stored;
    uint64_t at; /* offset of the stored bytes in the record */
};

/* Sets *own to the export's own bytes at `offset`, at most n; returns their number. */
static size_t add_own_bytes(const struct limefile_export *export, uint64_t number,
                            uint64_t offset, size_t n, struct iovec *own)
{
    struct limefile_export_range piece;
    limefile_export_range(export, number, offset, &piece);
    if (piece.source != LIMEFILE_EXPORT_OWN)
        return 0;
    *own = (struct iovec){(unsigned char *)piece.own, min_size(piece.bytes, n)};
    return own->iov_len;
}

/* Sets `parts`. Returns how many of the n bytes they hold: not all if some must be computed. */
static size_t find_export_parts(const struct limefs_file *file, size_t n, uint64_t offset,
                                struct export_parts *parts)
{
    const struct limefile_export *export = limefs_export_files(file->export);
    struct limefile_export_range piece;
    *parts = (struct export_parts){0};
    size_t used = add_own_bytes(export, file->number, offset, n, &parts->before);
    if (used < n) {
        limefile_export_range(export, file->number, offset + used, &piece);
        if (piece.source == LIMEFILE_EXPORT_STORED) {
            parts->stored = min_size(piece.bytes, n - used);
            parts->at = piece.at;
            used += parts->stored;
        }
    }
    if (used < n && parts->stored)
        used += add_own_bytes(export, file->number, offset + used, n - used, &parts->after);
    return used;
}

/* Copies own bytes to a buffer of the thread: the result may outlive the export. */
static int copy_own_bytes(struct export_parts *parts)
{
    char *own = limefs_second_thread_buffer(parts->before.iov_len + parts->after.iov_len + 1);
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

/* Adds the export's own bytes before and after the bytes that were read from the record. */
static void add_own_parts(struct limefs_file_result *result, const struct export_parts *parts)
{
    struct iovec iov[LIMEFS_READ_PARTS];
    int count = 0;
    if (parts->before.iov_len)
        iov[count++] = parts->before;
    for (int i = 0; i < result->count; i++)
        iov[count++] = result->iov[i];
    if (parts->after.iov_len)
        iov[count++] = parts->after;
    memcpy(result->iov, iov, (size_t)count * sizeof *iov);
    result->count = count;
}

static ssize_t read_export_parts(struct limefs *fs, struct limefs_file *file, char *buf,
                                 struct export_parts *parts, struct limefs_file_result *result)
{
    int err = parts->before.iov_len + parts->after.iov_len ? copy_own_bytes(parts) : 0;
    if (err)
        return err;
    if (parts->stored) {
        ssize_t got = read_any_record(fs, file, buf, parts->stored, parts->at, result);
        if (got < 0)
            return got;
        if ((size_t)got < parts->stored)
            return LIMEFILE_E_SHRUNK;
    }
    add_own_parts(result, parts);
    return (ssize_t)(parts->before.iov_len + parts->stored + parts->after.iov_len);
}

static ssize_t read_export(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
                           uint64_t offset, struct limefs_file_result *result)
{
    struct limefile_export_entry entry;
    struct export_parts parts;
    limefile_export_entry(limefs_export_files(file->export), file->number, &entry);
    if (offset >= entry.bytes)
        return 0;
    n = min_size(entry.bytes - offset, n);
    int err = limefs_export_validate(fs, file->export);
    if (err)
        return err;
    ssize_t got = find_export_parts(file, n, offset, &parts) == n
                      ? read_export_parts(fs, file, buf, &parts, result)
                      : read_computed_bytes(fs, file, buf, n, offset, result);
    err = limefs_export_validate(fs, file->export); /* the bytes may be newer than the export */
    return err ? err : got;
}

ssize_t limefs_file_read(struct limefs *fs, struct limefs_file *file, size_t n, uint64_t offset,
                         struct limefs_file_result *result)
{
    *result = (struct limefs_file_result){0};
    atomic_fetch_add_explicit(&fs->stats.requests, 1, memory_order_relaxed);
    char *buf = limefs_thread_buffer(n + 2 * LIMEFILE_DIRECT_ALIGN);
    if (!buf)
        return -ENOMEM;
    if (file->export)
        return read_export(fs, file, buf, n, offset, result);
    if (file->snap)
        return read_any_record(fs, file, buf, n, offset, result);
    ssize_t got =
        offset > INT64_MAX ? 0 : limefs_append_read(file->node, file->fd, buf, n, offset);
    return set_result(result, buf, got);
}
