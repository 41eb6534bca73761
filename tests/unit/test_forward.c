/* test_forward.c - which reads are forwarded, what is prefetched, and which slot is reused */
#include "prefetch.h"

#include <stdlib.h>

#include "suite.h"

#define MIB (UINT64_C(1) << 20)

enum {
    BEGIN = 144,
    ID = 7,
    STRIDE = 64 << 20, /* bytes of memory from one slot to the next */
};

static const uint64_t end = BEGIN + 1000 * MIB + 77;

static struct bench {
    struct limefs_prefetch forward;
    double now;
    int loads[LIMEFS_SLOTS_MAX];
    int count;
} b; /* reset for each test */

static struct limefs_read_req want(uint64_t at, size_t n)
{
    return (struct limefs_read_req){
        .snap_id = ID, .begin = BEGIN, .end = end, .at = BEGIN + at, .n = n, .now = b.now};
}

static int set_up(void **state)
{
    (void)state;
    b = (struct bench){.now = 100};
    limefs_prefetch_init(&b.forward, 256 * MIB, 32 * MIB, 4 * MIB);
    assert_int_equal(b.forward.slots, 8);
    return 0;
}

/* Completes all planned loads. */
static void load_all(void)
{
    for (int i = 0; i < b.count; i++)
        limefs_prefetch_end_load(&b.forward, b.loads[i], true, b.now);
}

/* Makes a request and returns the number of chunks that answer it. */
static int request_read(uint64_t offset, size_t n)
{
    struct limefs_read_req request = want(offset, n);
    int slots[LIMEFS_CHUNKS_MAX];
    bool ready, follows;
    b.now += 1e-4;
    b.count = limefs_prefetch_plan(&b.forward, &request, LIMEFS_SLOTS_MAX, b.loads, &follows);
    load_all();
    int pieces = limefs_prefetch_find(&b.forward, &request, slots, &ready);
    assert_true(pieces == 0 || ready);
    if (pieces) {
        struct limefs_chunks chunks;
        char *const base = (char *)(uintptr_t)4096;
        uint64_t at = request.at;
        limefs_prefetch_hold(&b.forward, &request, slots, pieces, base, STRIDE, &chunks);
        for (int i = 0; i < pieces; i++) {
            const struct limefs_extent *slot = &b.forward.slot[chunks.slot[i]];
            uint64_t place = (uint64_t)((char *)chunks.iov[i].iov_base - base);
            assert_int_equal(place, (uint64_t)chunks.slot[i] * STRIDE + at - slot->from);
            at += chunks.iov[i].iov_len;
        }
        assert_int_equal(at, request.at + n);
        limefs_prefetch_release(&b.forward, &chunks);
    }
    return pieces;
}

TEST_WITH(test_a_stream_is_fetched_once_and_whole, set_up, NULL)
{
    uint64_t local = 0, loaded = 0, at = 0, bytes = end - BEGIN;
    for (; at < bytes; at += MIB) {
        size_t n = bytes - at < MIB ? (size_t)(bytes - at) : MIB;
        int pieces = request_read(at, n);
        for (int i = 0; i < b.count; i++) {
            const struct limefs_extent *extent = &b.forward.slot[b.loads[i]];
            assert_true(extent->from % 4096 == 0);
            assert_true(extent->from < extent->to && extent->to <= end);
            assert_int_equal(extent->from / (32 * MIB), (extent->to - 1) / (32 * MIB));
            loaded += extent->to - extent->from;
        }
        local += pieces ? 0 : n;
    }
    assert_true(local <= 4 * MIB);
    assert_true(loaded >= bytes - local && loaded <= bytes - local + 4096);
    assert_int_equal(b.forward.stats.wasted_bytes, 0);
}

/* Requests of 128 KiB and blocks of 1 MiB, as from the daemon's readahead threads. */
TEST_WITH(test_small_extents, set_up, NULL)
{
    uint64_t loaded = 0, local = 0;
    limefs_prefetch_init(&b.forward, 24 * MIB, MIB, 256 * 1024);
    for (uint64_t at = 0; at < 500 * MIB; at += 128 * 1024) {
        local += request_read(at, 128 * 1024) ? 0 : 128 * 1024;
        for (int i = 0; i < b.count; i++)
            loaded += b.forward.slot[b.loads[i]].to - b.forward.slot[b.loads[i]].from;
        if (at % MIB == 0) {
            struct limefs_read_req request = want(at, 128 * 1024);
            limefs_prefetch_note_wait(&b.forward, &request);
        }
    }
    assert_int_equal(b.forward.stream[0].depth, 18);
    assert_true(local <= 256 * 1024);
    assert_true(loaded >= 500 * MIB - local && loaded <= 519 * MIB);
    assert_int_equal(b.forward.stats.wasted_bytes, 0);
}

TEST_WITH(test_loads_grow_to_an_extent, set_up, NULL)
{
    uint64_t longest = 0;
    for (uint64_t at = 0; at < 200 * MIB; at += MIB) {
        request_read(at, MIB);
        for (int i = 0; i < b.count; i++) {
            const struct limefs_extent *extent = &b.forward.slot[b.loads[i]];
            uint64_t n = extent->to - extent->from;
            assert_true(longest > 0 || n <= 4 * MIB);
            longest = n > longest ? n : longest;
        }
    }
    assert_int_equal(longest, 32 * MIB);
}

TEST_WITH(test_out_of_order, set_up, NULL)
{
    static const uint64_t order[] = {1, 0, 3, 2, 6, 4, 5, 7};
    int answered = 0;
    for (uint64_t at = 0; at < 400; at += 8)
        for (size_t i = 0; i < 8; i++)
            answered += request_read((at + order[i]) * MIB, MIB) > 0;
    assert_true(answered >= 385);
}

TEST_WITH(test_random_and_small_requests_are_local, set_up, NULL)
{
    srand(3);
    for (int i = 0; i < 100000; i++) {
        uint64_t at = (uint64_t)rand() % (990 * MIB);
        assert_int_equal(request_read(at, 4096), 0);
        assert_int_equal(b.count, 0);
    }
    /* So few MiB that all requests are near each other. */
    for (int i = 0; i < 100000; i++)
        assert_int_equal(request_read((uint64_t)rand() % (8 * MIB), 4096), 0);
    assert_int_equal(b.forward.stats.loads, 0);
}

TEST_WITH(test_a_small_block_stream_is_a_stream, set_up, NULL)
{
    int answered = 0;
    request_read(0, 128 * 1024);
    for (uint64_t at = 128 * 1024; at < 20 * MIB; at += 4096)
        answered += request_read(at, 4096) > 0;
    assert_true(answered > 3500);
}

TEST_WITH(test_no_load_without_permission, set_up, NULL)
{
    for (uint64_t at = 0; at < 50 * MIB; at += MIB) {
        struct limefs_read_req request = want(at, MIB);
        bool follows;
        assert_int_equal(limefs_prefetch_plan(&b.forward, &request, 0, b.loads, &follows), 0);
    }
    assert_true(request_read(50 * MIB, MIB) > 0); /* prefetched at once where possible */
}

TEST_WITH(test_waiting_leads_further_ahead, set_up, NULL)
{
    for (uint64_t at = 0; at < 300 * MIB; at += MIB) {
        struct limefs_read_req request = want(at, MIB);
        request_read(at, MIB);
        if (at % (32 * MIB) == 0)
            limefs_prefetch_note_wait(&b.forward, &request);
    }
    assert_int_equal(b.forward.stream[0].depth, 6); /* of 8 slots: slow streams need a few */
}

TEST_WITH(test_abandoned_stream_is_wasted, set_up, NULL)
{
    for (uint64_t at = 0; at < 100 * MIB; at += MIB) {
        struct limefs_read_req request = want(at, MIB);
        request_read(at, MIB);
        limefs_prefetch_note_wait(&b.forward, &request);
    }
    assert_true(b.forward.stream[0].depth > 1);
    b.now += 10;
    for (uint64_t at = 600 * MIB; at < 900 * MIB; at += MIB)
        request_read(at, MIB);
    assert_true(b.forward.stats.wasted_bytes >= 32 * MIB);
}

TEST_WITH(test_held_and_loading_slots_are_not_reused, set_up, NULL)
{
    for (uint64_t at = 0; at < 8 * MIB; at += MIB)
        request_read(at, MIB);
    for (unsigned i = 0; i < 8; i++) {
        b.forward.slot[i].state = i % 2 ? LIMEFS_EXTENT_LOADING : LIMEFS_EXTENT_READY;
        b.forward.slot[i].holds = i % 2 ? 0 : 1;
    }
    b.now += 100;
    struct limefs_read_req request = want(9 * MIB, MIB);
    bool follows;
    b.forward.stream[0].planned = request.at;
    assert_int_equal(
        limefs_prefetch_plan(&b.forward, &request, LIMEFS_SLOTS_MAX, b.loads, &follows), 0);
}

TEST_WITH(test_dropped_bytes_are_not_found, set_up, NULL)
{
    int slots[LIMEFS_CHUNKS_MAX];
    bool ready;
    for (uint64_t at = 0; at < 20 * MIB; at += MIB)
        request_read(at, MIB);
    struct limefs_read_req request = want(19 * MIB, MIB);
    assert_true(limefs_prefetch_find(&b.forward, &request, slots, &ready) > 0);
    limefs_prefetch_invalidate(&b.forward, ID);
    assert_int_equal(limefs_prefetch_find(&b.forward, &request, slots, &ready), 0);
    request.snap_id = ID + 1;
    assert_int_equal(limefs_prefetch_find(&b.forward, &request, slots, &ready), 0);
}

static bool has(uint64_t offset)
{
    struct limefs_read_req request = want(offset, 1);
    int slots[LIMEFS_CHUNKS_MAX];
    bool ready;
    return limefs_prefetch_find(&b.forward, &request, slots, &ready) > 0;
}

/* A change drops the prefetched data; they can be prefetched again after it. */
TEST_WITH(test_changes, set_up, NULL)
{
    uint64_t at = 0;
    for (; at < 60 * MIB; at += MIB)
        request_read(at, MIB);
    assert_true(has(50 * MIB) && has(59 * MIB));
    struct limefs_change change = {
        .snap_id = ID, .from = BEGIN + 59 * MIB, .to = BEGIN + 59 * MIB + 1};
    struct limefs_change other = {.snap_id = ID + 1, .to = UINT64_MAX};
    struct limefs_change nothing = {.snap_id = ID, .from = BEGIN + 50 * MIB, .to = 0};
    assert_false(limefs_prefetch_begin_change(&b.forward, &other));
    assert_false(limefs_prefetch_begin_change(&b.forward, &nothing));
    assert_true(has(50 * MIB) && has(59 * MIB));
    assert_true(limefs_prefetch_begin_change(&b.forward, &change));
    assert_false(has(59 * MIB));
    assert_true(limefs_prefetch_is_changing(&b.forward, ID));

    /* During the change, in a stream and from the beginning. */
    for (at = 55 * MIB; at < 70 * MIB; at += MIB) {
        request_read(at, MIB);
        assert_false(has(59 * MIB));
    }
    limefs_prefetch_end_change(&b.forward, &other);
    limefs_prefetch_end_change(&b.forward, &change);
    limefs_prefetch_end_change(&b.forward, &nothing);
    assert_false(limefs_prefetch_is_changing(&b.forward, ID));
    assert_false(has(59 * MIB));
    for (at = 50 * MIB; at < 62 * MIB; at += MIB)
        request_read(at, MIB);
    assert_true(has(59 * MIB));
}

/* A load is in progress when its bytes change. */
TEST_WITH(test_a_change_during_a_load, set_up, NULL)
{
    struct limefs_change change = {.snap_id = ID, .from = BEGIN, .to = UINT64_MAX};
    bool follows, ready;
    int slots[LIMEFS_CHUNKS_MAX];
    struct limefs_read_req request = want(0, 5 * MIB);
    b.count = limefs_prefetch_plan(&b.forward, &request, 1, b.loads, &follows);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.forward.slot[b.loads[0]].state, LIMEFS_EXTENT_LOADING);
    assert_true(limefs_prefetch_begin_change(&b.forward, &change));
    assert_int_equal(limefs_prefetch_find(&b.forward, &request, slots, &ready), 0);
    limefs_prefetch_end_change(&b.forward, &change);
    load_all();
    assert_int_equal(limefs_prefetch_find(&b.forward, &request, slots, &ready), 0);
}

/* Reads a record of 10 MiB; returns how many of the requests were answered. */
static int read_short(void)
{
    int answered = 0, slots[LIMEFS_CHUNKS_MAX];
    for (uint64_t at = 0; at < 10 * MIB; at += MIB) {
        struct limefs_read_req request = want(at, MIB);
        bool follows, ready;
        request.end = BEGIN + 10 * MIB;
        b.now += 1e-4;
        b.count =
            limefs_prefetch_plan(&b.forward, &request, LIMEFS_SLOTS_MAX, b.loads, &follows);
        load_all();
        answered += limefs_prefetch_find(&b.forward, &request, slots, &ready) > 0;
    }
    return answered;
}

/* A record shorter than a stream is read again: at once, without its slots, after a change. */
TEST_WITH(test_rereading_a_short_record, set_up, NULL)
{
    struct limefs_change hole = {.snap_id = ID, .from = BEGIN + 5 * MIB, .to = BEGIN + 7 * MIB};
    assert_true(read_short() >= 6);
    for (int i = 0; i < 10; i++) {
        uint64_t loads = b.forward.stats.loads;
        assert_int_equal(read_short(), 10);
        assert_true(i == 0 || b.forward.stats.loads == loads);
        limefs_prefetch_invalidate(&b.forward, ID);
        assert_int_equal(read_short(), 10);
        limefs_prefetch_begin_change(&b.forward, &hole);
        limefs_prefetch_end_change(&b.forward, &hole);
        assert_int_equal(read_short(), 10);
    }
}

/* A second reader, far behind the first, reads data that are still prefetched. */
TEST_WITH(test_behind_another_stream, set_up, NULL)
{
    for (uint64_t at = 0; at < 100 * MIB; at += MIB)
        request_read(at, MIB);
    for (uint64_t at = 60 * MIB; at < 200 * MIB; at += MIB) {
        request_read(at, MIB);
        for (int i = 0; i < b.count; i++) {
            const struct limefs_extent *extent = &b.forward.slot[b.loads[i]];
            assert_true(extent->from < extent->to);
            assert_true(extent->to > BEGIN + at);
        }
    }
}

TEST_WITH(test_many_streams_share_the_slots, set_up, NULL)
{
    int answered = 0;
    for (uint64_t at = 0; at < 100 * MIB; at += MIB)
        for (uint64_t stream = 0; stream < 4; stream++)
            answered += request_read(stream * 200 * MIB + at, MIB) > 0;
    assert_true(answered > 340); /* of 384 possible ones */
}
