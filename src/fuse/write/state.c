/* state.c - the transitions between the states of what is written to */
#include "state.h"
#include "lock.h"

#define TO(state) (1U << LIMEFS_##state)

/* For each state, the states that may follow. */
struct rules {
    const char *broken;
    unsigned may[6];
};

static const struct rules container_rules = {
    "state: a container takes a step that it has not",
    {
        [LIMEFS_CONTAINER_CLOSED] = TO(CONTAINER_CLOSED) | TO(CONTAINER_OPEN),
        [LIMEFS_CONTAINER_OPEN] =
            TO(CONTAINER_OPEN) | TO(CONTAINER_BEHIND) | TO(CONTAINER_CLOSED),
        [LIMEFS_CONTAINER_BEHIND] =
            TO(CONTAINER_BEHIND) | TO(CONTAINER_OPEN) | TO(CONTAINER_LEFT),
        [LIMEFS_CONTAINER_LEFT] = 0,
    },
};

#define ALL TO(LAST_SETTLED) | TO(LAST_GROWING) | TO(LAST_BROKEN) | TO(LAST_REFUSED)

static const struct rules last_rules = {
    "state: a last record takes a step that it has not",
    {
        [LIMEFS_LAST_SETTLED] = TO(LAST_SETTLED) | TO(LAST_GROWING) | TO(LAST_REFUSED),
        [LIMEFS_LAST_GROWING] = TO(LAST_GROWING) | TO(LAST_SETTLED) | TO(LAST_BROKEN),
        [LIMEFS_LAST_BROKEN] = ALL,
        [LIMEFS_LAST_REFUSED] = ALL, /* only when it is cut */
    },
};

static const struct rules collected_rules = {
    "state: a collected record takes a step that it has not",
    {
        [LIMEFS_COLLECTED_NONE] = TO(COLLECTED_EMPTIED) | TO(COLLECTED_WRITTEN),
        [LIMEFS_COLLECTED_REFUSED] =
            TO(COLLECTED_EMPTIED) | TO(COLLECTED_WRITTEN) | TO(COLLECTED_GAP),
        [LIMEFS_COLLECTED_EMPTIED] = TO(COLLECTED_WRITTEN) | TO(COLLECTED_PUT),
        [LIMEFS_COLLECTED_WRITTEN] = TO(COLLECTED_WRITTEN) | TO(COLLECTED_PUT),
        [LIMEFS_COLLECTED_PUT] = TO(COLLECTED_WRITTEN),
        [LIMEFS_COLLECTED_GAP] = TO(COLLECTED_WRITTEN),
    },
};

static void step(const struct rules *rules, atomic_int *is, int to)
{
    int from = atomic_exchange(is, to);
    if (!(rules->may[from] >> to & 1))
        limefs_broken(rules->broken);
}

/* Several writes may fail at once, while others continue: the last error stays. */
static void fail(atomic_int *is, atomic_int *error, int err, const unsigned char *to)
{
    int was = *is;
    *error = err;
    while (!atomic_compare_exchange_weak(is, &was, to[was]))
        ;
}

/* ---- the container ---- */

void limefs_container_opened(struct limefs_container *container)
{
    step(&container_rules, &container->is, LIMEFS_CONTAINER_OPEN);
}

void limefs_container_rewritten(struct limefs_container *container)
{
    step(&container_rules, &container->is, LIMEFS_CONTAINER_BEHIND);
}

void limefs_container_closed(struct limefs_container *container)
{
    bool behind = limefs_container_is_behind(container);
    step(&container_rules, &container->is,
         behind ? LIMEFS_CONTAINER_LEFT : LIMEFS_CONTAINER_CLOSED);
}

bool limefs_container_is_behind(const struct limefs_container *container)
{
    return container->is == LIMEFS_CONTAINER_BEHIND;
}

bool limefs_container_is_left(const struct limefs_container *container)
{
    return container->is == LIMEFS_CONTAINER_LEFT;
}

/* ---- the last record ---- */

void limefs_last_settles(struct limefs_last *last)
{
    step(&last_rules, &last->is, LIMEFS_LAST_SETTLED);
}

void limefs_last_grows(struct limefs_last *last)
{
    if (last->is != LIMEFS_LAST_SETTLED)
        limefs_broken("state: a last record grows that has a gap, or grows already");
    step(&last_rules, &last->is, LIMEFS_LAST_GROWING);
}

void limefs_last_commits(struct limefs_last *last)
{
    if (last->is != LIMEFS_LAST_GROWING)
        limefs_broken("state: a last record that does not grow is committed");
    limefs_last_settles(last);
}

void limefs_last_cut(struct limefs_last *last, bool grows, bool emptied)
{
    bool gap = limefs_last_error(last) && !emptied;
    if (grows)
        step(&last_rules, &last->is, gap ? LIMEFS_LAST_BROKEN : LIMEFS_LAST_GROWING);
    else
        step(&last_rules, &last->is, gap ? LIMEFS_LAST_REFUSED : LIMEFS_LAST_SETTLED);
}

void limefs_last_fails(struct limefs_last *last, int err, bool beyond)
{
    static const unsigned char to[] = {
        [LIMEFS_LAST_SETTLED] = LIMEFS_LAST_REFUSED,
        [LIMEFS_LAST_GROWING] = LIMEFS_LAST_BROKEN,
        [LIMEFS_LAST_BROKEN] = LIMEFS_LAST_BROKEN,
        [LIMEFS_LAST_REFUSED] = LIMEFS_LAST_REFUSED,
    };
    /* Otherwise the committed record has no gap; the failed write reports its error. */
    if (beyond || limefs_last_is_growing(last))
        fail(&last->is, &last->error, err, to);
}

bool limefs_last_is_growing(const struct limefs_last *last)
{
    int is = last->is;
    return is == LIMEFS_LAST_GROWING || is == LIMEFS_LAST_BROKEN;
}

int limefs_last_error(const struct limefs_last *last)
{
    int is = last->is;
    return is == LIMEFS_LAST_BROKEN || is == LIMEFS_LAST_REFUSED ? last->error : 0;
}

/* ---- a record with staged data ---- */

void limefs_collected_begins(struct limefs_collected *collected, uint64_t bytes, bool emptied)
{
    if (limefs_collected_error(collected) && bytes > 0)
        step(&collected_rules, &collected->is, LIMEFS_COLLECTED_GAP);
    else
        step(&collected_rules, &collected->is,
             emptied ? LIMEFS_COLLECTED_EMPTIED : LIMEFS_COLLECTED_WRITTEN);
}

void limefs_collected_wrote(struct limefs_collected *collected)
{
    int was = collected->is;
    while (was != LIMEFS_COLLECTED_GAP &&
           !atomic_compare_exchange_weak(&collected->is, &was, LIMEFS_COLLECTED_WRITTEN))
        ;
    if (was < LIMEFS_COLLECTED_EMPTIED)
        limefs_broken("state: a record is written aside that is not collected");
}

void limefs_collected_cut(struct limefs_collected *collected, uint64_t before, uint64_t bytes)
{
    if (before != bytes && (bytes == 0 || collected->is != LIMEFS_COLLECTED_GAP))
        step(&collected_rules, &collected->is, LIMEFS_COLLECTED_WRITTEN);
}

void limefs_collected_puts(struct limefs_collected *collected)
{
    step(&collected_rules, &collected->is, LIMEFS_COLLECTED_PUT);
}

void limefs_collected_fails(struct limefs_collected *collected, int err, bool beyond)
{
    static const unsigned char to[] = {
        [LIMEFS_COLLECTED_NONE] = LIMEFS_COLLECTED_REFUSED,
        [LIMEFS_COLLECTED_REFUSED] = LIMEFS_COLLECTED_REFUSED,
        [LIMEFS_COLLECTED_EMPTIED] = LIMEFS_COLLECTED_GAP,
        [LIMEFS_COLLECTED_WRITTEN] = LIMEFS_COLLECTED_GAP,
        [LIMEFS_COLLECTED_PUT] = LIMEFS_COLLECTED_GAP,
        [LIMEFS_COLLECTED_GAP] = LIMEFS_COLLECTED_GAP,
    };
    if (beyond || limefs_collected_is(collected))
        fail(&collected->is, &collected->error, err, to);
}

bool limefs_collected_is(const struct limefs_collected *collected)
{
    return collected->is >= LIMEFS_COLLECTED_EMPTIED;
}

bool limefs_collected_is_news(const struct limefs_collected *collected)
{
    int is = collected->is;
    return is == LIMEFS_COLLECTED_EMPTIED || is == LIMEFS_COLLECTED_WRITTEN ||
           is == LIMEFS_COLLECTED_GAP;
}

bool limefs_collected_is_empty(const struct limefs_collected *collected)
{
    return collected->is == LIMEFS_COLLECTED_EMPTIED;
}

int limefs_collected_error(const struct limefs_collected *collected)
{
    int is = collected->is;
    return is == LIMEFS_COLLECTED_REFUSED || is == LIMEFS_COLLECTED_GAP ? collected->error : 0;
}

/* ---- unsynced data ---- */

void limefs_sync_due(struct limefs_job_view *snap)
{
    snap->unsynced = true;
}

bool limefs_sync_begins(struct limefs_job_view *snap)
{
    bool others = snap->syncing++ > 0; /* one of them may have cleared the mark */
    return atomic_exchange(&snap->unsynced, false) || others;
}

void limefs_sync_ends(struct limefs_job_view *snap)
{
    snap->syncing--;
}
