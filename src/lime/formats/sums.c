/*
 * sums.c - the checksums of NERSC and MILC over bytes as they are stored
 *
 * MILC rotates the k-th word by k mod 29 and k mod 31 and adds all by exclusive or. Words that
 * are rotated alike are added first: rows of 29 and of 31 words, one over the other.
 */
#include "links.h"

#include <byteswap.h>

static const bool host_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t sum_words(const unsigned char *at, size_t words, bool swap)
{
    uint32_t sum = 0, word;
    for (size_t i = 0; i < words; i++) {
        memcpy(&word, at + 4 * i, 4);
        sum += swap ? bswap_32(word) : word;
    }
    return sum;
}

static uint32_t sum_plain(const unsigned char *at, size_t words, bool swap)
{
    return swap ? sum_words(at, words, true) : sum_words(at, words, false);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint32_t sum_avx2(const unsigned char *at, size_t words,
                                                         bool swap)
{
    return swap ? sum_words(at, words, true) : sum_words(at, words, false);
}
#endif

uint32_t links_sum(const void *data, size_t words, bool little)
{
    bool swap = little != host_little;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return sum_avx2(data, words, swap);
#endif
    return sum_plain(data, words, swap);
}

static uint32_t rotate(uint32_t value, unsigned by)
{
    return by ? value << by | value >> (32 - by) : value;
}

#define ROWS_XOR(NAME, PERIOD)                                                             \
    static uint32_t NAME(const unsigned char *at, size_t words, bool swap, uint64_t k)     \
    {                                                                                      \
        uint32_t row[PERIOD] = {0}, sum = 0, word;                                         \
        size_t i = 0;                                                                      \
        for (; i + PERIOD <= words; i += PERIOD)                                           \
            for (unsigned j = 0; j < PERIOD; j++) {                                        \
                memcpy(&word, at + 4 * (i + j), 4);                                        \
                row[j] ^= word;                                                            \
            }                                                                              \
        for (unsigned j = 0; i < words; i++, j++) {                                        \
            memcpy(&word, at + 4 * i, 4);                                                  \
            row[j] ^= word;                                                                \
        }                                                                                  \
        for (unsigned j = 0; j < PERIOD; j++)                                              \
            sum ^= rotate(swap ? bswap_32(row[j]) : row[j], (unsigned)((k + j) % PERIOD)); \
        return sum;                                                                        \
    }

ROWS_XOR(rows_of_29, 29)
ROWS_XOR(rows_of_31, 31)

void links_xor(const void *data, size_t words, bool little, uint64_t k, uint32_t *sum29,
               uint32_t *sum31)
{
    bool swap = little != host_little;
    *sum29 ^= rows_of_29(data, words, swap, k);
    *sum31 ^= rows_of_31(data, words, swap, k);
}
