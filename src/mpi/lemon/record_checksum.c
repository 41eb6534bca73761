/*
 * record_checksum.c - compute, and verify, the SciDAC checksum of the open record
 *
 * Each rank stores a sum of its own sites for each lattice call. The ranks combine these sums
 * only on request, so no call that moves data waits for another rank because of a checksum.
 */
#include "array.h"
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Adds the box's sites that are completely in [from, to) of `memory`. first: the index, in
 * the checksum, of the lattice's first site. */
static void sum_box_sites(struct limefile_checksum *sum, const struct lemon_box *box,
                          uint64_t first, const char *memory, int64_t from, int64_t to)
{
    int64_t site = box->site_bytes, run = lemon_box_run_bytes(box);
    struct lemon_box_walk walk;
    if (run == 0)
        return;
    int64_t at = from + (site - from % site) % site, end = to - to % site;
    if (at >= end)
        return;
    lemon_box_walk_init(&walk, box, run, at / run);
    for (int64_t inside = at % run; at < end; inside = 0) {
        int64_t n = smaller(run - inside, end - at);
        limefile_checksum_add(sum, memory + at, (uint64_t)(n / site), (size_t)site,
                              first + (uint64_t)((walk.offset + inside) / site));
        at += n;
        lemon_box_walk_next(&walk);
    }
}

static uint32_t rotate_left(uint32_t value, unsigned by)
{
    return by ? value << by | value >> (32 - by) : value;
}

/* Checksum of sites. Bytes are added in file order, in chunks that may divide sites. */
struct sites_stream {
    struct limefile_checksum sum;
    int64_t site_bytes; /* more than 0 */
    uint64_t index;     /* of the current site */
    int64_t inside;     /* bytes of the current site that are in `crc` */
    uint32_t crc;
};

static void end_site(struct sites_stream *stream)
{
    stream->sum.suma ^= rotate_left(stream->crc, (unsigned)(stream->index % 29));
    stream->sum.sumb ^= rotate_left(stream->crc, (unsigned)(stream->index % 31));
    stream->index++;
    stream->inside = 0;
    stream->crc = 0;
}

static void sum_stream_bytes(struct sites_stream *stream, const char *data, int64_t n)
{
    int64_t site = stream->site_bytes;
    while (n > 0) {
        int64_t sites = stream->inside ? 0 : n / site, bytes = sites * site;
        if (sites == 0) {
            bytes = smaller(site - stream->inside, n);
            stream->crc =
                crc32_gzip_refl(stream->crc, (const unsigned char *)data, (uint64_t)bytes);
            stream->inside += bytes;
            if (stream->inside == site)
                end_site(stream);
        } else {
            limefile_checksum_add(&stream->sum, data, (uint64_t)sites, (size_t)site,
                                  stream->index);
            stream->index += (uint64_t)sites;
        }
        data += bytes;
        n -= bytes;
    }
}

/* ---- while lattices move ---- */

enum {
    THREAD_MIN = 4 << 20, /* bytes; summing fewer is faster than starting a thread */
};

static bool is_summing(const struct lemon_record_sum *sum)
{
    return sum->requested || sum->verify;
}

void lemon_sum_reset(struct lemon_internal *in)
{
    in->sum.count = 0;
    in->sum.origin = 0;
    in->sum.active = false;
}

int lemon_sum_enable(struct lemon_internal *in, int code, int on, int64_t pos)
{
    struct lemon_record_sum *sum = &in->sum;
    int64_t values[1] = {on != 0};
    code = lemon_agree_on(in, code, values, 1);
    if (code != LEMON_SUCCESS)
        return code;
    for (int i = 0; i < sum->count; i++)
        sum->lattices[i].in_checksum = false;
    if (!sum->verify)
        sum->count = 0;
    sum->requested = on != 0;
    sum->origin = pos;
    return LEMON_SUCCESS;
}

int lemon_sum_reserve(struct lemon_internal *in)
{
    struct lemon_record_sum *sum = &in->sum;
    bool ok =
        !is_summing(sum) || limefile_reserve(&sum->lattices, &sum->capacity,
                                             (size_t)sum->count + 1, sizeof *sum->lattices);
    return ok ? LEMON_SUCCESS : lemon_log(in, LEMON_ERR_PARAM, "out of memory");
}

static bool do_overlap(const struct lemon_lattice_sum *a, const struct lemon_lattice_sum *b)
{
    return a->bytes && b->bytes && a->from < b->from + b->bytes && b->from < a->from + a->bytes;
}

static bool is_part_of(const struct lemon_lattice_sum *a, const struct lemon_lattice_sum *b)
{
    return a->from >= b->from && a->from + a->bytes <= b->from + b->bytes;
}

/* Returns whether `added` contains a part, but not all, of an earlier lattice. */
static bool splits_any(const struct lemon_record_sum *sum,
                       const struct lemon_lattice_sum *added)
{
    for (int i = 0; i < sum->count; i++)
        if (do_overlap(&sum->lattices[i], added) && !is_part_of(&sum->lattices[i], added))
            return true;
    return false;
}

/* Sets the index of the lattice's first site. LEMON_ERR_PARAM if the lattice begins inside a
 * site. A lattice that is not in the checksum, but only read back, may have a wrong index,
 * because both sums that are compared use the same index. */
static int set_first_site(const struct lemon_internal *in, struct lemon_lattice_sum *added)
{
    int64_t site = added->site_bytes, distance = added->from - in->sum.origin;
    if (site == 0 || (distance >= 0 && distance % site == 0))
        added->first = site ? (uint64_t)(distance / site) : 0;
    else if (added->in_checksum)
        return lemon_log(
            in, LEMON_ERR_PARAM,
            "checksum: no site of %lld bytes begins at %lld of the record (first: %lld)",
            (long long)site, (long long)added->from, (long long)in->sum.origin);
    return LEMON_SUCCESS;
}

int lemon_sum_begin(struct lemon_internal *in, int64_t pos)
{
    struct lemon_record_sum *sum = &in->sum;
    if (!is_summing(sum))
        return LEMON_SUCCESS;
    sum->current = (struct lemon_lattice_sum){
        .from = pos,
        .bytes = lemon_geometry_bytes(in),
        .site_bytes = in->geometry.grid.site_bytes,
        .in_checksum = sum->requested,
    };
    if (set_first_site(in, &sum->current) != LEMON_SUCCESS)
        return LEMON_ERR_PARAM;
    if (splits_any(sum, &sum->current))
        return lemon_log(in, LEMON_ERR_PARAM,
                         "checksum: it already includes a part of the lattice");
    sum->summed = 0;
    sum->active = true;
    return LEMON_SUCCESS;
}

void lemon_sum_range(struct lemon_internal *in, const char *data, int64_t from, int64_t to)
{
    if (in->sum.active)
        sum_box_sites(&in->sum.current.sum, &in->geometry.box, in->sum.current.first, data,
                      from, to);
}

void lemon_sum_until(struct lemon_internal *in, const char *data, int64_t to)
{
    struct lemon_record_sum *sum = &in->sum;
    if (!sum->active || sum->current.site_bytes == 0 || to <= sum->summed)
        return;
    lemon_sum_range(in, data, sum->summed, to);
    sum->summed = to - to % sum->current.site_bytes;
}

/* Runs in a thread with all signals blocked. Calls no MPI, so MPI needs no thread support. */
static void *sum_own_part(void *argument)
{
    struct lemon_sum_thread *worker = argument;
    lemon_sum_until(worker->in, worker->data, lemon_geometry_local_bytes(worker->in));
    return NULL;
}

void lemon_sum_thread_start(struct lemon_sum_thread *worker, struct lemon_internal *in,
                            const char *data)
{
    sigset_t all, before;
    *worker = (struct lemon_sum_thread){.in = in, .data = data};
    if (!in->sum.active || lemon_geometry_local_bytes(in) < THREAD_MIN)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    worker->started = pthread_create(&worker->thread, NULL, sum_own_part, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void lemon_sum_thread_join(struct lemon_sum_thread *worker)
{
    if (worker->started)
        pthread_join(worker->thread, NULL);
    else
        sum_own_part(worker);
}

void lemon_sum_end(struct lemon_internal *in, int code)
{
    struct lemon_record_sum *sum = &in->sum;
    int count = 0;
    if (!sum->active)
        return;
    sum->active = false;
    if (code != LEMON_SUCCESS)
        return;
    for (int i = 0; i < sum->count; i++)
        if (!do_overlap(&sum->lattices[i], &sum->current))
            sum->lattices[count++] = sum->lattices[i];
    sum->lattices[count++] = sum->current;
    sum->count = count;
}

int lemon_sum_get(struct lemon_internal *in, LemonChecksum *out)
{
    const struct lemon_record_sum *sum = &in->sum;
    uint32_t sums[2] = {0, 0};
    bool any = false;
    for (int i = 0; i < sum->count; i++) {
        if (!sum->lattices[i].in_checksum)
            continue;
        any = true;
        sums[0] ^= sum->lattices[i].sum.suma;
        sums[1] ^= sum->lattices[i].sum.sumb;
    }
    if (!any)
        return lemon_log(in, LEMON_ERR_PARAM, "checksum: no lattice in this record");
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT32_T, MPI_BXOR, in->comm);
    if (out)
        *out = (LemonChecksum){sums[0], sums[1]};
    return LEMON_SUCCESS;
}

/* ---- read back ---- */

/* Each lattice of the record is divided into one range of sites per rank. Each rank reads the
 * next rank's range, which usually other ranks have written. The reads bypass the page cache if
 * the file system supports that. The checksum of all data written XOR the checksum of all data
 * read back must be 0. */
enum {
    READ_BACK_CHUNK = 4 << 20, /* bytes per read */
};

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
            code = lemon_log(in, LEMON_ERR_PARAM, "%s: cannot open for verification: %s", path,
                             strerror(errno));
        else
            back->direct_fd = limefile_open_direct(back->fd);
    } else if (MPI_File_get_amode(*in->file.mpi, &mode) != MPI_SUCCESS ||
               !(mode & MPI_MODE_RDWR)) {
        code =
            lemon_log(in, LEMON_ERR_PARAM, "verification: the file is open for writing only");
    }
    code = lemon_agree(in, code);
    if (code != LEMON_SUCCESS)
        lemon_verify_close(in);
    in->sum.verify = code == LEMON_SUCCESS;
    return code;
}

static int64_t read_back_mpi(struct lemon_internal *in, char *buffer, int64_t n, int64_t offset)
{
    MPI_Status status;
    int got = 0;
    if (MPI_File_read_at(*in->file.mpi, offset, buffer, (int)n, MPI_BYTE, &status) !=
        MPI_SUCCESS)
        return -1;
    MPI_Get_count(&status, MPI_BYTE, &got);
    return got;
}

/* Reads with O_DIRECT or, if the file system rejects that, after dropping cached pages. */
static int64_t read_back_fd(struct lemon_read_back *back, char *buf, int64_t n, int64_t offset)
{
    ssize_t got;
    do {
        int fd = back->direct_fd >= 0 ? back->direct_fd : back->fd;
        if (back->direct_fd < 0)
            posix_fadvise(fd, offset, n, POSIX_FADV_DONTNEED);
        got = pread(fd, buf, (size_t)n, offset);
        if (got < 0 && errno == EINVAL && back->direct_fd >= 0) {
            close(back->direct_fd);
            back->direct_fd = -1;
            errno = EINTR;
        }
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Reads bytes [at, to) of the file into `buffer`, or only the first of these bytes. Sets *data
 * to the address of byte `at`. Returns the number of bytes, 0 at the end of the file, or -1. */
static int64_t read_back_blocks(struct lemon_internal *in, char *buffer, int64_t at, int64_t to,
                                const char **data)
{
    int64_t block = in->read_back.fd >= 0 ? LIMEFILE_DIRECT_ALIGN : 1;
    int64_t from = at - at % block, n = smaller(to - from, READ_BACK_CHUNK);
    n = (n + block - 1) / block * block;
    int64_t got = in->read_back.fd >= 0 ? read_back_fd(&in->read_back, buffer, n, from)
                                        : read_back_mpi(in, buffer, n, from);
    *data = buffer + (at - from);
    if (got < 0)
        return got;
    if (from + got > to)
        got = to - from;
    return from + got > at ? from + got - at : 0;
}

static int read_back_range(struct lemon_internal *in, char *buffer, int64_t at, int64_t to,
                           struct sites_stream *stream)
{
    while (at < to) {
        const char *data;
        int64_t got = read_back_blocks(in, buffer, at, to, &data);
        if (got < 0)
            return lemon_log(in, LEMON_ERR_READ, "verification: cannot read at %lld",
                             (long long)at);
        if (got == 0)
            return lemon_log(in, LEMON_ERR_CHECKSUM,
                             "verification: the file ends at %lld, before the end of the data",
                             (long long)at);
        sum_stream_bytes(stream, data, got);
        at += got;
    }
    return LEMON_SUCCESS;
}

/* Reads the next rank's share of a lattice's sites, and adds their checksum to *sum. */
static int read_back_share(struct lemon_internal *in, char *buffer, int64_t base,
                           const struct lemon_lattice_sum *lattice,
                           struct limefile_checksum *sum)
{
    int64_t first, sites, site = lattice->site_bytes;
    if (site == 0)
        return LEMON_SUCCESS;
    lemon_box_split(lattice->bytes / site, in->ranks, (in->rank + 1) % in->ranks, &first,
                    &sites);
    struct sites_stream stream = {
        .site_bytes = site,
        .index = lattice->first + (uint64_t)first,
    };
    int64_t from = base + lattice->from + first * site;
    int code = read_back_range(in, buffer, from, from + sites * site, &stream);
    sum->suma ^= stream.sum.suma;
    sum->sumb ^= stream.sum.sumb;
    return code;
}

static int read_back_lattices(struct lemon_internal *in, char *buffer, int64_t base,
                              struct limefile_checksum *sum)
{
    int code = LEMON_SUCCESS;
    for (int i = 0; i < in->sum.count && code == LEMON_SUCCESS; i++)
        code = read_back_share(in, buffer, base, &in->sum.lattices[i], sum);
    return code;
}

int lemon_verify_record(struct lemon_internal *in, int64_t base)
{
    struct limefile_checksum sum = {0, 0};
    if (in->sum.count == 0)
        return LEMON_SUCCESS;
    size_t bytes = READ_BACK_CHUNK + LIMEFILE_DIRECT_ALIGN;
    void *buffer = limefile_buffer_new(&bytes);
    int code = buffer ? read_back_lattices(in, buffer, base, &sum)
                      : lemon_log(in, LEMON_ERR_READ, "verification: out of memory");
    free(buffer);
    for (int i = 0; i < in->sum.count; i++) {
        sum.suma ^= in->sum.lattices[i].sum.suma;
        sum.sumb ^= in->sum.lattices[i].sum.sumb;
    }
    uint32_t sums[2] = {sum.suma, sum.sumb};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT32_T, MPI_BXOR, in->comm);
    code = lemon_agree(in, code);
    if (code == LEMON_SUCCESS && (sums[0] || sums[1]))
        code = lemon_log(in, LEMON_ERR_CHECKSUM,
                         "verification: the record at %lld differs from the data written",
                         (long long)base);
    return code;
}
