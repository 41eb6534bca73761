/*
 * verify.c - what was written, read back by another way and by other ranks
 *
 * The lattices of the record are cut into one range of sites for each rank, and each rank reads
 * that of its neighbour: around the page cache, where the file system can do that. The XOR of
 * all that was sent and all that was read is zero, or something is wrong.
 */
#include "internal.h"
#include "sums.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    CHUNK = 4 << 20, /* read at once */
};

/* ---- where from ---- */

void lemon_verify_close(struct lemon_internal *in)
{
    struct lemon_read_back *back = &in->read_back;
    if (back->fd >= 0)
        close(back->fd);
    if (back->direct_fd >= 0)
        close(back->direct_fd);
    back->fd = back->direct_fd = -1;
    in->sum.verify = false;
}

int lemon_verify_open(struct lemon_internal *in, const char *path)
{
    struct lemon_read_back *back = &in->read_back;
    int code = LEMON_SUCCESS, mode = 0;
    lemon_verify_close(in);
    if (path) {
        back->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (back->fd < 0)
            code = lemon_say(in, LEMON_ERR_PARAM, "%s cannot be read back: %s", path,
                             strerror(errno));
        else
            back->direct_fd = limefile_open_direct(back->fd);
    } else if (MPI_File_get_amode(*in->file.mpi, &mode) != MPI_SUCCESS ||
               !(mode & MPI_MODE_RDWR)) {
        code = lemon_say(in, LEMON_ERR_PARAM,
                         "a file that is open for writing only cannot be read back");
    }
    code = lemon_agree(in, code);
    if (code != LEMON_SUCCESS)
        lemon_verify_close(in);
    in->sum.verify = code == LEMON_SUCCESS;
    return code;
}

/* ---- one chunk ---- */

static int64_t read_mpi(struct lemon_internal *in, char *buffer, int64_t n, int64_t offset)
{
    MPI_Status status;
    int got = 0;
    if (MPI_File_read_at(*in->file.mpi, offset, buffer, (int)n, MPI_BYTE, &status) !=
        MPI_SUCCESS)
        return -1;
    MPI_Get_count(&status, MPI_BYTE, &got);
    return got;
}

/* The file system may refuse what it has opened: then through the page cache, emptied. */
static int64_t read_posix(struct lemon_read_back *back, char *buffer, int64_t n, int64_t offset)
{
    ssize_t got;
    do {
        int fd = back->direct_fd >= 0 ? back->direct_fd : back->fd;
        if (back->direct_fd < 0)
            posix_fadvise(fd, offset, n, POSIX_FADV_DONTNEED);
        got = pread(fd, buffer, (size_t)n, offset);
        if (got < 0 && errno == EINVAL && back->direct_fd >= 0) {
            close(back->direct_fd);
            back->direct_fd = -1;
            errno = EINTR;
        }
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Bytes [at, to) of the file, or the first of them, in whole blocks of it; *data becomes where
 * they are. How many, 0 at the end of the file, -1. */
static int64_t read_some(struct lemon_internal *in, char *buffer, int64_t at, int64_t to,
                         const char **data)
{
    int64_t block = in->read_back.fd >= 0 ? LIMEFILE_DIRECT_ALIGN : 1;
    int64_t from = at - at % block, n = to - from < CHUNK ? to - from : CHUNK;
    n = (n + block - 1) / block * block;
    int64_t got = in->read_back.fd >= 0 ? read_posix(&in->read_back, buffer, n, from)
                                        : read_mpi(in, buffer, n, from);
    *data = buffer + (at - from);
    if (got < 0)
        return got;
    if (from + got > to)
        got = to - from;
    return from + got > at ? from + got - at : 0;
}

/* ---- all of it ---- */

static int read_range(struct lemon_internal *in, char *buffer, int64_t at, int64_t to,
                      struct lemon_sums_stream *stream)
{
    while (at < to) {
        const char *data;
        int64_t got = read_some(in, buffer, at, to, &data);
        if (got < 0)
            return lemon_say(in, LEMON_ERR_READ, "at %lld, reading back: failed",
                             (long long)at);
        if (got == 0)
            return lemon_say(in, LEMON_ERR_CHECKSUM,
                             "reading back: the file ends at %lld, before what was written",
                             (long long)at);
        lemon_sums_feed(stream, data, got);
        at += got;
    }
    return LEMON_SUCCESS;
}

/* The neighbour's share of the sites in a run of lattices. */
static int read_share(struct lemon_internal *in, char *buffer, int64_t base,
                      const struct lemon_summed *run, struct limefile_checksum *sum)
{
    int64_t first, sites, site = run->site_bytes;
    if (site == 0)
        return LEMON_SUCCESS;
    lemon_box_split(run->bytes / site, in->ranks, (in->rank + 1) % in->ranks, &first, &sites);
    struct lemon_sums_stream stream = {
        .site_bytes = site,
        .rank = run->first + (uint64_t)first,
    };
    int64_t from = base + run->from + first * site;
    int code = read_range(in, buffer, from, from + sites * site, &stream);
    sum->suma ^= stream.sum.suma;
    sum->sumb ^= stream.sum.sumb;
    return code;
}

static bool goes_on(const struct lemon_summed *run, const struct lemon_summed *next)
{
    return run->site_bytes && next->site_bytes == run->site_bytes &&
           next->from == run->from + run->bytes &&
           next->first == run->first + (uint64_t)(run->bytes / run->site_bytes);
}

/* Lattices that follow each other are read as one. */
static int read_all(struct lemon_internal *in, char *buffer, int64_t base,
                    struct limefile_checksum *sum)
{
    const struct lemon_record_sum *all = &in->sum;
    int code = LEMON_SUCCESS;
    for (int i = 0; i < all->count && code == LEMON_SUCCESS;) {
        struct lemon_summed run = all->lattices[i++];
        while (i < all->count && goes_on(&run, &all->lattices[i]))
            run.bytes += all->lattices[i++].bytes;
        code = read_share(in, buffer, base, &run, sum);
    }
    return code;
}

int lemon_verify(struct lemon_internal *in, int64_t base)
{
    struct limefile_checksum sum = {0, 0};
    if (in->sum.count == 0)
        return LEMON_SUCCESS;
    size_t bytes = CHUNK + LIMEFILE_DIRECT_ALIGN;
    void *buffer = limefile_buffer_new(&bytes);
    int code = buffer ? read_all(in, buffer, base, &sum)
                      : lemon_say(in, LEMON_ERR_READ, "no memory for reading back");
    free(buffer);
    for (int i = 0; i < in->sum.count; i++) {
        sum.suma ^= in->sum.lattices[i].sum.suma;
        sum.sumb ^= in->sum.lattices[i].sum.sumb;
    }
    uint32_t both[2] = {sum.suma, sum.sumb};
    MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_UINT32_T, MPI_BXOR, in->comm);
    code = lemon_agree(in, code);
    if (code == LEMON_SUCCESS && (both[0] || both[1]))
        code = lemon_say(in, LEMON_ERR_CHECKSUM,
                         "the record at %lld, read back, is not what was written",
                         (long long)base);
    return code;
}
