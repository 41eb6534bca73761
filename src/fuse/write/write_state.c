/* write_state.c - makes and checks the transitions between the states of write_state.h */
#include "write_state.h"
#include "lock.h"

#define TO(to) (1U << LIMEFS_##to)

/* For each state, the states that may follow. */
struct transitions {
    const char *message;
    unsigned next[6];
};

static const struct transitions container_transitions = {
    "state: invalid transition of a container",
    {
        [LIMEFS_CONTAINER_CLOSED] = TO(CONTAINER_CLOSED) | TO(CONTAINER_OPEN),
        [LIMEFS_CONTAINER_OPEN] =
            TO(CONTAINER_OPEN) | TO(CONTAINER_UNINDEXED) | TO(CONTAINER_CLOSED),
        [LIMEFS_CONTAINER_UNINDEXED] =
            TO(CONTAINER_UNINDEXED) | TO(CONTAINER_OPEN) | TO(CONTAINER_ABANDONED),
        [LIMEFS_CONTAINER_ABANDONED] = 0,
    },
};

#define ANY_LAST_STATE TO(LAST_COMMITTED) | TO(LAST_GROWING) | TO(LAST_GAP) | TO(LAST_FAILED)

static const struct transitions last_transitions = {
    "state: invalid transition of a last record",
    {
        [LIMEFS_LAST_COMMITTED] = TO(LAST_COMMITTED) | TO(LAST_GROWING) | TO(LAST_FAILED),
        [LIMEFS_LAST_GROWING] = TO(LAST_GROWING) | TO(LAST_COMMITTED) | TO(LAST_GAP),
        [LIMEFS_LAST_GAP] = ANY_LAST_STATE,
        [LIMEFS_LAST_FAILED] = ANY_LAST_STATE, /* only when truncated */
    },
};

static const struct transitions staging_transitions = {
    "state: invalid transition of staged data",
    {
        [LIMEFS_STAGING_NONE] = TO(STAGING_EMPTIED) | TO(STAGING_WRITTEN),
        [LIMEFS_STAGING_FAILED] = TO(STAGING_EMPTIED) | TO(STAGING_WRITTEN) | TO(STAGING_GAP),
        [LIMEFS_STAGING_EMPTIED] = TO(STAGING_WRITTEN) | TO(STAGING_STORED),
        [LIMEFS_STAGING_WRITTEN] = TO(STAGING_WRITTEN) | TO(STAGING_STORED),
        [LIMEFS_STAGING_STORED] = TO(STAGING_WRITTEN),
        [LIMEFS_STAGING_GAP] = TO(STAGING_WRITTEN),
    },
};

static void set_state(const struct transitions *transitions, atomic_int *state, int to)
{
    int from = atomic_exchange(state, to);
    if (!(transitions->next[from] >> to & 1))
        limefs_report_violation(transitions->message);
}

/* Changes the state to to[state]. If several writes fail, only the latest error is kept. */
static void set_error(atomic_int *state, atomic_int *error, int err, const unsigned char *to)
{
    int old = *state;
    *error = err;
    while (!atomic_compare_exchange_weak(state, &old, to[old]))
        ;
}

/* ---- the container ---- */

void limefs_container_opened(struct limefs_container *container)
{
    set_state(&container_transitions, &container->state, LIMEFS_CONTAINER_OPEN);
}

void limefs_container_rewritten(struct limefs_container *container)
{
    set_state(&container_transitions, &container->state, LIMEFS_CONTAINER_UNINDEXED);
}

void limefs_container_closed(struct limefs_container *container)
{
    bool unindexed = limefs_container_is_unindexed(container);
    set_state(&container_transitions, &container->state,
              unindexed ? LIMEFS_CONTAINER_ABANDONED : LIMEFS_CONTAINER_CLOSED);
}

bool limefs_container_is_unindexed(const struct limefs_container *container)
{
    return container->state == LIMEFS_CONTAINER_UNINDEXED;
}

bool limefs_container_is_abandoned(const struct limefs_container *container)
{
    return container->state == LIMEFS_CONTAINER_ABANDONED;
}

/* ---- the last record ---- */

void limefs_last_reset(struct limefs_last *last)
{
    set_state(&last_transitions, &last->state, LIMEFS_LAST_COMMITTED);
}

void limefs_last_begin_growth(struct limefs_last *last)
{
    if (last->state != LIMEFS_LAST_COMMITTED)
        limefs_report_violation(
            "state: begin of growth with a gap, or of a record that grows already");
    set_state(&last_transitions, &last->state, LIMEFS_LAST_GROWING);
}

void limefs_last_commit(struct limefs_last *last)
{
    if (last->state != LIMEFS_LAST_GROWING)
        limefs_report_violation("state: commit of a last record that does not grow");
    limefs_last_reset(last);
}

void limefs_last_truncate(struct limefs_last *last, bool grows, bool emptied)
{
    bool gap = limefs_last_error(last) && !emptied;
    if (grows)
        set_state(&last_transitions, &last->state, gap ? LIMEFS_LAST_GAP : LIMEFS_LAST_GROWING);
    else
        set_state(&last_transitions, &last->state,
                  gap ? LIMEFS_LAST_FAILED : LIMEFS_LAST_COMMITTED);
}

void limefs_last_fail(struct limefs_last *last, int err, bool beyond)
{
    static const unsigned char to[] = {
        [LIMEFS_LAST_COMMITTED] = LIMEFS_LAST_FAILED,
        [LIMEFS_LAST_GROWING] = LIMEFS_LAST_GAP,
        [LIMEFS_LAST_GAP] = LIMEFS_LAST_GAP,
        [LIMEFS_LAST_FAILED] = LIMEFS_LAST_FAILED,
    };
    /* A failed write within the committed length leaves no gap: only the write itself fails. */
    if (beyond || limefs_last_is_growing(last))
        set_error(&last->state, &last->error, err, to);
}

bool limefs_last_is_growing(const struct limefs_last *last)
{
    int state = last->state;
    return state == LIMEFS_LAST_GROWING || state == LIMEFS_LAST_GAP;
}

int limefs_last_error(const struct limefs_last *last)
{
    int state = last->state;
    return state == LIMEFS_LAST_GAP || state == LIMEFS_LAST_FAILED ? last->error : 0;
}

/* ---- a record with staged data ---- */

void limefs_staging_begin(struct limefs_staging *staging, uint64_t bytes, bool emptied)
{
    if (limefs_staging_error(staging) && bytes > 0)
        set_state(&staging_transitions, &staging->state, LIMEFS_STAGING_GAP);
    else
        set_state(&staging_transitions, &staging->state,
                  emptied ? LIMEFS_STAGING_EMPTIED : LIMEFS_STAGING_WRITTEN);
}

void limefs_staging_write(struct limefs_staging *staging)
{
    int old = staging->state;
    while (old != LIMEFS_STAGING_GAP &&
           !atomic_compare_exchange_weak(&staging->state, &old, LIMEFS_STAGING_WRITTEN))
        ;
    if (old < LIMEFS_STAGING_EMPTIED)
        limefs_report_violation("state: write to staged data of a record without any");
}

void limefs_staging_truncate(struct limefs_staging *staging, uint64_t before, uint64_t bytes)
{
    if (before != bytes && (bytes == 0 || staging->state != LIMEFS_STAGING_GAP))
        set_state(&staging_transitions, &staging->state, LIMEFS_STAGING_WRITTEN);
}

void limefs_staging_store(struct limefs_staging *staging)
{
    set_state(&staging_transitions, &staging->state, LIMEFS_STAGING_STORED);
}

void limefs_staging_fail(struct limefs_staging *staging, int err, bool beyond)
{
    static const unsigned char to[] = {
        [LIMEFS_STAGING_NONE] = LIMEFS_STAGING_FAILED,
        [LIMEFS_STAGING_FAILED] = LIMEFS_STAGING_FAILED,
        [LIMEFS_STAGING_EMPTIED] = LIMEFS_STAGING_GAP,
        [LIMEFS_STAGING_WRITTEN] = LIMEFS_STAGING_GAP,
        [LIMEFS_STAGING_STORED] = LIMEFS_STAGING_GAP,
        [LIMEFS_STAGING_GAP] = LIMEFS_STAGING_GAP,
    };
    if (beyond || limefs_is_staged(staging))
        set_error(&staging->state, &staging->error, err, to);
}

bool limefs_is_staged(const struct limefs_staging *staging)
{
    return staging->state >= LIMEFS_STAGING_EMPTIED;
}

bool limefs_staging_is_dirty(const struct limefs_staging *staging)
{
    int state = staging->state;
    return state == LIMEFS_STAGING_EMPTIED || state == LIMEFS_STAGING_WRITTEN ||
           state == LIMEFS_STAGING_GAP;
}

bool limefs_staging_is_empty(const struct limefs_staging *staging)
{
    return staging->state == LIMEFS_STAGING_EMPTIED;
}

int limefs_staging_error(const struct limefs_staging *staging)
{
    int state = staging->state;
    return state == LIMEFS_STAGING_FAILED || state == LIMEFS_STAGING_GAP ? staging->error : 0;
}

/* ---- unsynced data ---- */

void limefs_sync_mark_due(struct limefs_written *written)
{
    written->unsynced = true;
}

bool limefs_sync_begin(struct limefs_written *written)
{
    bool others = written->syncing++ > 0; /* another sync may have cleared the mark */
    return atomic_exchange(&written->unsynced, false) || others;
}

void limefs_sync_end(struct limefs_written *written)
{
    written->syncing--;
}
