/* forward.c - decide which reads go through the job, and what to read ahead */
#include "forward.h"

#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

/* The reasons for these values are in docs/performance.md. */
static const uint64_t near = 16 * MIB;      /* largest distance between requests of a stream */
static const size_t small = 64 * KIB;       /* a smaller request can only continue a stream */
static const uint64_t first_load = 4 * MIB; /* small, to be ready soon */
static const uint64_t align = 4 * KIB;      /* of loads, for direct I/O */
static const double asleep = 2.0;           /* seconds after which a stream is idle */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void limefs_forward_init(struct limefs_forward *forward, uint64_t window, uint64_t extent,
                         uint64_t from)
{
    memset(forward, 0, sizeof *forward);
    forward->extent = extent;
    forward->from = from;
    forward->slack = extent / 32 + align;
    forward->slots = (unsigned)smaller(window / extent, LIMEFS_SLOTS_MAX);
}

void limefs_forward_reset(struct limefs_forward *forward)
{
    memset(forward->slot, 0, sizeof forward->slot);
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX; i++)
        forward->flow[i].ahead = forward->flow[i].size = forward->flow[i].depth = 0;
}

/* ---- streams ---- */

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static int find_flow(const struct limefs_forward *forward, const struct limefs_want *want)
{
    int nearest = -1;
    uint64_t least = near;
    for (int i = 0; i < LIMEFS_STREAMS_MAX; i++) {
        uint64_t apart = distance(forward->flow[i].next, want->at);
        if (forward->flow[i].snap_id != want->snap_id || apart > least)
            continue;
        nearest = i;
        least = apart;
    }
    return nearest;
}

static struct limefs_flow *flow_of(struct limefs_forward *forward,
                                   const struct limefs_want *want)
{
    int i = find_flow(forward, want);
    return i < 0 ? NULL : &forward->flow[i];
}

bool limefs_forward_is_stream(const struct limefs_forward *forward,
                              const struct limefs_want *want)
{
    int i = find_flow(forward, want);
    return i >= 0 && want->n >= small && forward->flow[i].run >= forward->from;
}

static struct limefs_flow *new_flow(struct limefs_forward *forward,
                                    const struct limefs_want *want)
{
    struct limefs_flow *oldest = forward->flow;
    for (struct limefs_flow *flow = forward->flow; flow < forward->flow + LIMEFS_STREAMS_MAX;
         flow++)
        if (flow->since < oldest->since)
            oldest = flow;
    *oldest = (struct limefs_flow){.snap_id = want->snap_id, .next = want->at};
    return oldest;
}

/* Finds or creates the request's stream and advances it. Returns NULL if it has no stream. */
static struct limefs_flow *follow(struct limefs_forward *forward,
                                  const struct limefs_want *want)
{
    struct limefs_flow *flow = flow_of(forward, want);
    if (want->n < small && !(flow && flow->next == want->at))
        return NULL;
    if (!flow)
        flow = new_flow(forward, want);
    uint64_t end = want->at + want->n;
    if (end > flow->next) {
        flow->run += smaller(end - flow->next, want->n);
        flow->next = end;
    }
    flow->since = want->now;
    return flow;
}

static unsigned flows_awake(const struct limefs_forward *forward, double now)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX; i++)
        n += forward->flow[i].snap_id != 0 && forward->flow[i].run >= forward->from &&
             now - forward->flow[i].since < asleep;
    return n ? n : 1;
}

/* ---- slots ---- */

/* Returns true if readers requested all of the slot; or if a stream has passed it, having read
 * some of it locally, and no other stream will reach it. */
static bool is_used_up(const struct limefs_forward *forward, const struct limefs_extent *slot)
{
    bool passed = false;
    if (slot->dropped || slot->used + forward->slack >= slot->to - slot->from)
        return true;
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX; i++) {
        const struct limefs_flow *flow = &forward->flow[i];
        if (flow->snap_id != slot->snap_id || flow->ahead == 0)
            continue;
        if (flow->next >= slot->to + forward->slack)
            passed = true;
        else if (flow->ahead > slot->from)
            return false;
    }
    return passed;
}

/* Counts bytes that were fetched and not read. Streams of that snapshot then read less
 * ahead. */
static void waste(struct limefs_forward *forward, const struct limefs_extent *slot)
{
    if (slot->used < slot->to - slot->from)
        forward->stats.wasted_bytes += slot->to - slot->from - slot->used;
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX; i++)
        if (forward->flow[i].snap_id == slot->snap_id && forward->flow[i].depth > 1)
            forward->flow[i].depth = 1;
}

/* Returns an empty slot, or the one used up for the longest time, or one that no reader came
 * for; -1 if all are still needed. */
static int take_slot(struct limefs_forward *forward, double now)
{
    int best = -1;
    bool best_used = false;
    for (unsigned i = 0; i < forward->slots; i++) {
        const struct limefs_extent *slot = &forward->slot[i];
        if (slot->state == LIMEFS_EXTENT_EMPTY)
            return (int)i;
        bool used = is_used_up(forward, slot);
        if (slot->state == LIMEFS_EXTENT_LOADING || slot->holds ||
            (!used && now - slot->since < asleep))
            continue;
        if (best < 0 || (used && !best_used) ||
            (used == best_used && slot->since < forward->slot[best].since)) {
            best = (int)i;
            best_used = used;
        }
    }
    if (best >= 0 && !best_used)
        waste(forward, &forward->slot[best]);
    return best;
}

/* Counts the slots whose end the stream has not reached. */
static unsigned slots_of(const struct limefs_forward *forward, const struct limefs_flow *flow)
{
    unsigned n = 0;
    for (unsigned i = 0; i < forward->slots; i++) {
        const struct limefs_extent *slot = &forward->slot[i];
        n += slot->state != LIMEFS_EXTENT_EMPTY && slot->snap_id == flow->snap_id &&
             !is_used_up(forward, slot) && slot->to > flow->next && slot->from < flow->ahead;
    }
    return n;
}

/* Limits a stream to its share of the slots, so that it evicts no next bytes of others. */
static bool has_its_share(const struct limefs_forward *forward, const struct limefs_flow *flow)
{
    unsigned share = forward->slots / flows_awake(forward, flow->since);
    return slots_of(forward, flow) >= (share > 1 ? share : 1);
}

static int slot_at(const struct limefs_forward *forward, uint64_t snap_id, uint64_t at)
{
    for (unsigned i = 0; i < forward->slots; i++) {
        const struct limefs_extent *slot = &forward->slot[i];
        if (slot->state != LIMEFS_EXTENT_EMPTY && !slot->dropped && slot->snap_id == snap_id &&
            slot->from <= at && at < slot->to)
            return (int)i;
    }
    return -1;
}

/* A short record has only one stream, but slots may hold parts of it from an earlier pass. */
static void skip_what_is_there(const struct limefs_forward *forward, struct limefs_flow *flow,
                               const struct limefs_want *want)
{
    int i;
    while (flow->ahead < want->end && want->end - want->begin <= near &&
           (i = slot_at(forward, want->snap_id, flow->ahead)) >= 0) {
        uint64_t to = forward->slot[i].to;
        to = to < want->end ? to / align * align : to;
        if (to <= flow->ahead)
            break;
        flow->ahead = to;
    }
}

static bool is_being_changed(const struct limefs_forward *forward, uint64_t snap_id,
                             uint64_t from, uint64_t to)
{
    for (const struct limefs_change *i = forward->changes; i; i = i->next)
        if (i->snap_id == snap_id && i->from < to && from < i->to)
            return true;
    return false;
}

/* Plans the next load of the stream. Returns false if none is due, or no slot is free. */
static bool load(struct limefs_forward *forward, struct limefs_flow *flow,
                 const struct limefs_want *want, int *taken)
{
    uint64_t extent = forward->extent;
    uint64_t target = smaller(flow->next + flow->depth * extent, want->end);
    skip_what_is_there(forward, flow, want);
    if (flow->ahead >= target || has_its_share(forward, flow))
        return false;
    uint64_t boundary = (flow->ahead / extent + 1) * extent;
    uint64_t to = smaller((flow->ahead + flow->size) / align * align, boundary);
    to = smaller(to, want->end);
    if (is_being_changed(forward, want->snap_id, flow->ahead, to))
        return false;
    int i = take_slot(forward, want->now);
    if (i < 0)
        return false;
    forward->slot[i] = (struct limefs_extent){.state = LIMEFS_EXTENT_LOADING,
                                              .snap_id = want->snap_id,
                                              .from = flow->ahead,
                                              .to = to,
                                              .since = want->now};
    flow->ahead = forward->slot[i].to;
    flow->size = smaller(flow->size * 2, extent);
    forward->stats.loads++;
    *taken = i;
    return true;
}

/* Starts loads at a request that no slot holds. */
static void begin_at(struct limefs_forward *forward, struct limefs_flow *flow,
                     const struct limefs_want *want)
{
    flow->ahead = want->at / align * align;
    flow->size = smaller(first_load, forward->extent);
    if (flow->depth == 0)
        flow->depth = 1;
}

int limefs_forward_note(struct limefs_forward *forward, const struct limefs_want *want,
                        int most, int loads[LIMEFS_SLOTS_MAX], bool *follows)
{
    int count = 0, slots[LIMEFS_PIECES_MAX];
    bool ready;
    struct limefs_flow *flow = follow(forward, want);
    *follows = flow != NULL;
    if (!flow || most <= 0 || flow->run < forward->from)
        return 0;
    int found = limefs_forward_find(forward, want, slots, &ready);
    bool again = want->at == want->begin && flow->next >= want->end; /* a new pass */
    if (again)
        flow->next = want->at + want->n;
    if (again || flow->size == 0 || (found == 0 && flow->ahead < want->at + want->n))
        begin_at(forward, flow, want);
    /* Another stream has fetched these bytes: continue behind them. */
    if (found && flow->ahead <= want->at) {
        uint64_t to = forward->slot[slots[found - 1]].to;
        flow->ahead = to < want->end ? to / align * align : to;
    }
    while (count < LIMEFS_SLOTS_MAX && count < most && load(forward, flow, want, &loads[count]))
        count++;
    return count;
}

int limefs_forward_find(const struct limefs_forward *forward, const struct limefs_want *want,
                        int slots[LIMEFS_PIECES_MAX], bool *ready)
{
    uint64_t at = want->at, end = want->at + want->n;
    int count = 0;
    *ready = true;
    while (at < end) {
        int i = count < LIMEFS_PIECES_MAX ? slot_at(forward, want->snap_id, at) : -1;
        if (i < 0)
            return 0;
        slots[count++] = i;
        *ready = *ready && forward->slot[i].state == LIMEFS_EXTENT_READY;
        at = forward->slot[i].to;
    }
    return count;
}

void limefs_forward_waited(struct limefs_forward *forward, const struct limefs_want *want)
{
    struct limefs_flow *flow = flow_of(forward, want);
    unsigned most = forward->slots * 3 / 4 / flows_awake(forward, want->now);
    forward->stats.waits++;
    if (flow && flow->depth < most)
        flow->depth++;
}

void limefs_forward_hold(struct limefs_forward *forward, const struct limefs_want *want,
                         const int *slots, int count, char *base, uint64_t stride,
                         struct limefs_pieces *pieces)
{
    uint64_t at = want->at, end = want->at + want->n;
    pieces->count = count;
    for (int i = 0; i < count; i++) {
        struct limefs_extent *extent = &forward->slot[slots[i]];
        uint64_t to = smaller(extent->to, end);
        pieces->slot[i] = slots[i];
        pieces->iov[i].iov_base = base + (uint64_t)slots[i] * stride + (at - extent->from);
        pieces->iov[i].iov_len = to - at;
        extent->used += to - at;
        extent->holds++;
        extent->since = want->now;
        at = to;
    }
}

void limefs_forward_release(struct limefs_forward *forward, struct limefs_pieces *pieces)
{
    for (int i = 0; i < pieces->count; i++)
        forward->slot[pieces->slot[i]].holds--;
    pieces->count = 0;
}

bool limefs_forward_is_stale(const struct limefs_forward *forward,
                             const struct limefs_pieces *pieces)
{
    bool stale = false;
    for (int i = 0; i < pieces->count; i++)
        stale = stale || forward->slot[pieces->slot[i]].dropped;
    return stale;
}

void limefs_forward_loaded(struct limefs_forward *forward, int slot, bool good, double now)
{
    forward->slot[slot].since = now;
    forward->slot[slot].state = good ? LIMEFS_EXTENT_READY : LIMEFS_EXTENT_EMPTY;
}

/* Drops loaded bytes. Streams restart at their position: what they requested may have gone. */
static bool drop(struct limefs_forward *forward, uint64_t snap_id, uint64_t from, uint64_t to)
{
    bool any = false;
    for (unsigned i = 0; i < forward->slots; i++) {
        struct limefs_extent *slot = &forward->slot[i];
        if (slot->state == LIMEFS_EXTENT_EMPTY || slot->dropped || slot->snap_id != snap_id ||
            slot->from >= to || from >= slot->to)
            continue;
        slot->dropped = any = true;
    }
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX && any; i++)
        if (forward->flow[i].snap_id == snap_id)
            forward->flow[i].size = 0;
    return any;
}

void limefs_forward_drop(struct limefs_forward *forward, uint64_t snap_id)
{
    drop(forward, snap_id, 0, UINT64_MAX);
}

bool limefs_forward_change_begin(struct limefs_forward *forward, struct limefs_change *change)
{
    change->next = forward->changes;
    forward->changes = change;
    return drop(forward, change->snap_id, change->from, change->to);
}

void limefs_forward_change_end(struct limefs_forward *forward, struct limefs_change *change)
{
    struct limefs_change **at = &forward->changes;
    while (*at != change)
        at = &(*at)->next;
    *at = change->next;
}

bool limefs_forward_is_changing(const struct limefs_forward *forward, uint64_t snap_id)
{
    for (const struct limefs_change *i = forward->changes; i; i = i->next)
        if (i->snap_id == snap_id)
            return true;
    return false;
}
