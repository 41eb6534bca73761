/* data.c - the bytes that are written */
#include "data.h"
#include "mix.h"

#include <string.h>

enum {
    WORD = 8,
    BLOCK = 512, /* words that are compared at once */
};

static uint64_t key_of(uint64_t seed)
{
    return mix64(seed + MIX64_STEP);
}

/* Bytes 8 * i to 8 * i + 7 of the data. Two multiplications, so that it takes less time than
 * the memory does. */
static inline uint64_t word(uint64_t key, uint64_t i)
{
    uint64_t x = key + i * MIX64_STEP;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

static unsigned char byte_at(uint64_t key, int64_t at)
{
    unsigned char bytes[WORD];
    uint64_t value = word(key, (uint64_t)at / WORD);
    memcpy(bytes, &value, sizeof value);
    return bytes[at % WORD];
}

/* How many of n bytes from `at` on come before a whole word. */
static int64_t head_of(int64_t at, int64_t n)
{
    int64_t head = (WORD - at % WORD) % WORD;
    return head < n ? head : n;
}

void bench_data_fill(uint64_t seed, int64_t at, void *data, int64_t n)
{
    uint64_t key = key_of(seed);
    unsigned char *out = data;
    int64_t head = head_of(at, n), words = (n - head) / WORD, i = 0;
    for (; i < head; i++)
        out[i] = byte_at(key, at + i);
    uint64_t index = (uint64_t)(at + head) / WORD;
    for (int64_t w = 0; w < words; w++, i += WORD) {
        uint64_t value = word(key, index + (uint64_t)w);
        memcpy(out + i, &value, sizeof value);
    }
    for (; i < n; i++)
        out[i] = byte_at(key, at + i);
}

static void check_bytes(uint64_t key, int64_t at, const unsigned char *data, int64_t n,
                        struct bench_wrong *wrong)
{
    for (int64_t i = 0; i < n; i++) {
        unsigned char expected = byte_at(key, at + i);
        if (data[i] == expected)
            continue;
        if (wrong->bytes++ == 0 || at + i < wrong->at) {
            wrong->at = at + i;
            wrong->expected = expected;
            wrong->found = data[i];
        }
    }
}

/* Whether these whole words are right. */
static int words_are_right(uint64_t key, uint64_t index, const unsigned char *data,
                           int64_t words)
{
    uint64_t difference = 0;
    for (int64_t w = 0; w < words; w++) {
        uint64_t value;
        memcpy(&value, data + w * WORD, sizeof value);
        difference |= value ^ word(key, index + (uint64_t)w);
    }
    return difference == 0;
}

void bench_data_check(uint64_t seed, int64_t at, const void *data, int64_t n,
                      struct bench_wrong *wrong)
{
    uint64_t key = key_of(seed);
    const unsigned char *in = data;
    int64_t i = head_of(at, n);
    check_bytes(key, at, in, i, wrong);
    for (int64_t words; (words = (n - i) / WORD) > 0; i += words * WORD) {
        words = words < BLOCK ? words : BLOCK;
        if (!words_are_right(key, (uint64_t)(at + i) / WORD, in + i, words))
            check_bytes(key, at + i, in + i, words * WORD, wrong);
    }
    check_bytes(key, at + i, in + i, n - i, wrong);
}
