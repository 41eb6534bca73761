/* prefetch.c - find streams of read requests, and decide what to read ahead */
#include "prefetch.h"

#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

/* The reasons for these values are in docs/performance.md. */
static const uint64_t max_gap = 16 * MIB;   /* largest distance of a request from its stream */
static const size_t min_request = 64 * KIB; /* a smaller one must begin where its stream ends */
static const uint64_t first_load = 4 * MIB; /* bytes of the first load: few, to be ready soon */
static const uint64_t align = 4 * KIB;      /* alignment of loads in bytes, for direct I/O */
static const double idle_limit = 2.0;       /* seconds after which a stream or slot is idle */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void limefs_prefetch_init(struct limefs_prefetch *plan, uint64_t window, uint64_t extent,
                          uint64_t threshold)
{
    memset(plan, 0, sizeof *plan);
    plan->extent = extent;
    plan->threshold = threshold;
    plan->slack = extent / 32 + align;
    plan->slots = (unsigned)min_u64(window / extent, LIMEFS_SLOTS_MAX);
}

void limefs_prefetch_reset(struct limefs_prefetch *plan)
{
    memset(plan->slot, 0, sizeof plan->slot);
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX; i++)
        plan->stream[i].planned = plan->stream[i].load_size = plan->stream[i].depth = 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static int find_stream_index(const struct limefs_prefetch *plan,
                             const struct limefs_read_req *req)
{
    int nearest = -1;
    uint64_t least = max_gap;
    for (int i = 0; i < LIMEFS_STREAMS_MAX; i++) {
        uint64_t apart = distance(plan->stream[i].next, req->at);
        if (plan->stream[i].snap_id != req->snap_id || apart > least)
            continue;
        nearest = i;
        least = apart;
    }
    return nearest;
}

static struct limefs_stream *find_stream(struct limefs_prefetch *plan,
                                         const struct limefs_read_req *req)
{
    int i = find_stream_index(plan, req);
    return i < 0 ? NULL : &plan->stream[i];
}

bool limefs_prefetch_is_stream(const struct limefs_prefetch *plan,
                               const struct limefs_read_req *req)
{
    int i = find_stream_index(plan, req);
    return i >= 0 && req->n >= min_request && plan->stream[i].bytes >= plan->threshold;
}

static struct limefs_stream *create_stream(struct limefs_prefetch *plan,
                                           const struct limefs_read_req *req)
{
    struct limefs_stream *oldest = plan->stream;
    for (struct limefs_stream *stream = plan->stream;
         stream < plan->stream + LIMEFS_STREAMS_MAX; stream++)
        if (stream->last_used < oldest->last_used)
            oldest = stream;
    *oldest = (struct limefs_stream){.snap_id = req->snap_id, .next = req->at};
    return oldest;
}

/* Finds or creates the request's stream and advances it. NULL: the request belongs to none. */
static struct limefs_stream *advance_stream(struct limefs_prefetch *plan,
                                            const struct limefs_read_req *req)
{
    struct limefs_stream *stream = find_stream(plan, req);
    if (req->n < min_request && !(stream && stream->next == req->at))
        return NULL;
    if (!stream)
        stream = create_stream(plan, req);
    uint64_t end = req->at + req->n;
    if (end > stream->next) {
        stream->bytes += min_u64(end - stream->next, req->n);
        stream->next = end;
    }
    stream->last_used = req->now;
    return stream;
}

static unsigned count_active(const struct limefs_prefetch *plan, double now)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX; i++)
        n += plan->stream[i].snap_id != 0 && plan->stream[i].bytes >= plan->threshold &&
             now - plan->stream[i].last_used < idle_limit;
    return n ? n : 1;
}

/* Returns true if no reader is expected to request the slot's bytes: they are out of date, or
 * readers have requested nearly all of them, or a stream has passed the slot (it has read some
 * of the bytes locally) and no other stream will reach it. */
static bool was_read(const struct limefs_prefetch *plan, const struct limefs_extent *slot)
{
    bool passed = false;
    if (slot->dropped || slot->used + plan->slack >= slot->to - slot->from)
        return true;
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX; i++) {
        const struct limefs_stream *stream = &plan->stream[i];
        if (stream->snap_id != slot->snap_id || stream->planned == 0)
            continue;
        if (stream->next >= slot->to + plan->slack)
            passed = true;
        else if (stream->planned > slot->from)
            return false;
    }
    return passed;
}

/* Counts a slot's unread bytes as wasted, and makes the snapshot's streams read less ahead. */
static void count_wasted_bytes(struct limefs_prefetch *plan, const struct limefs_extent *slot)
{
    if (slot->used < slot->to - slot->from)
        plan->stats.wasted_bytes += slot->to - slot->from - slot->used;
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX; i++)
        if (plan->stream[i].snap_id == slot->snap_id && plan->stream[i].depth > 1)
            plan->stream[i].depth = 1;
}

/* Returns a slot for a load, or -1. First choice: an empty one. Second: the one unused longest
 * of those that were read. Third: the one unused longest of the others, if for idle_limit. */
static int allocate_slot(struct limefs_prefetch *plan, double now)
{
    int best = -1;
    bool best_used = false;
    for (unsigned i = 0; i < plan->slots; i++) {
        const struct limefs_extent *slot = &plan->slot[i];
        if (slot->state == LIMEFS_EXTENT_EMPTY)
            return (int)i;
        bool used = was_read(plan, slot);
        if (slot->state == LIMEFS_EXTENT_LOADING || slot->holds ||
            (!used && now - slot->last_used < idle_limit))
            continue;
        if (best < 0 || (used && !best_used) ||
            (used == best_used && slot->last_used < plan->slot[best].last_used)) {
            best = (int)i;
            best_used = used;
        }
    }
    if (best >= 0 && !best_used)
        count_wasted_bytes(plan, &plan->slot[best]);
    return best;
}

/* Counts the slots with bytes that the stream will read. */
static unsigned count_slots(const struct limefs_prefetch *plan,
                            const struct limefs_stream *stream)
{
    unsigned n = 0;
    for (unsigned i = 0; i < plan->slots; i++) {
        const struct limefs_extent *slot = &plan->slot[i];
        n += slot->state != LIMEFS_EXTENT_EMPTY && slot->snap_id == stream->snap_id &&
             !was_read(plan, slot) && slot->to > stream->next && slot->from < stream->planned;
    }
    return n;
}

/* Returns true if the stream has its share of the slots: the rest is for other streams. */
static bool has_full_share(const struct limefs_prefetch *plan,
                           const struct limefs_stream *stream)
{
    unsigned share = plan->slots / count_active(plan, stream->last_used);
    return count_slots(plan, stream) >= (share > 1 ? share : 1);
}

static int find_slot_at(const struct limefs_prefetch *plan, uint64_t snap_id, uint64_t at)
{
    for (unsigned i = 0; i < plan->slots; i++) {
        const struct limefs_extent *slot = &plan->slot[i];
        if (slot->state != LIMEFS_EXTENT_EMPTY && !slot->dropped && slot->snap_id == snap_id &&
            slot->from <= at && at < slot->to)
            return (int)i;
    }
    return -1;
}

/* If the record has at most max_gap bytes, so that all its requests belong to one stream, makes
 * the stream's next load skip bytes that slots have from an earlier pass over the record. */
static void skip_loaded_slots(const struct limefs_prefetch *plan, struct limefs_stream *stream,
                              const struct limefs_read_req *req)
{
    int i;
    while (stream->planned < req->end && req->end - req->begin <= max_gap &&
           (i = find_slot_at(plan, req->snap_id, stream->planned)) >= 0) {
        uint64_t to = plan->slot[i].to;
        to = to < req->end ? to / align * align : to;
        if (to <= stream->planned)
            break;
        stream->planned = to;
    }
}

static bool is_being_changed(const struct limefs_prefetch *plan, uint64_t snap_id,
                             uint64_t from, uint64_t to)
{
    for (const struct limefs_change *i = plan->changes; i; i = i->next)
        if (i->snap_id == snap_id && i->from < to && from < i->to)
            return true;
    return false;
}

/* Plans the next load of the stream. Returns false if none is due, or none is possible now. */
static bool plan_load(struct limefs_prefetch *plan, struct limefs_stream *stream,
                      const struct limefs_read_req *req, int *planned_slot)
{
    uint64_t extent = plan->extent;
    uint64_t target = min_u64(stream->next + stream->depth * extent, req->end);
    skip_loaded_slots(plan, stream, req);
    if (stream->planned >= target || has_full_share(plan, stream))
        return false;
    uint64_t boundary = (stream->planned / extent + 1) * extent;
    uint64_t to = min_u64((stream->planned + stream->load_size) / align * align, boundary);
    to = min_u64(to, req->end);
    if (is_being_changed(plan, req->snap_id, stream->planned, to))
        return false;
    int i = allocate_slot(plan, req->now);
    if (i < 0)
        return false;
    plan->slot[i] = (struct limefs_extent){.state = LIMEFS_EXTENT_LOADING,
                                           .snap_id = req->snap_id,
                                           .from = stream->planned,
                                           .to = to,
                                           .last_used = req->now};
    stream->planned = plan->slot[i].to;
    stream->load_size = min_u64(stream->load_size * 2, extent);
    plan->stats.loads++;
    *planned_slot = i;
    return true;
}

/* Makes the stream's next load a small one that begins at the request. */
static void restart_loads(struct limefs_prefetch *plan, struct limefs_stream *stream,
                          const struct limefs_read_req *req)
{
    stream->planned = req->at / align * align;
    stream->load_size = min_u64(first_load, plan->extent);
    if (stream->depth == 0)
        stream->depth = 1;
}

int limefs_prefetch_plan(struct limefs_prefetch *plan, const struct limefs_read_req *req,
                         int max_loads, int loads[LIMEFS_SLOTS_MAX], bool *is_stream)
{
    int count = 0, slots[LIMEFS_CHUNKS_MAX];
    bool ready;
    struct limefs_stream *stream = advance_stream(plan, req);
    *is_stream = stream != NULL;
    if (!stream || max_loads <= 0 || stream->bytes < plan->threshold)
        return 0;
    int found = limefs_prefetch_find(plan, req, slots, &ready);
    bool new_pass = req->at == req->begin && stream->next >= req->end;
    if (new_pass)
        stream->next = req->at + req->n;
    if (new_pass || stream->load_size == 0 ||
        (found == 0 && stream->planned < req->at + req->n))
        restart_loads(plan, stream, req);
    /* If another stream has loaded the request's bytes, continue behind them. */
    if (found && stream->planned <= req->at) {
        uint64_t to = plan->slot[slots[found - 1]].to;
        stream->planned = to < req->end ? to / align * align : to;
    }
    while (count < LIMEFS_SLOTS_MAX && count < max_loads &&
           plan_load(plan, stream, req, &loads[count]))
        count++;
    return count;
}

int limefs_prefetch_find(const struct limefs_prefetch *plan, const struct limefs_read_req *req,
                         int slots[LIMEFS_CHUNKS_MAX], bool *ready)
{
    uint64_t at = req->at, end = req->at + req->n;
    int count = 0;
    *ready = true;
    while (at < end) {
        int i = count < LIMEFS_CHUNKS_MAX ? find_slot_at(plan, req->snap_id, at) : -1;
        if (i < 0)
            return 0;
        slots[count++] = i;
        *ready = *ready && plan->slot[i].state == LIMEFS_EXTENT_READY;
        at = plan->slot[i].to;
    }
    return count;
}

void limefs_prefetch_note_wait(struct limefs_prefetch *plan, const struct limefs_read_req *req)
{
    struct limefs_stream *stream = find_stream(plan, req);
    unsigned max_depth = plan->slots * 3 / 4 / count_active(plan, req->now);
    plan->stats.waits++;
    if (stream && stream->depth < max_depth)
        stream->depth++;
}

void limefs_prefetch_hold(struct limefs_prefetch *plan, const struct limefs_read_req *req,
                          const int *slots, int count, char *base, uint64_t stride,
                          struct limefs_chunks *chunks)
{
    uint64_t at = req->at, end = req->at + req->n;
    chunks->count = count;
    for (int i = 0; i < count; i++) {
        struct limefs_extent *slot = &plan->slot[slots[i]];
        uint64_t to = min_u64(slot->to, end);
        chunks->slot[i] = slots[i];
        chunks->iov[i].iov_base = base + (uint64_t)slots[i] * stride + (at - slot->from);
        chunks->iov[i].iov_len = to - at;
        slot->used += to - at;
        slot->holds++;
        slot->last_used = req->now;
        at = to;
    }
}

void limefs_prefetch_release(struct limefs_prefetch *plan, struct limefs_chunks *chunks)
{
    for (int i = 0; i < chunks->count; i++)
        plan->slot[chunks->slot[i]].holds--;
    chunks->count = 0;
}

bool limefs_prefetch_is_stale(const struct limefs_prefetch *plan,
                              const struct limefs_chunks *chunks)
{
    bool stale = false;
    for (int i = 0; i < chunks->count; i++)
        stale = stale || plan->slot[chunks->slot[i]].dropped;
    return stale;
}

void limefs_prefetch_end_load(struct limefs_prefetch *plan, int slot, bool good, double now)
{
    plan->slot[slot].last_used = now;
    plan->slot[slot].state = good ? LIMEFS_EXTENT_READY : LIMEFS_EXTENT_EMPTY;
}

/* Drops slots with bytes of the range; returns true if there were any. If so, each stream of
 * the snapshot restarts its loads at its next request, whose slots may have been dropped. */
static bool drop_range(struct limefs_prefetch *plan, uint64_t snap_id, uint64_t from,
                       uint64_t to)
{
    bool any = false;
    for (unsigned i = 0; i < plan->slots; i++) {
        struct limefs_extent *slot = &plan->slot[i];
        if (slot->state == LIMEFS_EXTENT_EMPTY || slot->dropped || slot->snap_id != snap_id ||
            slot->from >= to || from >= slot->to)
            continue;
        slot->dropped = any = true;
    }
    for (unsigned i = 0; i < LIMEFS_STREAMS_MAX && any; i++)
        if (plan->stream[i].snap_id == snap_id)
            plan->stream[i].load_size = 0;
    return any;
}

void limefs_prefetch_invalidate(struct limefs_prefetch *plan, uint64_t snap_id)
{
    drop_range(plan, snap_id, 0, UINT64_MAX);
}

bool limefs_prefetch_begin_change(struct limefs_prefetch *plan, struct limefs_change *change)
{
    change->next = plan->changes;
    plan->changes = change;
    return drop_range(plan, change->snap_id, change->from, change->to);
}

void limefs_prefetch_end_change(struct limefs_prefetch *plan, struct limefs_change *change)
{
    struct limefs_change **at = &plan->changes;
    while (*at != change)
        at = &(*at)->next;
    *at = change->next;
}

bool limefs_prefetch_is_changing(const struct limefs_prefetch *plan, uint64_t snap_id)
{
    for (const struct limefs_change *i = plan->changes; i; i = i->next)
        if (i->snap_id == snap_id)
            return true;
    return false;
}
