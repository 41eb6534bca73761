/* cksum.c - computes cksum(1) of a record, the value of its attribute user.lime.cksum */
#define _GNU_SOURCE
#include "limeildg.h"
#include "verify.h"
#include "snapshot.h"

#include <errno.h>

static bool should_continue(void *context, uint64_t more)
{
    const atomic_bool *stop = context;
    (void)more;
    return !atomic_load(stop);
}

int limefs_verify_cksum(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                        const atomic_bool *stop, uint32_t *out)
{
    struct limefile_record record;
    struct limefile_fd file;
    uint64_t changes = limefs_snapshot_change_count(fs, snap);
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    int err = limefile_index_get(index, ordinal, &record);
    if (!err)
        err = limefs_verify_flush(fs, snap, &record);
    if (!err)
        err = limefile_record_cksum(limefs_snapshot_source(snap, &file), &record, 0,
                                    should_continue, (void *)stop, out);
    if (!err)
        err = limefs_snapshot_check_record(fs, snap, &record, NULL);
    if (!err && changes != limefs_snapshot_change_count(fs, snap))
        err = -ESTALE;
    if (!err)
        atomic_fetch_add_explicit(&fs->stats.verified_bytes, record.bytes,
                                  memory_order_relaxed);
    limefile_index_free(index);
    return err;
}
