/* cksum.c - user.lime.cksum: taken when it is asked for, and kept as long as verdicts are */
#define _GNU_SOURCE
#include "limeildg.h"
#include "proofs.h"

#include <errno.h>
#include <stdlib.h>

enum {
    KEPT_MAX = 64 * 1024, /* of a container; further ones are taken each time */
    PIECE_BYTES = 1 << 20,
};

static bool find(struct limefs_proofs *proofs, uint64_t ordinal, uint32_t *out)
{
    bool found = false;
    limefs_lock(&proofs->lock);
    for (size_t i = 0; !found && !proofs->dropped && i < proofs->cksums; i++) {
        found = proofs->cksum[i].ordinal == ordinal;
        *out = proofs->cksum[i].value;
    }
    limefs_unlock(&proofs->lock);
    return found;
}

/* With the proofs' lock held. Without memory it is taken again next time. */
static void keep(struct limefs_proofs *proofs, uint64_t ordinal, uint32_t value)
{
    size_t n = proofs->cksums;
    if (n == KEPT_MAX)
        return;
    if ((n & (n - 1)) == 0) { /* full: the room is a power of two */
        void *bigger = realloc(proofs->cksum, (n ? 2 * n : 1) * sizeof *proofs->cksum);
        if (!bigger)
            return;
        proofs->cksum = bigger;
    }
    proofs->cksum[proofs->cksums++] = (struct limefs_cksum){ordinal, value};
}

/* The record, and what is known of its container, which the caller releases. */
static int begin(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                 struct limefile_record *record, struct limefs_proofs **proofs)
{
    struct limefile_index *index = limefs_view_index(fs, view);
    int err = limefile_index_get(index, ordinal, record);
    limefile_index_free(index);
    record->type = NULL; /* it was the index's */
    return err ? err : limefs_proofs_of(fs, view, proofs);
}

int limefs_verify_cksum_kept(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                             uint32_t *out)
{
    struct limefs_proofs *proofs;
    struct limefile_record record;
    int err = begin(fs, view, ordinal, &record, &proofs);
    if (err)
        return err;
    if (!find(proofs, ordinal, out) || limefs_view_check(fs, view, &record, NULL) != 0)
        err = -ENODATA;
    limefs_proofs_release(proofs);
    return err;
}

static bool goes_on(void *context, uint64_t more)
{
    const atomic_bool *stop = context;
    (void)more;
    return !atomic_load(stop);
}

/* What is shown as a container has its bytes nowhere else than in what shows it. */
static int sum_guise(const struct limefs_view *view, const struct limefile_record *record,
                     const atomic_bool *stop, uint32_t *out)
{
    struct limefile_fd file;
    struct limefile_source *source = limefs_view_source(view, &file);
    struct limefile_cksum sum = {0};
    char *buf = malloc(PIECE_BYTES);
    int err = buf ? 0 : -ENOMEM;
    while (!err && sum.bytes < record->bytes) {
        uint64_t left = record->bytes - sum.bytes;
        size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        err = limefile_read_exact(source, buf, n, record->data_offset + sum.bytes);
        if (!err)
            limefile_cksum_add(&sum, buf, n);
        if (!err && atomic_load(stop))
            err = -EINTR;
    }
    free(buf);
    *out = limefile_cksum_result(&sum);
    return err;
}

static int sum_record(const struct limefs_view *view, const struct limefile_record *record,
                      const atomic_bool *stop, uint32_t *out)
{
    if (view->guise)
        return sum_guise(view, record, stop, out);
    return limefile_record_cksum(view->fd, record, 0, goes_on, (void *)stop, out);
}

int limefs_verify_cksum(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                        const atomic_bool *stop, uint32_t *out)
{
    struct limefs_proofs *proofs;
    struct limefile_record record;
    int err = begin(fs, view, ordinal, &record, &proofs);
    if (err)
        return err;
    if (!find(proofs, ordinal, out)) {
        err = limefs_verify_settle(fs, view, &record);
        if (!err)
            err = sum_record(view, &record, stop, out);
        if (!err)
            err = limefs_view_check(fs, view, &record, NULL);
        limefs_lock(&proofs->lock);
        if (!err && proofs->dropped)
            err = -ESTALE;
        if (!err)
            keep(proofs, ordinal, *out);
        limefs_unlock(&proofs->lock);
        if (!err)
            atomic_fetch_add_explicit(&fs->stats.verified_bytes, record.bytes,
                                      memory_order_relaxed);
    }
    limefs_proofs_release(proofs);
    return err;
}
