/*
 * journal.c - how far a temporary file is synced
 *
 * Two slots of 512 bytes, written in turn, each one line of text with its own CRC: one of the
 * two is whole whatever happens. It is written after the bytes that it speaks of are synced. It
 * also says what their CRC was, so what is found there later is believed only if it has the
 * same.
 */
#define _GNU_SOURCE
#include "descriptor.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SLOT_BYTES = 512,
};

static uint32_t crc_of(const char *text, size_t n)
{
    return crc32_gzip_refl(0, (const unsigned char *)text, n);
}

struct entry {
    uint64_t sequence, temp_inode, kept;
    uint32_t crc;
    struct limefile_identity source;
};

static bool parse(const char *slot, struct entry *e)
{
    uint32_t sum;
    int text;
    int64_t mtime, ctime;
    int got =
        sscanf(slot,
               "limefs-stage 1 %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNx32 " %" SCNu64
               " %" SCNd64 " %" SCNd64 ".%ld %" SCNd64 ".%ld%n sum %" SCNx32,
               &e->sequence, &e->temp_inode, &e->kept, &e->crc, &e->source.ino, &e->source.size,
               &mtime, &e->source.mtime.tv_nsec, &ctime, &e->source.ctime.tv_nsec, &text, &sum);
    if (got == 11)
        e->source.mtime.tv_sec = mtime, e->source.ctime.tv_sec = ctime;
    return got == 11 && sum == crc_of(slot, (size_t)text);
}

static int format(char slot[SLOT_BYTES], const struct entry *e)
{
    int n = snprintf(slot, SLOT_BYTES,
                     "limefs-stage 1 %" PRIu64 " %" PRIu64 " %" PRIu64 " %08" PRIx32 " %" PRIu64
                     " %" PRId64 " %jd.%09ld %jd.%09ld",
                     e->sequence, e->temp_inode, e->kept, e->crc, e->source.ino, e->source.size,
                     (intmax_t)e->source.mtime.tv_sec, e->source.mtime.tv_nsec,
                     (intmax_t)e->source.ctime.tv_sec, e->source.ctime.tv_nsec);
    if (n < 0 || n > SLOT_BYTES - 32)
        return -EOVERFLOW;
    snprintf(slot + n, (size_t)(SLOT_BYTES - n), " sum %08" PRIx32 "\n",
             crc_of(slot, (size_t)n));
    return 0;
}

static int open_journal(const struct stage_target *t, int flags)
{
    struct stat st;
    int fd =
        limefile_open_at(t->folder, t->journal, O_RDWR | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_nlink == 1)
        return fd;
    close(fd);
    return -EPERM;
}

int stage_journal_load(struct stage_target *t, uint64_t temp_inode,
                       const struct limefile_identity *source)
{
    char text[2 * SLOT_BYTES + 1] = {0};
    struct entry best = {0};
    int fd = open_journal(t, 0);
    if (fd < 0)
        return fd;
    ssize_t got = pread(fd, text, 2 * SLOT_BYTES, 0);
    for (int i = 0; i < 2 && got >= SLOT_BYTES * (i + 1); i++) {
        struct entry e;
        char slot[SLOT_BYTES + 1] = {0};
        memcpy(slot, text + i * SLOT_BYTES, SLOT_BYTES);
        if (parse(slot, &e) && e.sequence > best.sequence)
            best = e;
    }
    t->journal_fd = fd;
    t->sequence = best.sequence; /* also of one that does not fit: the next one counts more */
    if (!best.sequence || best.temp_inode != temp_inode || best.kept > (uint64_t)source->size ||
        !stage_identity_agrees(&best.source, source))
        return -ENOENT;
    t->kept = best.kept;
    t->kept_crc = best.crc;
    return 0;
}

int stage_journal_store(struct stage_target *t, uint64_t temp_inode,
                        const struct limefile_identity *source, uint64_t bytes, uint32_t crc)
{
    char slot[SLOT_BYTES] = {0};
    struct entry e = {t->sequence + 1, temp_inode, bytes, crc, *source};
    int err = format(slot, &e);
    if (!err && t->journal_fd < 0) {
        t->journal_fd = open_journal(t, O_CREAT);
        err = t->journal_fd < 0 ? t->journal_fd : 0;
    }
    if (err)
        return err;
    err = limefile_fd_write(t->journal_fd, slot, SLOT_BYTES, e.sequence % 2 * SLOT_BYTES);
    if (!err && fdatasync(t->journal_fd) != 0)
        err = -errno;
    if (!err && t->sequence == 0 && fsync(t->folder) != 0 && errno != EINVAL)
        err = -errno;
    if (!err)
        t->sequence = e.sequence;
    return err;
}
