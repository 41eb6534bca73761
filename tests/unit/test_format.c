/* test_format.c - headers of other writers; test_writer.c tests the ones that lime writes */
#include "unit.h"

TEST(test_encode_refuses)
{
    char type[300];
    unsigned char raw[144];
    struct limefile_header header;
    memset(type, 't', sizeof type);
    assert_int_equal(limefile_header_init(&header, type, 127, 0, true, true), 0);
    assert_int_equal(limefile_header_encode(&header, raw), 0);
    assert_int_equal(raw[142], 't');
    assert_int_equal(raw[143], 0);
    header.type_len = 128;
    assert_int_equal(limefile_header_encode(&header, raw), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_header_init(&header, type, 128, 0, true, true), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_header_init(&header, type, 300, 0, true, true), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_header_init(&header, "a\0b", 3, 0, true, true), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_header_init(&header, "", 0, 0, true, true), 0);
    assert_int_equal(limefile_header_init(&header, "a", 1, INT64_MAX, true, true), 0);
    assert_int_equal(limefile_header_init(&header, "a", 1, UINT64_C(1) << 63, true, true),
                     LIMEFILE_E_LENGTH);
    header.bytes = UINT64_MAX;
    assert_int_equal(limefile_header_encode(&header, raw), LIMEFILE_E_LENGTH);
}

TEST(test_decode_oddities)
{
    unsigned char raw[144];
    struct limefile_header header;
    raw_header(raw, "type", 4, 7, 0xff);
    raw[7] = 0x5a;
    raw[143] = 1;
    assert_int_equal(limefile_header_decode(raw, &header), 0);
    assert_int_equal(header.flags, 0xff);
    assert_int_equal(header.reserved, 0x5a);
    assert_true(header.type_tail);
    assert_int_equal(header.type_len, 4);
    assert_string_equal(header.type, "type");

    memset(raw + 16, 0xfe, 128); /* without a NUL */
    assert_int_equal(limefile_header_decode(raw, &header), 0);
    assert_int_equal(header.type_len, 128);
    assert_int_equal(header.type[128], 0);
    assert_false(header.type_tail);

    raw[4] = 1; /* version 0x0101 */
    assert_int_equal(limefile_header_decode(raw, &header), LIMEFILE_E_VERSION);
    assert_int_equal(header.version, 0x0101);
    raw[0] = 0;
    assert_int_equal(limefile_header_decode(raw, &header), LIMEFILE_E_MAGIC);
}

TEST(test_decode_length)
{
    static const struct {
        uint64_t bytes;
        int result;
    } cases[] = {
        {0, 0},
        {UINT64_C(1) << 31, 0},
        {(UINT64_C(1) << 32) + 5, 0},
        {UINT64_C(1) << 62, 0},
        {INT64_MAX, 0},
        {UINT64_C(1) << 63, LIMEFILE_E_LENGTH},
        {-UINT64_C(144), LIMEFILE_E_LENGTH},
        {-UINT64_C(8), LIMEFILE_E_LENGTH},
        {UINT64_MAX, LIMEFILE_E_LENGTH},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned char raw[144];
        struct limefile_header header;
        raw_header(raw, "t", 1, cases[i].bytes, 0);
        assert_int_equal(limefile_header_decode(raw, &header), cases[i].result);
        assert_int_equal(header.bytes, cases[i].bytes);
    }
}

TEST(test_magic)
{
    static const unsigned char magic[] = {0x45, 0x67, 0x89, 0xab, 0x99};
    for (size_t n = 0; n <= sizeof magic; n++)
        assert_true(limefile_header_is_magic(magic, n));
    for (size_t i = 0; i < 4; i++) {
        unsigned char bad[5];
        memcpy(bad, magic, sizeof bad);
        bad[i] ^= 1;
        for (size_t n = 0; n <= sizeof bad; n++)
            assert_int_equal(limefile_header_is_magic(bad, n), n <= i);
    }
}

TEST(test_extent)
{
    uint64_t end = 1, next = 1;
    assert_int_equal(limefile_record_end(0, 0, &end, &next), 0);
    assert_int_equal(end, 144);
    assert_int_equal(next, 144);
    assert_int_equal(limefile_record_end(1000, 13, &end, &next), 0);
    assert_int_equal(end, 1157);
    assert_int_equal(next, 1160);
    /* the last valid offset: next == 2^63 - 8 */
    uint64_t most = (UINT64_C(1) << 63) - 8 - 144;
    assert_int_equal(limefile_record_end(0, most, &end, &next), 0);
    assert_int_equal(next, (UINT64_C(1) << 63) - 8);
    assert_int_equal(limefile_record_end(0, most + 1, &end, &next), LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_record_end(8, most, &end, &next), LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_record_end(0, UINT64_MAX - 143, &end, &next), LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_record_end(UINT64_MAX, 0, &end, &next), LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_record_end(UINT64_MAX - 144, 1, &end, &next), LIMEFILE_E_LENGTH);
}

TEST(test_harmless)
{
    static const int harmless[] = {LIMEFILE_D_PAD_NONZERO, LIMEFILE_D_PAD_CUT,
                                   LIMEFILE_D_TYPE_TAIL,   LIMEFILE_D_FLAGS,
                                   LIMEFILE_D_OPTIONAL,    LIMEFILE_D_DATATYPE};
    const size_t count = sizeof harmless / sizeof harmless[0];
    size_t found = 0;
    for (int code = LIMEFILE_E_MAGIC; code <= LIMEFILE_E_OUTPUT_CHANGED; code++)
        found += limefile_is_harmless(code);
    assert_int_equal(found, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(limefile_is_harmless(harmless[i]));
        assert_false(limefile_is_fault(harmless[i]));
    }
    assert_false(limefile_is_harmless(0));
    assert_false(limefile_is_harmless(-EIO));
}

TEST(test_errors_have_messages)
{
    for (int code = LIMEFILE_E_MAGIC; code <= LIMEFILE_E_SHRUNK; code++) {
        assert_string_not_equal(limefile_strerror(code), "unknown error");
        assert_string_not_equal(limefile_error_word(code), "unknown");
        for (int other = LIMEFILE_E_MAGIC; other < code; other++) {
            assert_string_not_equal(limefile_error_word(code), limefile_error_word(other));
            assert_string_not_equal(limefile_strerror(code), limefile_strerror(other));
        }
        assert_int_equal(limefile_is_fault(code),
                         code < LIMEFILE_D_MB_MISSING || code > LIMEFILE_D_PAD_CUT);
    }
    assert_string_equal(limefile_error_word(LIMEFILE_E_DATA_CUT), "data-cut");
    assert_string_equal(limefile_error_word(-EIO), "EIO");
    assert_string_equal(limefile_strerror(-ENOENT), "No such file or directory");
    assert_true(limefile_is_fault(-EIO));
    assert_false(limefile_is_fault(0));
    assert_string_equal(limefile_strerror(-5000), "unknown error");
}
