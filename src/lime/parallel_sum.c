/*
 * parallel_sum.c - compute the SciDAC checksum or the cksum of a record, with all processors
 *
 * Threads take units of whole sites in any order, which does not affect the sum. Bytes in the
 * page cache are read in steps that fit a core's L2 cache. Other bytes are read by direct I/O,
 * a unit at a time. At least DISK_THREADS threads do so, to keep the disk busy. The file is not
 * mapped, because another process could truncate it. docs/performance.md has figures.
 */
#define _GNU_SOURCE
#include "checksum.h"
#include "cksum.h"
#include "limeildg.h"
#include "threads.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    UNIT_BYTES = 1 << 20,    /* bytes that a thread takes at a time, or one larger site */
    STEP_BYTES = 256 * 1024, /* bytes that are read from the page cache at a time */
    DISK_THREADS = 8,        /* minimum number of threads for direct I/O */
    THREADS_MAX = 1024,
    PROBES = 16, /* parts of a record whose presence in the page cache is tested */
};

/* ---- ranks ---- */

/* Returns the number, in the whole lattice, of a site of a box. *row is how many sites, from
 * this one on, have consecutive ranks. */
static uint64_t box_rank(const struct limefile_field *f, uint64_t site, uint64_t *row)
{
    uint64_t rank = 0, stride = 1;
    *row = 1;
    for (unsigned d = 0; d < f->lattice.dims; d++) {
        uint64_t extent = f->upper[d] - f->lower[d] + 1, at = extent ? site % extent : 0;
        if (d == 0)
            *row = extent - at;
        site = extent ? site / extent : 0;
        rank += (f->lower[d] + at) * stride;
        stride *= f->lattice.extent[d];
    }
    return rank;
}

void limefile_field_add_sites(const struct limefile_field *f, struct limefile_checksum *sum,
                              const void *data, uint64_t first, uint64_t sites)
{
    const unsigned char *at = data;
    uint64_t row = sites, rank = first;
    for (; sites; sites -= row, first += row, at += row * f->site_bytes) {
        if (f->is_box)
            rank = box_rank(f, first, &row);
        if (row > sites || row == 0)
            row = sites;
        limefile_checksum_add(sum, at, row, (size_t)f->site_bytes, rank);
    }
}

/* ---- the work of all threads ---- */

struct sum_thread;

struct sum_work {
    const struct limefile_field *field;
    /* Adds sites [first, first + sites) to a thread's sum: each site once, in any order. */
    void (*add)(struct sum_thread *, const void *data, uint64_t first, uint64_t sites);
    const struct cksum_powers *powers; /* for a cksum; otherwise NULL */
    struct limefile_source *source;
    int fd, direct; /* descriptors of the source's file; `direct` has O_DIRECT; -1: none */
    uint64_t unit;  /* number of sites that a thread takes at a time */
    size_t buffer_bytes;
    _Atomic uint64_t next; /* first site that no thread has taken */
    atomic_int err;        /* the first error; all threads stop */
    limefile_sum_progress_fn *progress;
    void *context;
    _Atomic uint64_t unreported; /* bytes not yet reported to progress */
    pthread_mutex_t progress_mutex;
    pthread_mutex_t sum_mutex;
    struct limefile_checksum sum; /* sum of the threads that have ended */
};

/* The state of one thread. */
struct sum_thread {
    struct sum_work *work;
    unsigned char *buffer;
    struct limefile_checksum sum;
    struct limefile_cksum part; /* cksum of consecutive bytes */
    uint64_t part_end;          /* end of these bytes */
};

static void report_progress(struct sum_work *w, uint64_t bytes)
{
    if (!w->progress)
        return;
    atomic_fetch_add(&w->unreported, bytes);
    if (pthread_mutex_trylock(&w->progress_mutex) != 0)
        return; /* The thread with the mutex, or a later call, reports these bytes. */
    uint64_t more = atomic_exchange(&w->unreported, 0);
    int none = 0;
    if (more && !w->progress(w->context, more))
        atomic_compare_exchange_strong(&w->err, &none, -EINTR);
    pthread_mutex_unlock(&w->progress_mutex);
}

/* ---- reading ---- */

/* Reads bytes by direct I/O. Returns NULL if they are in the page cache, or after an error. */
static const unsigned char *try_direct(const struct sum_thread *s, uint64_t offset, size_t n)
{
    const char *bytes;
    if (s->work->direct < 0 || limefile_is_cached(s->work->fd, offset, n))
        return NULL;
    ssize_t got = limefile_read_direct(s->work->direct, (char *)s->buffer, n, offset, &bytes);
    return got == (ssize_t)n ? (const unsigned char *)bytes : NULL;
}

/* ---- summing ---- */

static void add_crcs(struct sum_thread *s, const void *data, uint64_t first, uint64_t sites)
{
    limefile_field_add_sites(s->work->field, &s->sum, data, first, sites);
}

/* Adds the cksum of the consecutive bytes in `part` to the thread's sum, and empties `part`.
 * For a cksum, the sum is in `suma`, and each byte is a site. */
static void finish_part(struct sum_thread *s)
{
    uint64_t behind = s->work->field->sites - s->part_end;
    s->sum.suma ^= cksum_shift(s->work->powers, s->part.crc, behind);
    s->part = (struct limefile_cksum){0};
}

static void add_cksum(struct sum_thread *s, const void *data, uint64_t first, uint64_t n)
{
    if (s->part.bytes && s->part_end != first)
        finish_part(s);
    limefile_cksum_add(&s->part, data, (size_t)n);
    s->part_end = first + n;
}

static int sum_sites(struct sum_thread *s, uint64_t first, uint64_t sites)
{
    const struct limefile_field *f = s->work->field;
    uint64_t offset = f->record.data_offset + first * f->site_bytes;
    const unsigned char *data = try_direct(s, offset, (size_t)(sites * f->site_bytes));
    if (data) {
        s->work->add(s, data, first, sites);
        return 0;
    }
    uint64_t step = STEP_BYTES / f->site_bytes;
    int err = 0;
    for (step = step ? step : 1; !err && sites; sites -= step, first += step) {
        if (step > sites)
            step = sites;
        err = limefile_read_exact(s->work->source, s->buffer, (size_t)(step * f->site_bytes),
                                  offset);
        if (!err)
            s->work->add(s, s->buffer, first, step);
        offset += step * f->site_bytes;
    }
    return err;
}

/* Adds one site that is larger than a unit. */
static int sum_large(struct sum_thread *s, uint64_t site)
{
    const struct limefile_field *f = s->work->field;
    uint64_t at = f->record.data_offset + site * f->site_bytes, end = at + f->site_bytes, row;
    uint32_t crc = 0;
    while (at < end && !atomic_load(&s->work->err)) {
        size_t n = end - at < UNIT_BYTES ? (size_t)(end - at) : UNIT_BYTES;
        const unsigned char *data = try_direct(s, at, n);
        int err = data ? 0 : limefile_read_exact(s->work->source, s->buffer, n, at);
        if (err)
            return err;
        crc = crc32_gzip_refl(crc, data ? data : s->buffer, n);
        report_progress(s->work, n);
        at += n;
    }
    checksum_add_crc(&s->sum, crc, f->is_box ? box_rank(f, site, &row) : site);
    return 0;
}

static int sum_unit(struct sum_thread *s, uint64_t first, uint64_t sites)
{
    uint64_t site_bytes = s->work->field->site_bytes;
    if (site_bytes > UNIT_BYTES)
        return sum_large(s, first);
    int err = sum_sites(s, first, sites);
    report_progress(s->work, sites * site_bytes);
    return err;
}

static int sum_units(struct sum_thread *s)
{
    struct sum_work *w = s->work;
    int err = 0;
    while (!err && !atomic_load(&w->err)) {
        uint64_t first = atomic_fetch_add(&w->next, w->unit);
        if (first >= w->field->sites)
            break;
        uint64_t left = w->field->sites - first;
        err = sum_unit(s, first, left < w->unit ? left : w->unit);
    }
    return err;
}

static void *sum_in_thread(void *context)
{
    struct sum_work *w = context;
    size_t bytes = w->buffer_bytes;
    struct sum_thread s = {.work = w, .buffer = limefile_buffer_new(&bytes)};
    int none = 0, err = s.buffer ? sum_units(&s) : -ENOMEM;
    if (err)
        atomic_compare_exchange_strong(&w->err, &none, err);
    free(s.buffer);
    if (s.part.bytes)
        finish_part(&s);
    pthread_mutex_lock(&w->sum_mutex);
    w->sum.suma ^= s.sum.suma;
    w->sum.sumb ^= s.sum.sumb;
    pthread_mutex_unlock(&w->sum_mutex);
    return NULL;
}

/* Returns true if a part of the record is not in the page cache. */
static bool is_uncached(int fd, const struct limefile_record *record)
{
    uint64_t part = record->bytes / PROBES + 1;
    for (uint64_t at = 0; at < record->bytes; at += part) {
        uint64_t left = record->bytes - at;
        if (!limefile_is_cached(fd, record->data_offset + at, left < part ? left : part))
            return true;
    }
    return false;
}

/* Sets unit, buffer_bytes, fd and direct; the caller closes `direct`. Returns the number of
 * threads to run. */
static unsigned plan_threads(struct sum_work *w, unsigned threads)
{
    const struct limefile_field *f = w->field;
    w->unit = UNIT_BYTES / f->site_bytes ? UNIT_BYTES / f->site_bytes : 1;
    uint64_t units = (f->sites - 1) / w->unit + 1;
    uint64_t bytes = f->record.bytes < UNIT_BYTES ? f->record.bytes : UNIT_BYTES;
    w->buffer_bytes = (size_t)bytes + 2 * LIMEFILE_DIRECT_ALIGN;
    w->fd = limefile_source_fd(w->source);
    bool uncached = w->fd >= 0 && is_uncached(w->fd, &f->record);
    w->direct = uncached ? limefile_open_direct(w->fd) : -1;
    threads = threads ? threads : limefile_processors();
    if (w->direct >= 0 && threads < DISK_THREADS)
        threads = DISK_THREADS;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    return threads < units ? threads : (unsigned)units;
}

static int sum_record(struct sum_work *w, unsigned threads)
{
    pthread_mutex_init(&w->progress_mutex, NULL);
    pthread_mutex_init(&w->sum_mutex, NULL);
    limefile_run_threads(plan_threads(w, threads), sum_in_thread, w);
    report_progress(w, 0);
    if (w->direct >= 0)
        close(w->direct);
    pthread_mutex_destroy(&w->progress_mutex);
    pthread_mutex_destroy(&w->sum_mutex);
    return atomic_load(&w->err);
}

int limefile_field_sum(struct limefile_source *source, const struct limefile_field *field,
                       unsigned threads, limefile_sum_progress_fn *progress, void *context,
                       struct limefile_checksum *out)
{
    struct sum_work w = {
        .field = field,
        .add = add_crcs,
        .source = source,
        .progress = progress,
        .context = context,
    };
    if (!limefile_field_is_summable(field) || field->site_bytes == 0 || field->sites == 0)
        return LIMEFILE_E_STATE;
    int err = sum_record(&w, threads);
    *out = w.sum;
    return err;
}

int limefile_record_cksum(struct limefile_source *source, const struct limefile_record *record,
                          unsigned threads, limefile_sum_progress_fn *progress, void *context,
                          uint32_t *out)
{
    struct cksum_powers powers;
    struct limefile_field bytes = {.record = *record, .sites = record->bytes, .site_bytes = 1};
    struct sum_work w = {
        .field = &bytes,
        .add = add_cksum,
        .powers = &powers,
        .source = source,
        .progress = progress,
        .context = context,
    };
    cksum_powers_init(&powers);
    int err = record->bytes ? sum_record(&w, threads) : 0;
    struct limefile_cksum sum = {.crc = w.sum.suma, .bytes = record->bytes};
    *out = limefile_cksum_result(&sum);
    return err;
}
