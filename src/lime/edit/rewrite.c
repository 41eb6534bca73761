/*
 * rewrite.c - write a changed copy of a container next to the old one and rename it over it
 *
 * The new file has no name until it is complete, synced and locked (O_TMPFILE). On a file
 * system without O_TMPFILE it has the temporary name from the beginning.
 */
#define _GNU_SOURCE
#include "limeedit.h"
#include "bytes.h"
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OWNER_TRIES = 5,
    NAME_TRIES = 100, /* attempts, if other users own files with the temporary name */
    END_MAX = 48,     /* bytes that the temporary name adds at most */
    BLOCK = 4096,     /* file systems with reflinks can share whole blocks */
};

struct rewrite {
    const struct limefile_rewrite *is;
    char temporary[NAME_MAX + 1];
    bool named;        /* the file has the temporary name */
    int to;            /* the new container */
    uint64_t at, size; /* bytes written so far; bytes of the whole new file */
};

/* ---- bytes ---- */

static void advance(void *context, uint64_t n)
{
    struct rewrite *r = context;
    r->at += n;
    if (r->is->progress)
        r->is->progress(r->is->context, r->at, r->size);
}

static int put(struct rewrite *r, const void *data, size_t n)
{
    int err = limefile_fd_write(r->to, data, n, r->at);
    if (!err)
        advance(r, n);
    return err;
}

static int copy_part(struct rewrite *r, int fd, uint64_t offset, uint64_t n)
{
    struct limefile_copy part = {.in = fd,
                                 .in_offset = offset,
                                 .out = r->to,
                                 .out_offset = (int64_t)r->at,
                                 .left = n,
                                 .moved = advance,
                                 .context = r};
    return limefile_copy(&part);
}

/* Copies in three parts, of which the middle one consists of whole blocks. */
static int copy(struct rewrite *r, int fd, uint64_t offset, uint64_t n)
{
    uint64_t head = -offset % BLOCK;
    if (head > n)
        head = n;
    uint64_t body = (n - head) / BLOCK * BLOCK;
    int err = copy_part(r, fd, offset, head);
    if (!err)
        err = copy_part(r, fd, offset + head, body);
    return err ? err : copy_part(r, fd, offset + head + body, n - head - body);
}

static int put_zeros(struct rewrite *r, uint64_t n)
{
    if (ftruncate(r->to, (off_t)(r->at + n)) != 0)
        return -errno;
    advance(r, n);
    return 0;
}

/* ---- the container ---- */

/* Computes the data length of the record that is changed or inserted. */
static int length_of(const struct limefile_rewrite *is, uint64_t *bytes)
{
    *bytes = is->insert ? is->insert->bytes : 0;
    for (size_t i = 0; i < is->count; i++)
        if (__builtin_add_overflow(*bytes, is->pieces[i].bytes, bytes))
            return LIMEFILE_E_LENGTH;
    return 0;
}

static int put_record(struct rewrite *r, uint64_t bytes)
{
    const struct limefile_record *record = r->is->record;
    const struct limefile_piece *pieces = r->is->pieces;
    unsigned char word[8];
    int err = copy(r, r->is->fd, record->header_offset, AT_BYTES);
    put_be64(word, bytes);
    if (!err)
        err = put(r, word, sizeof word);
    if (!err)
        err = copy(r, r->is->fd, record->header_offset + AT_TYPE, LIMEFILE_TYPE_BYTES);
    for (size_t i = 0; !err && i < r->is->count; i++)
        err = pieces[i].fd < 0 ? put_zeros(r, pieces[i].bytes)
                               : copy(r, pieces[i].fd, pieces[i].offset, pieces[i].bytes);
    return err ? err : put_zeros(r, limefile_padding(bytes));
}

/* Changes bits of a flags byte in the new file, which no reader has open yet. */
static int change_flags(const struct rewrite *r, uint64_t header, unsigned clear, unsigned set)
{
    unsigned char flags;
    int err = limefile_fd_read_exact(r->to, &flags, 1, header + AT_FLAGS);
    if (err)
        return err;
    flags = (unsigned char)((flags & ~clear) | set);
    return limefile_fd_write(r->to, &flags, 1, header + AT_FLAGS);
}

/* The neighbours inherit the flags of a removed record. An inserted record ends the message
 * instead of the one before it. */
static int settle_flags(const struct rewrite *r)
{
    const struct limefile_record *record = r->is->record;
    struct limefile_record before;
    int err = 0;
    if (r->is->insert)
        return record->me ? change_flags(r, record->header_offset, FLAG_ME, 0) : 0;
    if (r->is->pieces)
        return 0;
    if (record->me && limefile_index_get(r->is->index, record->ordinal - 1, &before) == 0)
        err = change_flags(r, before.header_offset, 0, FLAG_ME);
    if (!err && record->mb && record->ordinal < limefile_index_count(r->is->index))
        err = change_flags(r, record->header_offset, 0, FLAG_MB);
    return err;
}

static int put_new(struct rewrite *r)
{
    const struct limefile_insert *new = r->is->insert;
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    int err = new->type_len ? 0 : LIMEFILE_E_TYPE;
    if (!err)
        err = limefile_header_init(&header, new->type, new->type_len, new->bytes, false,
                                   r->is->record->me);
    if (!err)
        err = limefile_header_encode(&header, raw);
    if (!err)
        err = put_zeros(r, r->is->record->padding);
    if (!err)
        err = put(r, raw, sizeof raw);
    if (!err)
        err = put(r, new->data, new->bytes);
    return err ? err : put_zeros(r, limefile_padding(new->bytes));
}

static int fill(struct rewrite *r)
{
    const struct limefile_record *record = r->is->record;
    const struct limefile_insert *new = r->is->insert;
    uint64_t data_end = record->data_offset + record->bytes, rest = data_end + record->padding;
    uint64_t size = limefile_index_size(r->is->index), behind = size > rest ? size - rest : 0;
    uint64_t begin = new ? rest : record->header_offset, bytes, end, next;
    int err = length_of(r->is, &bytes);
    if (!err)
        err = limefile_extent_of(begin, bytes, &end, &next);
    if (!err && behind > INT64_MAX - next)
        err = LIMEFILE_E_LENGTH;
    if (err)
        return err;
    r->size = (new || r->is->pieces ? next : begin) + behind;
    err = copy(r, r->is->fd, 0, new ? data_end : begin);
    if (!err && new)
        err = put_new(r);
    else if (!err && r->is->pieces)
        err = put_record(r, bytes);
    if (!err)
        err = copy(r, r->is->fd, rest, behind);
    if (!err)
        err = put_zeros(r, limefile_padding(r->at)); /* the old end may lack its padding */
    return err ? err : settle_flags(r);
}

/* ---- names ---- */

/* The inode distinguishes long names with the same beginning. */
static void name_temporary(struct rewrite *r, unsigned attempt, ino_t inode)
{
    char end[END_MAX] = "", number[16] = "";
    int most = NAME_MAX - END_MAX;
    if (strlen(r->is->name) > (size_t)most)
        snprintf(end, sizeof end, "~%jx", (uintmax_t)inode);
    if (attempt)
        snprintf(number, sizeof number, "%u", attempt);
    snprintf(r->temporary, sizeof r->temporary, ".%.*s%s.limefs-new%s", most, r->is->name, end,
             number);
}

/* Removes the file that a crash has left, but not a file that may belong to another user. */
static bool is_free(const struct rewrite *r, const struct stat *container)
{
    struct stat st;
    if (fstatat(r->is->folder, r->temporary, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    return S_ISREG(st.st_mode) && (st.st_uid == container->st_uid || st.st_uid == geteuid()) &&
           unlinkat(r->is->folder, r->temporary, 0) == 0;
}

static int choose_temporary(struct rewrite *r)
{
    struct stat st;
    if (fstat(r->is->fd, &st) != 0)
        return -errno;
    for (unsigned attempt = 0; attempt < NAME_TRIES; attempt++) {
        name_temporary(r, attempt, st.st_ino);
        if (is_free(r, &st))
            return 0;
    }
    return -EEXIST;
}

/* Fails unless the name still belongs to the open file, and not to a link or another file. */
static int check_name(const struct rewrite *r)
{
    return limefile_check_name(r->is->folder, r->is->name, r->is->fd);
}

static int create(struct rewrite *r)
{
    r->to = openat(r->is->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (r->to >= 0 || errno == ENOSPC || errno == EDQUOT || errno == EACCES || errno == EROFS)
        return r->to < 0 ? -errno : 0;
    r->to = openat(r->is->folder, r->temporary,
                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    r->named = r->to >= 0;
    return r->to < 0 ? -errno : 0;
}

static int give_name(struct rewrite *r)
{
    char path[LIMEFILE_FD_PATH_MAX];
    if (r->named)
        return 0;
    limefile_fd_path(r->to, path);
    if (linkat(AT_FDCWD, path, r->is->folder, r->temporary, AT_SYMLINK_FOLLOW) != 0)
        return -errno;
    r->named = true;
    return 0;
}

/* Copies the owner and the rights as late as possible, and again if they change in the
 * meantime: the new file must not restore rights that a user is taking away. */
static int keep_owner(const struct rewrite *r)
{
    struct stat before, after;
    int err = 0;
    for (int i = 0; i < OWNER_TRIES && !err; i++) {
        if (fstat(r->is->fd, &before) != 0)
            return -errno;
        err = limefile_owner_copy(r->is->fd, r->to);
        if (!err && (fsync(r->to) != 0 || fstat(r->is->fd, &after) != 0))
            err = -errno;
        if (!err && before.st_ctim.tv_sec == after.st_ctim.tv_sec &&
            before.st_ctim.tv_nsec == after.st_ctim.tv_nsec)
            break;
    }
    return err;
}

/* The new file is complete, synced and locked before another process can see it. */
static int replace(struct rewrite *r)
{
    int err = fsync(r->to) == 0 ? 0 : -errno;
    if (!err) {
        limefile_lock(r->to); /* fails only if the file system has no locks */
        err = check_name(r);
    }
    if (!err)
        err = keep_owner(r);
    if (!err)
        err = give_name(r);
    if (!err && renameat(r->is->folder, r->temporary, r->is->folder, r->is->name) != 0)
        err = -errno;
    if (!err)
        r->named = false;
    return err;
}

static void abandon(struct rewrite *r)
{
    if (r->named)
        unlinkat(r->is->folder, r->temporary, 0);
    close(r->to);
}

static int check_record(const struct limefile_rewrite *is)
{
    struct limefile_record known;
    if (limefile_index_fault(is->index))
        return LIMEFILE_E_STATE;
    int err = limefile_index_get(is->index, is->record->ordinal, &known);
    return err || known.header_offset == is->record->header_offset ? err : LIMEFILE_E_NO_RECORD;
}

int limefile_rewrite(const struct limefile_rewrite *is, int *new_fd)
{
    struct rewrite r = {.is = is, .to = -1};
    *new_fd = -1;
    int err = check_record(is);
    if (!err)
        err = check_name(&r);
    if (!err)
        err = choose_temporary(&r);
    if (!err)
        err = create(&r);
    if (err)
        return err;
    err = fill(&r);
    if (!err)
        err = replace(&r);
    if (err) {
        abandon(&r);
        return err;
    }
    *new_fd = r.to;
    return fsync(is->folder) == 0 || errno == EINVAL ? 0 : -errno;
}
