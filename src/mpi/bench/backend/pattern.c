/* pattern.c - which bytes of the file belong to which rank, and their values */
#include "pattern.h"
#include "splitmix64.h"

#include <string.h>

const char *const bench_pattern_names[BENCH_PATTERNS + 1] = {"disjoint", "interleaved",
                                                             "random", "lattice", NULL};

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

void bench_pattern_box(const struct bench_pattern *p, int rank, struct lemon_box *box)
{
    box->dims = BENCH_DIMS;
    box->site_bytes = p->site_bytes;
    for (int d = BENCH_DIMS - 1; d >= 0; d--) {
        box->extent[d] = p->lattice[d];
        lemon_box_split(p->lattice[d], p->grid[d], rank % p->grid[d], &box->start[d],
                        &box->sites[d]);
        rank /= p->grid[d];
    }
}

int64_t bench_pattern_bytes(const struct bench_pattern *p)
{
    int64_t bytes;
    if (p->kind == BENCH_LATTICE) {
        struct lemon_box box;
        bench_pattern_box(p, 0, &box);
        return lemon_box_lattice_bytes(&box);
    }
    bytes = p->block;
    if (p->kind != BENCH_DISJOINT && __builtin_mul_overflow(p->segments, p->transfer, &bytes))
        return -1;
    return __builtin_mul_overflow(bytes, (int64_t)p->ranks, &bytes) ? -1 : bytes;
}

int64_t bench_pattern_rank_bytes(const struct bench_pattern *p, int rank)
{
    if (p->kind == BENCH_LATTICE) {
        struct lemon_box box;
        bench_pattern_box(p, rank, &box);
        return lemon_box_bytes(&box);
    }
    return p->kind == BENCH_DISJOINT ? p->block : p->segments * p->transfer;
}

/* ---- lattice: the runs of a box, each cut into pieces ---- */

static int64_t lattice_pieces(const struct bench_pattern *p, int rank)
{
    struct lemon_box box;
    bench_pattern_box(p, rank, &box);
    int64_t run = lemon_box_run_bytes(&box);
    return run ? lemon_box_bytes(&box) / run * divide_up(run, p->transfer) : 0;
}

static void lattice_piece(const struct bench_pattern *p, int rank, int64_t i,
                          struct bench_piece *piece)
{
    struct lemon_box box;
    bench_pattern_box(p, rank, &box);
    int64_t run_bytes = lemon_box_run_bytes(&box);
    int64_t in_run = divide_up(run_bytes, p->transfer);
    int64_t run = i / in_run, inside = i % in_run * p->transfer;
    piece->offset = lemon_box_run_offset(&box, run_bytes, run) + inside;
    piece->mem_offset = run * run_bytes + inside;
    piece->bytes = smaller(p->transfer, run_bytes - inside);
}

/* Returns element i of a permutation of 0 .. n - 1 that needs no memory: a Feistel network over
 * the next power of 4, repeated until the result is less than n. */
static uint64_t permute(uint64_t seed, uint64_t n, uint64_t i)
{
    int half = 1;
    while (half < 32 && (UINT64_C(1) << 2 * half) < n)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 1; round <= 4; round++) {
            uint64_t next = left ^ (mix64(right + mix64(seed + round)) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

int64_t bench_pattern_pieces(const struct bench_pattern *p, int rank)
{
    if (p->kind == BENCH_LATTICE)
        return lattice_pieces(p, rank);
    return p->kind == BENCH_DISJOINT ? divide_up(p->block, p->transfer) : p->segments;
}

int64_t bench_pattern_max_pieces(const struct bench_pattern *p)
{
    int64_t max = 0;
    for (int rank = 0; rank < p->ranks; rank++) {
        int64_t pieces = bench_pattern_pieces(p, rank);
        max = pieces > max ? pieces : max;
    }
    return max;
}

void bench_pattern_piece(const struct bench_pattern *p, int rank, int64_t i,
                         struct bench_piece *piece)
{
    int64_t number;
    if (p->kind == BENCH_LATTICE) {
        lattice_piece(p, rank, i, piece);
        return;
    }
    piece->mem_offset = i * p->transfer;
    piece->bytes = p->transfer;
    switch (p->kind) {
    case BENCH_DISJOINT:
        piece->bytes = smaller(p->transfer, p->block - piece->mem_offset);
        piece->offset = rank * p->block + piece->mem_offset;
        return;
    case BENCH_INTERLEAVED:
        number = i * p->ranks + rank;
        break;
    default:
        number = (int64_t)permute(p->seed, (uint64_t)(p->segments * p->ranks),
                                  (uint64_t)(rank * p->segments + i));
    }
    piece->offset = number * p->transfer;
}

/* ---- values ---- */

enum {
    WORD = 8,
    BLOCK = 4096, /* number of bytes compared at once */
};

static uint64_t derive_key(uint64_t seed)
{
    return mix64(seed + MIX64_STEP);
}

/* Returns bytes 8 * i to 8 * i + 7 of the data, faster than memory could deliver them. */
static inline uint64_t data_word(uint64_t key, uint64_t i)
{
    uint64_t x = key + i * MIX64_STEP;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

static unsigned char byte_at(uint64_t key, int64_t at)
{
    unsigned char bytes[WORD];
    uint64_t value = data_word(key, (uint64_t)at / WORD);
    memcpy(bytes, &value, sizeof value);
    return bytes[at % WORD];
}

/* Returns how many of n bytes from offset `at` on precede the first whole word. */
static int64_t count_head_bytes(int64_t at, int64_t n)
{
    int64_t head = (WORD - at % WORD) % WORD;
    return head < n ? head : n;
}

void bench_data_fill(uint64_t seed, int64_t at, void *data, int64_t n)
{
    uint64_t key = derive_key(seed);
    unsigned char *out = data;
    int64_t head = count_head_bytes(at, n), words = (n - head) / WORD, i = 0;
    for (; i < head; i++)
        out[i] = byte_at(key, at + i);
    uint64_t index = (uint64_t)(at + head) / WORD;
    for (int64_t w = 0; w < words; w++, i += WORD) {
        uint64_t value = data_word(key, index + (uint64_t)w);
        memcpy(out + i, &value, sizeof value);
    }
    for (; i < n; i++)
        out[i] = byte_at(key, at + i);
}

void bench_data_check(uint64_t seed, int64_t at, const void *data, int64_t n,
                      struct bench_mismatch *wrong)
{
    const unsigned char *in = data;
    unsigned char expected[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t bytes = n - i < BLOCK ? n - i : BLOCK;
        bench_data_fill(seed, at + i, expected, bytes);
        if (memcmp(expected, in + i, (size_t)bytes) == 0)
            continue;
        for (int64_t k = 0; k < bytes; k++) {
            if (in[i + k] == expected[k])
                continue;
            if (wrong->bytes++ == 0 || at + i + k < wrong->offset) {
                wrong->offset = at + i + k;
                wrong->expected = expected[k];
                wrong->found = in[i + k];
            }
        }
    }
}
