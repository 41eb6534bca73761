/*
 * md5.c - RFC 1321 in lanes
 *
 * The same code makes a function of 4 and one of 8 lanes, each for several instruction sets.
 * With AVX-512VL a step is four instructions long (vpternlogd, vpaddd, vprold, vpaddd), so that
 * one stream alone is not slower in a vector than by the best code for plain registers.
 */
#include "md5.h"

#include <string.h>

typedef uint32_t vector4 __attribute__((vector_size(16)));
typedef uint32_t vector8 __attribute__((vector_size(32)));
typedef vector4 vector4_loose __attribute__((aligned(1), may_alias));
typedef vector8 vector8_loose __attribute__((aligned(1), may_alias));

/* The states of the lanes, word by word, and where each lane's next block is. */
struct lanes {
    uint32_t state[4][STAGE_MD5_LANES] __attribute__((aligned(32)));
    const unsigned char *data[STAGE_MD5_LANES];
};

#define INLINE static inline __attribute__((always_inline))

#define SHUFFLE __builtin_shufflevector

/* The words are little-endian in every stream. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LITTLE(m) (m << 24 | (m & 0xff00) << 8 | (m >> 8 & 0xff00) | m >> 24)
#else
#define LITTLE(m) (m)
#endif

/* ---- loading: 16 words of each lane become 16 vectors of one word each ---- */

INLINE void load4(const unsigned char *const *data, size_t at, vector4 m[16])
{
    for (int quarter = 0; quarter < 4; quarter++) {
        vector4 row[4];
        for (int lane = 0; lane < 4; lane++)
            row[lane] = *(const vector4_loose *)(data[lane] + at + 16 * (size_t)quarter);
        vector4 low01 = SHUFFLE(row[0], row[1], 0, 4, 1, 5);
        vector4 low23 = SHUFFLE(row[2], row[3], 0, 4, 1, 5);
        vector4 high01 = SHUFFLE(row[0], row[1], 2, 6, 3, 7);
        vector4 high23 = SHUFFLE(row[2], row[3], 2, 6, 3, 7);
        m[4 * quarter] = SHUFFLE(low01, low23, 0, 1, 4, 5);
        m[4 * quarter + 1] = SHUFFLE(low01, low23, 2, 3, 6, 7);
        m[4 * quarter + 2] = SHUFFLE(high01, high23, 0, 1, 4, 5);
        m[4 * quarter + 3] = SHUFFLE(high01, high23, 2, 3, 6, 7);
    }
}

INLINE void load8(const unsigned char *const *data, size_t at, vector8 m[16])
{
    for (int half = 0; half < 2; half++) {
        vector8 row[8], pair[8], four[8];
        for (int lane = 0; lane < 8; lane++)
            row[lane] = *(const vector8_loose *)(data[lane] + at + 32 * (size_t)half);
        for (int i = 0; i < 8; i += 2) {
            pair[i] = SHUFFLE(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
            pair[i + 1] = SHUFFLE(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
        }
        for (int i = 0; i < 8; i += 4)
            for (int k = 0; k < 2; k++) {
                four[i + 2 * k] =
                    SHUFFLE(pair[i + k], pair[i + 2 + k], 0, 1, 8, 9, 4, 5, 12, 13);
                four[i + 2 * k + 1] =
                    SHUFFLE(pair[i + k], pair[i + 2 + k], 2, 3, 10, 11, 6, 7, 14, 15);
            }
        for (int i = 0; i < 4; i++) {
            m[8 * half + i] = SHUFFLE(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
            m[8 * half + 4 + i] = SHUFFLE(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        }
    }
}

/* ---- the 64 steps ---- */

#define F(b, c, d) (d ^ (b & (c ^ d)))
#define G(b, c, d) (c ^ (d & (b ^ c)))
#define H(b, c, d) (b ^ c ^ d)
#define I(b, c, d) (c ^ (b | ~d))

#define STEP(f, a, b, c, d, word, by, constant)    \
    do {                                           \
        a += LITTLE(m[word]) + UINT32_C(constant); \
        a += f(b, c, d);                           \
        a = (a << by | a >> (32 - by)) + b;        \
    } while (0)

#define FOUR(f, w0, w1, w2, w3, s0, s1, s2, s3, k0, k1, k2, k3) \
    STEP(f, a, b, c, d, w0, s0, k0);                            \
    STEP(f, d, a, b, c, w1, s1, k1);                            \
    STEP(f, c, d, a, b, w2, s2, k2);                            \
    STEP(f, b, c, d, a, w3, s3, k3)

#define ALL_STEPS                                                                           \
    FOUR(F, 0, 1, 2, 3, 7, 12, 17, 22, 0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee);     \
    FOUR(F, 4, 5, 6, 7, 7, 12, 17, 22, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501);     \
    FOUR(F, 8, 9, 10, 11, 7, 12, 17, 22, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be);   \
    FOUR(F, 12, 13, 14, 15, 7, 12, 17, 22, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821); \
    FOUR(G, 1, 6, 11, 0, 5, 9, 14, 20, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa);     \
    FOUR(G, 5, 10, 15, 4, 5, 9, 14, 20, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8);    \
    FOUR(G, 9, 14, 3, 8, 5, 9, 14, 20, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed);     \
    FOUR(G, 13, 2, 7, 12, 5, 9, 14, 20, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a);    \
    FOUR(H, 5, 8, 11, 14, 4, 11, 16, 23, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c);   \
    FOUR(H, 1, 4, 7, 10, 4, 11, 16, 23, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70);    \
    FOUR(H, 13, 0, 3, 6, 4, 11, 16, 23, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05);    \
    FOUR(H, 9, 12, 15, 2, 4, 11, 16, 23, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665);   \
    FOUR(I, 0, 7, 14, 5, 6, 10, 15, 21, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039);    \
    FOUR(I, 12, 3, 10, 1, 6, 10, 15, 21, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1);   \
    FOUR(I, 8, 15, 6, 13, 6, 10, 15, 21, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1);   \
    FOUR(I, 4, 11, 2, 9, 6, 10, 15, 21, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391)

/* For the lanes from `first` on, as many as the vector has. */
#define DEFINE(name, vector, load, attributes)                                               \
    attributes static void name(struct lanes *l, unsigned first, size_t blocks)              \
    {                                                                                        \
        vector *sa = (vector *)(l->state[0] + first), *sb = (vector *)(l->state[1] + first); \
        vector *sc = (vector *)(l->state[2] + first), *sd = (vector *)(l->state[3] + first); \
        vector a = *sa, b = *sb, c = *sc, d = *sd;                                           \
        for (size_t at = 0; at < blocks * STAGE_MD5_BLOCK; at += STAGE_MD5_BLOCK) {          \
            vector m[16], a0 = a, b0 = b, c0 = c, d0 = d;                                    \
            load(l->data + first, at, m);                                                    \
            ALL_STEPS;                                                                       \
            a += a0;                                                                         \
            b += b0;                                                                         \
            c += c0;                                                                         \
            d += d0;                                                                         \
        }                                                                                    \
        *sa = a;                                                                             \
        *sb = b;                                                                             \
        *sc = c;                                                                             \
        *sd = d;                                                                             \
    }

DEFINE(run4, vector4, load4, )
#if defined(__x86_64__)
DEFINE(run4_avx512, vector4, load4, __attribute__((target("avx512f,avx512vl"))))
DEFINE(run8_avx512, vector8, load8, __attribute__((target("avx512f,avx512vl"))))
DEFINE(run8_avx2, vector8, load8, __attribute__((target("avx2"))))
#endif

typedef void run_fn(struct lanes *, unsigned first, size_t blocks);

/* The best function for so many lanes, and how many it does at once. */
static run_fn *best(unsigned count, unsigned *width)
{
    *width = count > 4 ? 8 : 4;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vl"))
        return count > 4 ? run8_avx512 : run4_avx512;
    if (count > 4 && __builtin_cpu_supports("avx2"))
        return run8_avx2;
#endif
    *width = 4;
    return run4;
}

/* The same number of blocks of each part, which has them. */
static void add_blocks(struct stage_md5_part *const *part, unsigned count, size_t blocks)
{
    struct lanes l;
    unsigned width;
    run_fn *run = best(count, &width);
    for (unsigned i = 0; i < STAGE_MD5_LANES; i++) {
        /* Lanes that nobody needs do what the first one does. */
        const struct stage_md5_part *p = part[i < count ? i : 0];
        l.data[i] = p->data;
        for (int w = 0; w < 4; w++)
            l.state[w][i] = p->md5->state[w];
    }
    for (unsigned first = 0; first < count; first += width)
        run(&l, first, blocks);
    for (unsigned i = 0; i < count; i++) {
        size_t n = blocks * STAGE_MD5_BLOCK;
        for (int w = 0; w < 4; w++)
            part[i]->md5->state[w] = l.state[w][i];
        part[i]->data += n;
        part[i]->n -= n;
    }
}

/* ---- streams ---- */

void stage_md5_init(struct stage_md5 *md5)
{
    *md5 = (struct stage_md5){
        .state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476},
    };
}

static void add_tail(struct stage_md5 *md5)
{
    struct stage_md5_part tail = {md5, md5->tail, STAGE_MD5_BLOCK};
    struct stage_md5_part *parts[] = {&tail};
    add_blocks(parts, 1, 1);
}

/* Fills the tail that waits, or begins one: bytes that are no whole block. */
static void fill_tail(struct stage_md5_part *p, size_t used)
{
    size_t room = STAGE_MD5_BLOCK - used, n = p->n < room ? p->n : room;
    if (n)
        memcpy(p->md5->tail + used, p->data, n);
    p->data += n;
    p->n -= n;
    if (used + n == STAGE_MD5_BLOCK)
        add_tail(p->md5);
}

void stage_md5_add(struct stage_md5_part *parts, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        size_t used = parts[i].md5->bytes % STAGE_MD5_BLOCK;
        parts[i].md5->bytes += parts[i].n;
        if (used)
            fill_tail(&parts[i], used);
    }
    for (;;) {
        struct stage_md5_part *busy[STAGE_MD5_LANES];
        unsigned lanes = 0;
        size_t blocks = SIZE_MAX;
        for (unsigned i = 0; i < count; i++) {
            size_t has = parts[i].n / STAGE_MD5_BLOCK;
            if (!has)
                continue;
            busy[lanes++] = &parts[i];
            blocks = has < blocks ? has : blocks;
        }
        if (!lanes)
            break;
        add_blocks(busy, lanes, blocks);
    }
    for (unsigned i = 0; i < count; i++)
        if (parts[i].n)
            fill_tail(&parts[i], 0);
}

void stage_md5_result(const struct stage_md5 *md5, unsigned char out[STAGE_MD5_BYTES])
{
    struct stage_md5 last = *md5;
    uint64_t bits = md5->bytes * 8;
    size_t used = md5->bytes % STAGE_MD5_BLOCK;
    last.tail[used++] = 0x80;
    if (used > STAGE_MD5_BLOCK - 8) {
        memset(last.tail + used, 0, STAGE_MD5_BLOCK - used);
        add_tail(&last);
        used = 0;
    }
    memset(last.tail + used, 0, STAGE_MD5_BLOCK - 8 - used);
    for (int i = 0; i < 8; i++)
        last.tail[STAGE_MD5_BLOCK - 8 + i] = (unsigned char)(bits >> (8 * i));
    add_tail(&last);
    for (int i = 0; i < STAGE_MD5_BYTES; i++)
        out[i] = (unsigned char)(last.state[i / 4] >> (8 * (i % 4)));
}
