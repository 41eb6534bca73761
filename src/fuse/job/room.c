/* room.c - the size that a record which grows gets ahead of the ranks that write it */
#define _GNU_SOURCE
#include "link.h"
#include "store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    AHEAD_MAX = 256 << 20, /* more gains nothing */
    FREE_SHARE = 4,        /* a quarter of what is free on the disk is taken ahead, at most */
};

/* Of the parcel and what follows it, up to `end`; nothing, if the parcel is inside the file. */
static int reserve(int fd, const struct limefs_parcel *parcel, uint64_t end)
{
    struct stat st;
    struct statvfs disk;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size >= parcel->to || fstatvfs(fd, &disk) != 0)
        return 0;
    uint64_t from = (uint64_t)st.st_size > parcel->from ? (uint64_t)st.st_size : parcel->from;
    if (end - from > (uint64_t)disk.f_bavail / FREE_SHARE * disk.f_frsize)
        return 0;
    return fallocate(fd, 0, (off_t)from, (off_t)(end - from));
}

/* How much was gathered in a row before the parcel, which now belongs to it. Holes of an extent
 * are no end of it: parcels of one stream are not always begun in their order. */
static uint64_t lengthen_row(struct limefs_job_view *written,
                             const struct limefs_parcel *parcel, uint64_t extent)
{
    if (written->row_to == 0 || parcel->from > written->row_to + extent ||
        parcel->from < written->row_from)
        written->row_from = written->row_to = parcel->from;
    if (written->row_to < parcel->to)
        written->row_to = parcel->to;
    return parcel->from - written->row_from;
}

void limefs_store_make_room(struct limefs_job *job, struct limefs_parcel *parcel)
{
    struct limefs_job_view *written = parcel->written;
    uint64_t extent = job->forward.extent;
    uint64_t row = lengthen_row(written, parcel, extent);
    uint64_t ahead = row < AHEAD_MAX ? row : AHEAD_MAX;
    if (!written->grows || written->no_room || ahead == 0 || job->greeting.ranks < 2 ||
        job->greeting.hosts > 1)
        return;
    uint64_t end = (parcel->to + ahead + extent - 1) / extent * extent;
    parcel->holds++;
    limefs_unlock(&job->lock);
    bool failed = reserve(written->fd, parcel, end) != 0;
    limefs_lock(&job->lock);
    parcel->holds--;
    written->no_room |= failed; /* who writes tells of it, if it still is so then */
}
