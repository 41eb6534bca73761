/*
 * recordsum.c - the SciDAC checksum of the open record, while its lattices move
 *
 * Each rank keeps the sums of its own sites, one for each lattice call. They are brought
 * together when somebody asks: no call that moves data waits for another rank because of them.
 */
#include "internal.h"
#include "sums.h"

#include <signal.h>

enum {
    BESIDE_MIN = 4 << 20, /* less is summed sooner than a thread is started for it */
};

static bool is_on(const struct lemon_record_sum *sum)
{
    return sum->wanted || sum->verify;
}

void lemon_sum_forget(struct lemon_internal *in)
{
    in->sum.count = 0;
    in->sum.origin = 0;
    in->sum.active = false;
}

int lemon_sum_set(struct lemon_internal *in, int code, int on, int64_t pos)
{
    struct lemon_record_sum *sum = &in->sum;
    int64_t values[1] = {on != 0};
    code = lemon_agree_on(in, code, values, 1);
    if (code != LEMON_SUCCESS)
        return code;
    for (int i = 0; i < sum->count; i++)
        sum->lattices[i].counts = false;
    if (!sum->verify)
        sum->count = 0;
    sum->wanted = on != 0;
    sum->origin = pos;
    return LEMON_SUCCESS;
}

int lemon_sum_reserve(struct lemon_internal *in)
{
    struct lemon_record_sum *sum = &in->sum;
    if (!is_on(sum) || sum->count < sum->capacity)
        return LEMON_SUCCESS;
    int capacity = sum->capacity * 2 + 4;
    struct lemon_summed *lattices =
        realloc(sum->lattices, (size_t)capacity * sizeof *sum->lattices);
    if (!lattices)
        return lemon_say(in, LEMON_ERR_PARAM, "out of memory");
    sum->lattices = lattices;
    sum->capacity = capacity;
    return LEMON_SUCCESS;
}

static bool overlaps(const struct lemon_summed *a, const struct lemon_summed *b)
{
    return a->bytes && b->bytes && a->from < b->from + b->bytes && b->from < a->from + a->bytes;
}

static bool is_inside(const struct lemon_summed *a, const struct lemon_summed *b)
{
    return a->from >= b->from && a->from + a->bytes <= b->from + b->bytes;
}

/* Moved once more a lattice replaces itself; half of one cannot be replaced. */
static bool cuts_another(const struct lemon_record_sum *sum, const struct lemon_summed *now)
{
    for (int i = 0; i < sum->count; i++)
        if (overlaps(&sum->lattices[i], now) && !is_inside(&sum->lattices[i], now))
            return true;
    return false;
}

/* What counts has the rank that a serial reader gives it; what is read back needs any. */
static int rank_site(const struct lemon_internal *in, struct lemon_summed *now)
{
    int64_t site = now->site_bytes, behind = now->from - in->sum.origin;
    if (site == 0 || (behind >= 0 && behind % site == 0))
        now->first = site ? (uint64_t)(behind / site) : 0;
    else if (now->counts)
        return lemon_say(in, LEMON_ERR_PARAM,
                         "no site of %lld bytes begins at %lld of the record, if the first one "
                         "begins at %lld",
                         (long long)site, (long long)now->from, (long long)in->sum.origin);
    return LEMON_SUCCESS;
}

int lemon_sum_begin(struct lemon_internal *in, int64_t pos)
{
    struct lemon_record_sum *sum = &in->sum;
    if (!is_on(sum))
        return LEMON_SUCCESS;
    sum->now = (struct lemon_summed){
        .from = pos,
        .bytes = lemon_geometry_bytes(in),
        .site_bytes = in->geometry.grid.site_bytes,
        .counts = sum->wanted,
    };
    if (rank_site(in, &sum->now) != LEMON_SUCCESS)
        return LEMON_ERR_PARAM;
    if (cuts_another(sum, &sum->now))
        return lemon_say(in, LEMON_ERR_PARAM,
                         "a part of the lattice is in the checksum "
                         "already");
    sum->reached = 0;
    sum->active = true;
    return LEMON_SUCCESS;
}

void lemon_sum_between(struct lemon_internal *in, const char *data, int64_t from, int64_t to)
{
    if (in->sum.active)
        lemon_sums_add(&in->sum.now.sum, &in->geometry.box, in->sum.now.first, data, from, to);
}

void lemon_sum_reach(struct lemon_internal *in, const char *data, int64_t to)
{
    struct lemon_record_sum *sum = &in->sum;
    if (!sum->active || sum->now.site_bytes == 0 || to <= sum->reached)
        return;
    lemon_sum_between(in, data, sum->reached, to);
    sum->reached = to - to % sum->now.site_bytes;
}

/* The thread calls nothing of MPI, so that it is nothing to MPI; signals are for others. */
static void *sum_all(void *argument)
{
    struct lemon_sum_beside *beside = argument;
    lemon_sum_reach(beside->in, beside->data, lemon_geometry_local(beside->in));
    return NULL;
}

void lemon_sum_start(struct lemon_sum_beside *beside, struct lemon_internal *in,
                     const char *data)
{
    sigset_t all, before;
    *beside = (struct lemon_sum_beside){.in = in, .data = data};
    if (!in->sum.active || lemon_geometry_local(in) < BESIDE_MIN)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    beside->started = pthread_create(&beside->thread, NULL, sum_all, beside) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void lemon_sum_join(struct lemon_sum_beside *beside)
{
    if (beside->started)
        pthread_join(beside->thread, NULL);
    else
        sum_all(beside);
}

void lemon_sum_end(struct lemon_internal *in, int code)
{
    struct lemon_record_sum *sum = &in->sum;
    int kept = 0;
    if (!sum->active)
        return;
    sum->active = false;
    if (code != LEMON_SUCCESS)
        return;
    for (int i = 0; i < sum->count; i++)
        if (!overlaps(&sum->lattices[i], &sum->now))
            sum->lattices[kept++] = sum->lattices[i];
    sum->lattices[kept++] = sum->now;
    sum->count = kept;
}

int lemon_sum_get(struct lemon_internal *in, LemonChecksum *out)
{
    const struct lemon_record_sum *sum = &in->sum;
    uint32_t both[2] = {0, 0};
    bool any = false;
    for (int i = 0; i < sum->count; i++) {
        if (!sum->lattices[i].counts)
            continue;
        any = true;
        both[0] ^= sum->lattices[i].sum.suma;
        both[1] ^= sum->lattices[i].sum.sumb;
    }
    if (!any)
        return lemon_say(in, LEMON_ERR_PARAM, "no lattice of this record was summed");
    MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_UINT32_T, MPI_BXOR, in->comm);
    if (out)
        *out = (LemonChecksum){both[0], both[1]};
    return LEMON_SUCCESS;
}
