/* rewrite.c - replace a container by a changed copy that is written next to it
 *
 * The new file gets a temporary name when it is complete, synced and locked (on a file system
 * without O_TMPFILE: when it is created). Then a rename gives it the container's name. */
#define _GNU_SOURCE
#include "limeedit.h"
#include "header_bytes.h"
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OWNER_TRIES = 5,  /* attempts to copy owner and mode if another process changes them */
    NAME_TRIES = 100, /* temporary names to try; files of other users may have some of them */
    SUFFIX_MAX = 48,  /* most bytes that a temporary name adds to the container's name */
    BLOCK = 4096,     /* file systems with reflinks can share whole blocks */
};

struct rewrite {
    const struct limefile_rewrite *plan;
    char temporary[NAME_MAX + 1];
    bool has_name;     /* the new file has the temporary name */
    int new_fd;        /* the new file */
    uint64_t at, size; /* bytes of the new file: written so far, and in all */
};

/* ---- bytes ---- */

static void advance_output(void *context, uint64_t n)
{
    struct rewrite *r = context;
    r->at += n;
    if (r->plan->progress)
        r->plan->progress(r->plan->context, r->at, r->size);
}

static int write_bytes(struct rewrite *r, const void *data, size_t n)
{
    int err = limefile_fd_write(r->new_fd, data, n, r->at);
    if (!err)
        advance_output(r, n);
    return err;
}

static int copy_range(struct rewrite *r, int fd, uint64_t offset, uint64_t n)
{
    struct limefile_copy part = {.in = fd,
                                 .in_offset = offset,
                                 .out = r->new_fd,
                                 .out_offset = (int64_t)r->at,
                                 .left = n,
                                 .progress = advance_output,
                                 .context = r};
    return limefile_copy(&part);
}

/* Appends n bytes of fd in three parts. The middle one is whole blocks, which can be shared. */
static int copy_aligned(struct rewrite *r, int fd, uint64_t offset, uint64_t n)
{
    uint64_t head = -offset % BLOCK;
    if (head > n)
        head = n;
    uint64_t body = (n - head) / BLOCK * BLOCK;
    int err = copy_range(r, fd, offset, head);
    if (!err)
        err = copy_range(r, fd, offset + head, body);
    return err ? err : copy_range(r, fd, offset + head + body, n - head - body);
}

/* Extends the new file, which ends at r->at, by n zero bytes. Returns 0 or -errno. */
static int append_zeros(struct rewrite *r, uint64_t n)
{
    if (ftruncate(r->new_fd, (off_t)(r->at + n)) != 0)
        return -errno;
    advance_output(r, n);
    return 0;
}

/* ---- the container ---- */

/* Computes the data length of the record that is changed or inserted; 0 for a removal. */
static int new_length(const struct limefile_rewrite *plan, uint64_t *bytes)
{
    *bytes = plan->insert ? plan->insert->bytes : 0;
    for (size_t i = 0; i < plan->count; i++)
        if (__builtin_add_overflow(*bytes, plan->chunks[i].bytes, bytes))
            return LIMEFILE_E_LENGTH;
    return 0;
}

static int write_changed_record(struct rewrite *r, uint64_t bytes)
{
    const struct limefile_record *record = r->plan->record;
    const struct limefile_chunk *chunks = r->plan->chunks;
    unsigned char word[8];
    int err = copy_aligned(r, r->plan->fd, record->header_offset, AT_BYTES);
    put_be64(word, bytes);
    if (!err)
        err = write_bytes(r, word, sizeof word);
    if (!err)
        err =
            copy_aligned(r, r->plan->fd, record->header_offset + AT_TYPE, LIMEFILE_TYPE_BYTES);
    for (size_t i = 0; !err && i < r->plan->count; i++)
        err = chunks[i].fd < 0
                  ? append_zeros(r, chunks[i].bytes)
                  : copy_aligned(r, chunks[i].fd, chunks[i].offset, chunks[i].bytes);
    return err ? err : append_zeros(r, limefile_padding(bytes));
}

static int change_flags(const struct rewrite *r, uint64_t header, unsigned clear, unsigned set)
{
    unsigned char flags;
    int err = limefile_fd_read_exact(r->new_fd, &flags, 1, header + AT_FLAGS);
    if (err)
        return err;
    flags = (unsigned char)((flags & ~clear) | set);
    return limefile_fd_write(r->new_fd, &flags, 1, header + AT_FLAGS);
}

/* A removed record passes its ME to the record before it, and its MB to the record after it. An
 * inserted record has taken over the ME of plan->record, so this clears that of plan->record.
 */
static int adjust_flags(const struct rewrite *r)
{
    const struct limefile_record *record = r->plan->record;
    struct limefile_record before;
    int err = 0;
    if (r->plan->insert)
        return record->me ? change_flags(r, record->header_offset, FLAG_ME, 0) : 0;
    if (r->plan->chunks)
        return 0;
    if (record->me && limefile_index_get(r->plan->index, record->ordinal - 1, &before) == 0)
        err = change_flags(r, before.header_offset, 0, FLAG_ME);
    if (!err && record->mb && record->ordinal < limefile_index_count(r->plan->index))
        err = change_flags(r, record->header_offset, 0, FLAG_MB);
    return err;
}

static int write_inserted_record(struct rewrite *r)
{
    const struct limefile_new_record *new = r->plan->insert;
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    int err = new->type_len ? 0 : LIMEFILE_E_TYPE;
    if (!err)
        err = limefile_header_init(&header, new->type, new->type_len, new->bytes, false,
                                   r->plan->record->me);
    if (!err)
        err = limefile_header_encode(&header, raw);
    if (!err)
        err = append_zeros(r, r->plan->record->padding);
    if (!err)
        err = write_bytes(r, raw, sizeof raw);
    if (!err)
        err = write_bytes(r, new->data, new->bytes);
    return err ? err : append_zeros(r, limefile_padding(new->bytes));
}

/* Writes the new container: the bytes before the change, the changed record, the rest. */
static int write_container(struct rewrite *r)
{
    const struct limefile_record *record = r->plan->record;
    const struct limefile_new_record *new = r->plan->insert;
    uint64_t data_end = record->data_offset + record->bytes, rest = data_end + record->padding;
    uint64_t size = limefile_index_size(r->plan->index), after = size > rest ? size - rest : 0;
    uint64_t begin = new ? rest : record->header_offset, bytes, end, next;
    int err = new_length(r->plan, &bytes);
    if (!err)
        err = limefile_record_end(begin, bytes, &end, &next);
    if (!err && after > INT64_MAX - next)
        err = LIMEFILE_E_LENGTH;
    if (err)
        return err;
    r->size = (new || r->plan->chunks ? next : begin) + after;
    err = copy_aligned(r, r->plan->fd, 0, new ? data_end : begin);
    if (!err && new)
        err = write_inserted_record(r);
    else if (!err && r->plan->chunks)
        err = write_changed_record(r, bytes);
    if (!err)
        err = copy_aligned(r, r->plan->fd, rest, after);
    if (!err)
        err = append_zeros(r, limefile_padding(r->at)); /* the old file may lack padding here */
    return err ? err : adjust_flags(r);
}

/* ---- names ---- */

/* For a long container name, uses only its beginning and adds the container's inode number. */
static void format_temporary(struct rewrite *r, unsigned attempt, ino_t inode)
{
    char suffix[SUFFIX_MAX] = "", number[16] = "";
    int most = NAME_MAX - SUFFIX_MAX;
    if (strlen(r->plan->name) > (size_t)most)
        snprintf(suffix, sizeof suffix, "~%jx", (uintmax_t)inode);
    if (attempt)
        snprintf(number, sizeof number, "%u", attempt);
    snprintf(r->temporary, sizeof r->temporary, ".%.*s%s.limefs-new%s", most, r->plan->name,
             suffix, number);
}

/* Removes a file with the temporary name, unless another user owns it. Returns true if then no
 * file has this name. */
static bool remove_leftover(const struct rewrite *r, const struct stat *container)
{
    struct stat st;
    if (fstatat(r->plan->dir_fd, r->temporary, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    return S_ISREG(st.st_mode) && (st.st_uid == container->st_uid || st.st_uid == geteuid()) &&
           unlinkat(r->plan->dir_fd, r->temporary, 0) == 0;
}

static int choose_temporary(struct rewrite *r)
{
    struct stat st;
    if (fstat(r->plan->fd, &st) != 0)
        return -errno;
    for (unsigned attempt = 0; attempt < NAME_TRIES; attempt++) {
        format_temporary(r, attempt, st.st_ino);
        if (remove_leftover(r, &st))
            return 0;
    }
    return -EEXIST;
}

/* Returns -ESTALE if plan->name is not the open file itself, but a link or another file. */
static int check_target(const struct rewrite *r)
{
    return limefile_check_name(r->plan->dir_fd, r->plan->name, r->plan->fd);
}

static int create_file(struct rewrite *r)
{
    r->new_fd = openat(r->plan->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (r->new_fd >= 0 || errno == ENOSPC || errno == EDQUOT || errno == EACCES ||
        errno == EROFS)
        return r->new_fd < 0 ? -errno : 0;
    r->new_fd = openat(r->plan->dir_fd, r->temporary,
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    r->has_name = r->new_fd >= 0;
    return r->new_fd < 0 ? -errno : 0;
}

static int link_temporary(struct rewrite *r)
{
    char path[LIMEFILE_FD_PATH_MAX];
    if (r->has_name)
        return 0;
    limefile_fd_path(r->new_fd, path);
    if (linkat(AT_FDCWD, path, r->plan->dir_fd, r->temporary, AT_SYMLINK_FOLLOW) != 0)
        return -errno;
    r->has_name = true;
    return 0;
}

/* Copies owner, mode and attributes as late as possible, and again if they change during the
 * copy: the new file must not restore a permission that a user has just removed. */
static int copy_owner(const struct rewrite *r)
{
    struct stat before, after;
    int err = 0;
    for (int i = 0; i < OWNER_TRIES && !err; i++) {
        if (fstat(r->plan->fd, &before) != 0)
            return -errno;
        err = limefile_attributes_copy(r->plan->fd, r->new_fd);
        if (!err && (fsync(r->new_fd) != 0 || fstat(r->plan->fd, &after) != 0))
            err = -errno;
        if (!err && before.st_ctim.tv_sec == after.st_ctim.tv_sec &&
            before.st_ctim.tv_nsec == after.st_ctim.tv_nsec)
            break;
    }
    return err;
}

/* Syncs and locks the new file, copies the owner, and renames the file over the container. */
static int replace_container(struct rewrite *r)
{
    int err = fsync(r->new_fd) == 0 ? 0 : -errno;
    if (!err) {
        limefile_lock(r->new_fd); /* fails only if the file system has no locks */
        err = check_target(r);
    }
    if (!err)
        err = copy_owner(r);
    if (!err)
        err = link_temporary(r);
    if (!err && renameat(r->plan->dir_fd, r->temporary, r->plan->dir_fd, r->plan->name) != 0)
        err = -errno;
    if (!err)
        r->has_name = false;
    return err;
}

static void discard_new_file(struct rewrite *r)
{
    if (r->has_name)
        unlinkat(r->plan->dir_fd, r->temporary, 0);
    close(r->new_fd);
}

static int check_index(const struct limefile_rewrite *plan)
{
    struct limefile_record known;
    if (limefile_index_fault(plan->index))
        return LIMEFILE_E_STATE;
    int err = limefile_index_get(plan->index, plan->record->ordinal, &known);
    return err || known.header_offset == plan->record->header_offset ? err
                                                                     : LIMEFILE_E_NO_RECORD;
}

int limefile_rewrite(const struct limefile_rewrite *plan, int *new_fd)
{
    struct rewrite r = {.plan = plan, .new_fd = -1};
    *new_fd = -1;
    int err = check_index(plan);
    if (!err)
        err = check_target(&r);
    if (!err)
        err = choose_temporary(&r);
    if (!err)
        err = create_file(&r);
    if (err)
        return err;
    err = write_container(&r);
    if (!err)
        err = replace_container(&r);
    if (err) {
        discard_new_file(&r);
        return err;
    }
    *new_fd = r.new_fd;
    return fsync(plan->dir_fd) == 0 || errno == EINVAL ? 0 : -errno;
}
