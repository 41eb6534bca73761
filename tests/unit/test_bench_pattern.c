/* test_bench_pattern.c - lime-bench: the ranks together have each byte of the file once */
#include "lattice.h"

#include "dataset.h"

#include <stdio.h>

enum {
    BYTES_MAX = 1 << 17, /* of a file */
    RANKS_MAX = 12,
};

static int64_t up_to(uint64_t n)
{
    return 1 + (int64_t)chance_below(n);
}

/* 1 to 3 ranks in each dimension; they need not divide the extents evenly. */
static void lattice_pattern(struct bench_pattern *p)
{
    p->ranks = 1;
    p->site_bytes = up_to(20);
    p->transfer = up_to(chance_below(2) ? 30 : 3000);
    for (int d = 0; d < BENCH_DIMS; d++) {
        p->grid[d] = (int)up_to(3);
        if (p->ranks * p->grid[d] > RANKS_MAX)
            p->grid[d] = 1;
        p->ranks *= p->grid[d];
        p->lattice[d] = p->grid[d] + (int)chance_below(5);
    }
}

static struct bench_pattern pattern_by_chance(void)
{
    struct bench_pattern p = {.kind = (enum bench_pattern_kind)chance_below(BENCH_PATTERNS),
                              .site_bytes = 1};
    if (p.kind == BENCH_LATTICE) {
        lattice_pattern(&p);
        return p;
    }
    p.ranks = (int)up_to(RANKS_MAX);
    p.seed = chance_below(1000);
    p.transfer = up_to(200);
    p.block = p.kind == BENCH_DISJOINT ? p.transfer + (int64_t)chance_below(5000) : p.transfer;
    p.segments = p.kind == BENCH_DISJOINT ? 1 : up_to(40);
    return p;
}

static void mark(unsigned char *seen, int64_t at, int64_t n, int64_t bytes)
{
    assert_true(at >= 0 && n > 0 && at + n <= bytes);
    for (int64_t i = at; i < at + n; i++)
        assert_int_equal(seen[i]++, 0);
}

TEST(test_known_places)
{
    struct bench_pattern p = {
        .kind = BENCH_INTERLEAVED, .ranks = 3, .transfer = 10, .segments = 4, .block = 10};
    struct bench_piece piece;
    bench_pattern_piece(&p, 2, 1, &piece);
    assert_int_equal(piece.offset, 50); /* (1 * 3 + 2) * 10 */
    assert_int_equal(bench_pattern_bytes(&p), 120);
    p = (struct bench_pattern){.kind = BENCH_DISJOINT, .ranks = 3, .transfer = 8, .block = 20};
    bench_pattern_piece(&p, 1, 2, &piece);
    assert_int_equal(piece.offset, 36);
    assert_int_equal(piece.bytes, 4); /* the rest of the block */
    p.block = INT64_MAX / 2;
    assert_int_equal(bench_pattern_bytes(&p), -1);
}

/* A different seed gives a different order, the same seed the same order. */
TEST(test_random_order)
{
    struct bench_pattern p = {
        .kind = BENCH_RANDOM, .ranks = 4, .transfer = 1, .segments = 1000, .seed = 1};
    struct bench_pattern other = p;
    int same = 0, in_turn = 0;
    other.seed = 2;
    for (int64_t i = 0; i < p.segments; i++) {
        struct bench_piece a, b, again;
        bench_pattern_piece(&p, 1, i, &a);
        bench_pattern_piece(&p, 1, i, &again);
        bench_pattern_piece(&other, 1, i, &b);
        assert_int_equal(a.offset, again.offset);
        same += a.offset == b.offset;
        in_turn += a.offset == i * p.ranks + 1;
    }
    assert_true(same < 10 && in_turn < 10);
}

/* ---- data ---- */

TEST(test_each_wrong_byte_is_found)
{
    static unsigned char data[70000];
    const int64_t base = INT64_C(5) << 40;
    bench_data_fill(1, base, data, sizeof data);
    for (int i = 0; i < chance_times(300); i++) {
        int64_t from = (int64_t)chance_below(60000), n = up_to(10000);
        int64_t bad = from + (int64_t)chance_below((uint64_t)n);
        struct bench_mismatch wrong = {0};
        data[bad] ^= 1u << chance_below(8);
        bench_data_check(1, base + from, data + from, n, &wrong);
        assert_int_equal(wrong.bytes, 1);
        assert_int_equal(wrong.offset, base + bad);
        assert_int_equal(wrong.found, data[bad]);
        data[bad] = wrong.expected;
    }
}

/* Each place and each seed has different bytes, and none are zeros. */
TEST(test_data_differ)
{
    static unsigned char data[4096], zeros[4096];
    struct bench_mismatch wrong = {0};
    bench_data_fill(1, 0, data, sizeof data);
    bench_data_check(2, 0, data, sizeof data, &wrong);
    assert_true(wrong.bytes > 4000);
    wrong.bytes = 0;
    bench_data_check(1, 4096, data, sizeof data, &wrong);
    assert_true(wrong.bytes > 4000);
    wrong.bytes = 0;
    bench_data_check(1, 0, zeros, sizeof zeros, &wrong);
    assert_true(wrong.bytes > 4000);
}

/* ---- datasets ---- */

/* Marks the bytes of a slab in row-major order and compares them with the pattern. */
static void mark_slab(const struct bench_dataset *set, const struct bench_slab *slab,
                      const unsigned char *memory, const unsigned char *file,
                      unsigned char *seen, int64_t bytes)
{
    int64_t n = 1;
    for (int d = 0; d < set->dims; d++)
        n *= slab->count[d];
    assert_int_equal(n, slab->bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0, coordinate[BENCH_DATASET_DIMS] = {0};
        for (int d = set->dims - 1; d >= 0; d--) {
            coordinate[d] = slab->start[d] + rest % slab->count[d];
            rest /= slab->count[d];
        }
        for (int d = 0; d < set->dims; d++)
            at = at * set->extent[d] + coordinate[d];
        mark(seen, at, 1, bytes);
        assert_int_equal(file[at], memory[slab->mem_offset + i]);
    }
}

/* In memory a rank's pieces are contiguous. */
static void fill_rank(const struct bench_pattern *p, int rank, unsigned char *memory)
{
    int64_t pieces = bench_pattern_pieces(p, rank), bytes = 0;
    assert_true(pieces <= bench_pattern_max_pieces(p));
    for (int64_t i = 0; i < pieces; i++) {
        struct bench_piece piece;
        bench_pattern_piece(p, rank, i, &piece);
        assert_int_equal(piece.mem_offset, bytes);
        assert_true(piece.bytes > 0 && piece.bytes <= p->transfer);
        bench_data_fill(1, piece.offset, memory + piece.mem_offset, piece.bytes);
        bytes += piece.bytes;
    }
    assert_int_equal(bytes, bench_pattern_rank_bytes(p, rank));
}

static void check_chunks(const struct bench_dataset *set, int64_t chunk)
{
    int64_t bytes = 1;
    for (int d = 0; d < set->dims; d++) {
        assert_true(set->chunk[d] >= 1 && set->chunk[d] <= set->extent[d]);
        bytes *= set->chunk[d];
    }
    assert_true(bytes <= chunk);
}

static void check_dataset(const struct bench_task *task)
{
    static unsigned char file[BYTES_MAX], memory[BYTES_MAX], seen[BYTES_MAX];
    struct bench_dataset set;
    int64_t bytes = bench_pattern_bytes(&task->pattern), marked = 0;
    assert_true(bytes > 0 && bytes <= BYTES_MAX);
    bench_dataset_init(&set, task);
    if (task->chunk)
        check_chunks(&set, task->chunk);
    bench_data_fill(1, 0, file, bytes);
    memset(seen, 0, sizeof seen);
    for (int rank = 0; rank < task->pattern.ranks; rank++) {
        fill_rank(&task->pattern, rank, memory);
        for (int64_t i = 0; i < bench_dataset_rounds(&set); i++) {
            struct bench_slab slab;
            bench_dataset_slab(&set, rank, i, &slab);
            marked += slab.bytes;
            assert_true(slab.bytes == 0 ||
                        slab.start[0] + slab.count[0] <= bench_dataset_length_for(&set, i));
            if (slab.bytes)
                mark_slab(&set, &slab, memory, file, seen, bytes);
        }
    }
    assert_int_equal(marked, bytes);
}

/* The slabs of all ranks contain each byte once. In one dimension a slab is a piece, so the
 * pieces do too; with the shape of a lattice they are in the order of a box. */
TEST(test_datasets)
{
    for (int i = 0; i < chance_times(1000); i++) {
        struct bench_task task = {.pattern = pattern_by_chance(),
                                  .shape = (enum bench_shape)chance_below(3),
                                  .chunk = chance_below(2) ? up_to(3000) : 0};
        if (!bench_dataset_unsupported(&task))
            check_dataset(&task);
    }
}

/* A part of a lattice is split if it is too large for one call. */
TEST(test_large_parts_are_cut)
{
    struct bench_task task = {.pattern = {.kind = BENCH_LATTICE,
                                          .ranks = 2,
                                          .transfer = 1 << 20,
                                          .lattice = {700, 50, 60, 90},
                                          .grid = {1, 1, 1, 2},
                                          .site_bytes = 576}};
    struct bench_dataset set;
    int64_t bytes = 0;
    bench_dataset_init(&set, &task);
    for (int64_t i = 0; i < bench_dataset_rounds(&set); i++) {
        struct bench_slab slab;
        bench_dataset_slab(&set, 1, i, &slab);
        assert_true(slab.bytes > 0 && slab.bytes <= BENCH_MOVE_MAX);
        assert_int_equal(slab.mem_offset, bytes);
        bytes += slab.bytes;
    }
    assert_int_equal(bytes, bench_pattern_rank_bytes(&task.pattern, 1));
    struct bench_slab none;
    bench_dataset_slab(&set, 1, bench_dataset_rounds(&set), &none);
    assert_int_equal(none.bytes, 0);
    assert_null(bench_dataset_unsupported(&task));
    task.pattern.lattice[1] = 5000;
    assert_non_null(bench_dataset_unsupported(&task)); /* a slice is too large */
}
