/*
 * kernel.c - numbers from big-endian to any precision and byte order
 *
 * Each loop is one that compilers turn into vector instructions; on x86-64 it is compiled for
 * several generations of processors, of which the first call takes the right one. A double that
 * is too large for a float becomes an infinity of its sign, a NaN stays one.
 */
#include "compute.h"

#include <string.h>

/* A sanitizer's own start comes too late for the choice of a clone. */
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__ && defined __OPTIMIZE__ && \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ && !defined LIMEFS_ONE_CLONE
#define KERNEL __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define KERNEL
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BE32(x) __builtin_bswap32(x)
#define BE64(x) __builtin_bswap64(x)
#define LE32(x) (x)
#define LE64(x) (x)
#else
#define BE32(x) (x)
#define BE64(x) (x)
#define LE32(x) __builtin_bswap32(x)
#define LE64(x) __builtin_bswap64(x)
#endif

#define SWAP_KERNEL(name, type, swap)                                                  \
    KERNEL static void name(void *restrict out, const void *restrict in, size_t count) \
    {                                                                                  \
        unsigned char *to = out;                                                       \
        const unsigned char *from = in;                                                \
        for (size_t i = 0; i < count; i++) {                                           \
            type x;                                                                    \
            memcpy(&x, from + i * sizeof x, sizeof x);                                 \
            x = swap(x);                                                               \
            memcpy(to + i * sizeof x, &x, sizeof x);                                   \
        }                                                                              \
    }

#define CONVERT_KERNEL(name, in_bits, in_real, in_swap, out_bits, out_real, out_swap)  \
    KERNEL static void name(void *restrict out, const void *restrict in, size_t count) \
    {                                                                                  \
        unsigned char *to = out;                                                       \
        const unsigned char *from = in;                                                \
        for (size_t i = 0; i < count; i++) {                                           \
            in_bits x;                                                                 \
            in_real a;                                                                 \
            out_bits y;                                                                \
            memcpy(&x, from + i * sizeof x, sizeof x);                                 \
            x = in_swap(x);                                                            \
            memcpy(&a, &x, sizeof a);                                                  \
            out_real b = (out_real)a;                                                  \
            memcpy(&y, &b, sizeof y);                                                  \
            y = out_swap(y);                                                           \
            memcpy(to + i * sizeof y, &y, sizeof y);                                   \
        }                                                                              \
    }

SWAP_KERNEL(swap_32, uint32_t, __builtin_bswap32)
SWAP_KERNEL(swap_64, uint64_t, __builtin_bswap64)
CONVERT_KERNEL(narrow_big, uint64_t, double, BE64, uint32_t, float, BE32)
CONVERT_KERNEL(narrow_little, uint64_t, double, BE64, uint32_t, float, LE32)
CONVERT_KERNEL(widen_big, uint32_t, float, BE32, uint64_t, double, BE64)
CONVERT_KERNEL(widen_little, uint32_t, float, BE32, uint64_t, double, LE64)

static void same_8(void *out, const void *in, size_t count)
{
    memcpy(out, in, count);
}

static void same_32(void *out, const void *in, size_t count)
{
    memcpy(out, in, 4 * count);
}

static void same_64(void *out, const void *in, size_t count)
{
    memcpy(out, in, 8 * count);
}

face_kernel_fn *face_kernel(unsigned from, unsigned to, bool little)
{
    if (from == 1)
        return same_8;
    if (from == 4 && to == 4)
        return little ? swap_32 : same_32;
    if (from == 8 && to == 8)
        return little ? swap_64 : same_64;
    if (from == 8)
        return little ? narrow_little : narrow_big;
    return little ? widen_little : widen_big;
}
