/* cksum.c - user.lime.cksum: taken when it is asked for */
#define _GNU_SOURCE
#include "limeildg.h"
#include "verify.h"
#include "view.h"

#include <errno.h>
#include <stdlib.h>

enum {
    PIECE_BYTES = 1 << 20,
};

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
    struct limefile_record record;
    uint64_t changes = limefs_view_changes(fs, view);
    struct limefile_index *index = limefs_view_index(fs, view);
    int err = limefile_index_get(index, ordinal, &record);
    if (!err)
        err = limefs_verify_settle(fs, view, &record);
    if (!err)
        err = sum_record(view, &record, stop, out);
    if (!err)
        err = limefs_view_check(fs, view, &record, NULL);
    if (!err && changes != limefs_view_changes(fs, view))
        err = -ESTALE;
    if (!err)
        atomic_fetch_add_explicit(&fs->stats.verified_bytes, record.bytes,
                                  memory_order_relaxed);
    limefile_index_free(index);
    return err;
}
