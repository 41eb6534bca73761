/* test_md5.c - MD5 in lanes, by each instruction set that it is made for */
#include "unit.h"

static bool processor_has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

static bool processor_has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

/* The code under test is told what the processor can do. */
static bool use_avx2, use_avx512;
#define __builtin_cpu_supports(feature) (strcmp(feature, "avx2") == 0 ? use_avx2 : use_avx512)
#include "../../src/lime/stage/md5.c"

static const char *hex(const struct stage_md5 *md5, char out[33])
{
    unsigned char raw[STAGE_MD5_BYTES];
    stage_md5_result(md5, raw);
    for (int i = 0; i < STAGE_MD5_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", raw[i]);
    return out;
}

static const char *md5_of(const void *data, size_t n, char out[33])
{
    struct stage_md5 md5;
    stage_md5_init(&md5);
    struct stage_md5_part part = {&md5, data, n};
    stage_md5_add(&part, 1);
    return hex(&md5, out);
}

/* RFC 1321, A.5 */
static void suite_of_the_rfc(void)
{
    static const char *const suite[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    char text[33];
    for (size_t i = 0; i < COUNT(suite); i++)
        assert_string_equal(md5_of(suite[i][0], strlen(suite[i][0]), text), suite[i][1]);
}

enum {
    BYTES = 20000,
    FROM_MAX = 5000,
};

/* Streams in lanes, each of its own length, cut anywhere. */
static void lanes_of(const unsigned char *data, unsigned count, size_t longest)
{
    struct stage_md5 md5[STAGE_MD5_LANES];
    size_t from[STAGE_MD5_LANES], done[STAGE_MD5_LANES] = {0}, all[STAGE_MD5_LANES];
    char have[33], want[33];
    for (unsigned i = 0; i < count; i++) {
        stage_md5_init(&md5[i]);
        from[i] = (size_t)rand() % FROM_MAX;
        all[i] = (size_t)rand() % (BYTES - FROM_MAX);
    }
    for (bool more = true; more;) {
        struct stage_md5_part part[STAGE_MD5_LANES];
        more = false;
        for (unsigned i = 0; i < count; i++) {
            size_t n = (size_t)rand() % longest;
            n = n < all[i] - done[i] ? n : all[i] - done[i];
            part[i] = (struct stage_md5_part){&md5[i], data + from[i] + done[i], n};
            done[i] += n;
            more = more || done[i] < all[i];
        }
        stage_md5_add(part, count);
    }
    for (unsigned i = 0; i < count; i++)
        assert_string_equal(hex(&md5[i], have), md5_of(data + from[i], all[i], want));
}

static void with(bool avx2, bool avx512)
{
    static unsigned char data[BYTES];
    if ((avx2 && !processor_has_avx2()) || (avx512 && !processor_has_avx512()))
        skip();
    use_avx2 = avx2;
    use_avx512 = avx512;
    suite_of_the_rfc();
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(rand() >> 7);
    for (unsigned count = 1; count <= STAGE_MD5_LANES; count++)
        for (int round = 0; round < 40; round++)
            lanes_of(data, count, round % 2 ? 200 : 9000);
}

static void plain(void **state)
{
    (void)state;
    with(false, false);
}

static void avx2(void **state)
{
    (void)state;
    with(true, false);
}

static void avx512(void **state)
{
    (void)state;
    with(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(avx2),
        cmocka_unit_test(avx512),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
