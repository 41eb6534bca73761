/*
 * readface.c - a request for bytes of a face: from the face itself, or from the record
 *
 * What stands in the record as it is goes the record's own way to the reader, whatever backend
 * that takes. What is computed reads the record in the same way, into a buffer, and is made of
 * that.
 */
#include "buffer.h"
#include "file.h"

#include <errno.h>
#include <string.h>

/* The record, while something is computed of it. The library asks for a few sites at a time, so
 * more is read at once: as much as the whole request takes, if all goes in order. */
struct source {
    struct limefs *fs;
    struct limefs_file *file;
    size_t ahead;
    struct limefs_answer answer; /* of the last read, */
    uint64_t at;                 /* which began here */
    size_t n;
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
    ssize_t got =
        limefs_file_read_record(source->fs, source->file, own, want, offset, &source->answer);
    if (got < 0)
        return (int)got;
    source->at = offset;
    source->n = (size_t)got;
    return 0;
}

/* Bytes [from, from + n) of an answer. */
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

/* Bytes of an answer that are in one piece; NULL: they are not. */
static const char *whole_part(const struct limefs_answer *answer, size_t from, size_t n)
{
    for (int i = 0; i < answer->count; from -= answer->iov[i++].iov_len)
        if (from < answer->iov[i].iov_len)
            return n <= answer->iov[i].iov_len - from
                       ? (const char *)answer->iov[i].iov_base + from
                       : NULL;
    return NULL;
}

/* The library's data, as it asks for them. */
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
        n = source->n - from; /* the end */
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
    if (!limefs_face_jumps(file->face)) /* openQCD's order goes to and fro */
        source.ahead = (size_t)((double)n * ratio) + 1;
    ssize_t got = limefile_face_read_lent(limefs_face_files(file->face), file->number, buf, n,
                                          offset, lend_source, &source);
    limefs_answer_release(fs, &source.answer);
    if (got > 0) {
        answer->iov[0] = (struct iovec){buf, (size_t)got};
        answer->count = 1;
    }
    return got;
}

/* Own bytes before, the record's, own bytes after: as many of them as the request takes. */
struct parts {
    struct iovec before, after;
    size_t stored;
    uint64_t at; /* of the stored ones, in the record */
};

static size_t add_own(const struct limefile_face *face, uint64_t number, uint64_t offset,
                      size_t n, struct iovec *own)
{
    struct limefile_face_piece piece;
    limefile_face_piece(face, number, offset, &piece);
    if (piece.what != LIMEFILE_FACE_OWN)
        return 0;
    *own = (struct iovec){(unsigned char *)piece.own, smaller(piece.bytes, n)};
    return own->iov_len;
}

/* How many of the n bytes these are: all, unless the file ends before, or has more parts. */
static size_t find_parts(const struct limefs_file *file, size_t n, uint64_t offset,
                         struct parts *parts)
{
    const struct limefile_face *face = limefs_face_files(file->face);
    struct limefile_face_piece piece;
    *parts = (struct parts){0};
    size_t used = add_own(face, file->number, offset, n, &parts->before);
    if (used < n) {
        limefile_face_piece(face, file->number, offset + used, &piece);
        if (piece.what == LIMEFILE_FACE_STORED) {
            parts->stored = smaller(piece.bytes, n - used);
            parts->at = piece.at;
            used += parts->stored;
        }
    }
    if (used < n && parts->stored)
        used += add_own(face, file->number, offset + used, n - used, &parts->after);
    return used;
}

/* A copy of own bytes: the answer may be looked at for longer than the face is there. */
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

/* Puts own bytes around what was read of the record. */
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
        ssize_t got = limefs_file_read_record(fs, file, buf, parts->stored, parts->at, answer);
        if (got < 0)
            return got;
        if ((size_t)got < parts->stored)
            return LIMEFILE_E_SHRUNK;
    }
    surround(answer, parts);
    return (ssize_t)(parts->before.iov_len + parts->stored + parts->after.iov_len);
}

ssize_t limefs_file_read_face(struct limefs *fs, struct limefs_file *file, char *buf, size_t n,
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
    err = limefs_face_check(fs, file->face); /* what was read may be newer */
    return err ? err : got;
}
