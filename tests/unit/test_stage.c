/* test_stage.c - sums of what passes, in pieces of any length */
#include "sums.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static unsigned char *noise(size_t n)
{
    unsigned char *data = malloc(n + 1);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (unsigned char)(rand() >> 7);
    return data;
}

static void cksum_and_adler32(void **state)
{
    (void)state;
    struct stage_sums sums;
    struct stage_digest digest;
    stage_sums_init(&sums, STAGE_ADLER32);
    stage_sums_result(&sums, &digest);
    assert_int_equal(digest.cksum, UINT32_C(4294967295)); /* cksum </dev/null */
    assert_int_equal(digest.adler32, 1);
    stage_sums_add(&sums, "1234", 4);
    stage_sums_add(&sums, "56789", 5);
    stage_sums_result(&sums, &digest);
    assert_int_equal(digest.cksum, 930766865);
    assert_int_equal(digest.adler32, 0x091e01de);
    assert_int_equal(digest.kinds, STAGE_CKSUM | STAGE_ADLER32);
}

static void digests_agree(void **state)
{
    (void)state;
    struct stage_digest a = {.kinds = STAGE_CKSUM | STAGE_MD5, .cksum = 7};
    struct stage_digest b = {.kinds = STAGE_CKSUM | STAGE_ADLER32, .cksum = 7, .adler32 = 9};
    assert_true(stage_digest_agrees(&a, &b));
    b.cksum = 8;
    assert_false(stage_digest_agrees(&a, &b));
    b.kinds = STAGE_ADLER32; /* nothing in common proves nothing */
    assert_false(stage_digest_agrees(&a, &b));
    b = a;
    b.md5[15] = 1;
    assert_false(stage_digest_agrees(&a, &b));
}

/* Two fields among other bytes, cut anywhere, of sites of any size. */
static void fields_in_pieces(void **state)
{
    (void)state;
    enum { BYTES = 60000 };
    unsigned char *data = noise(BYTES);
    for (int round = 0; round < 200; round++) {
        struct limefile_field field[3] = {0};
        uint64_t at = 0;
        for (int i = 0; i < 3; i++) {
            field[i].site_bytes = 1 + (uint64_t)rand() % 700;
            field[i].sites = 1 + (uint64_t)rand() % 20;
            field[i].record.bytes = field[i].sites * field[i].site_bytes;
            field[i].record.data_offset = at + (uint64_t)rand() % 3000;
            field[i].record.ordinal = (uint64_t)i + 1;
            field[i].has_checksum = i != 1;
            at = field[i].record.data_offset + field[i].record.bytes;
            limefile_field_add(&field[i], &field[i].checksum,
                               data + field[i].record.data_offset, 0, field[i].sites);
        }
        bool bad = round % 4 == 0;
        if (bad)
            field[2].checksum.sumb ^= 1;
        struct limefile_fields fields = {.field = field, .count = 3};
        struct stage_fieldsums sums;
        struct limefile_checksum found;
        assert_int_equal(stage_fieldsums_init(&sums, &fields), 0);
        for (size_t done = 0, n; done < BYTES; done += n) {
            n = 1 + (size_t)rand() % (round % 2 ? 300 : 20000);
            n = n < BYTES - done ? n : BYTES - done;
            stage_fieldsums_add(&sums, data + done, n, done);
        }
        assert_int_equal(stage_fieldsums_verdict(&sums, -1, &found), bad ? 3 : 0);
        stage_fieldsums_release(&sums);
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(cksum_and_adler32),
        cmocka_unit_test(digests_agree),
        cmocka_unit_test(fields_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
