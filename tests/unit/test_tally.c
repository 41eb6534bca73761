/* test_tally.c - the sum of a record from parts in any order, against the sum of the whole */
#include "tally.h"
#include "unit.h"

static struct limefile_field field_of(uint64_t site_bytes, uint64_t sites)
{
    return (struct limefile_field){
        .record = {.bytes = site_bytes * sites}, .site_bytes = site_bytes, .sites = sites};
}

static unsigned char *noise(size_t n)
{
    unsigned char *data = malloc(n);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (unsigned char)(rand() >> 7);
    return data;
}

static struct limefile_checksum right_sum(const struct limefile_field *field, const void *data)
{
    struct limefile_checksum sum = {0};
    limefile_field_add_sites(field, &sum, data, 0, field->sites);
    return sum;
}

/* Adds bytes as the daemon does after a request. */
static void serve(struct limefs_tally *tally, const unsigned char *data, uint64_t from,
                  uint64_t to)
{
    struct limefs_tally_part part;
    uint64_t begin = from, end = to;
    while (limefs_tally_claim(tally, &begin, &end)) {
        assert_true(from <= begin && begin < end && end <= to);
        limefs_tally_sum(tally, begin, data + begin, (size_t)(end - begin), &part);
        limefs_tally_merge(tally, &part);
        begin = end;
        end = to;
    }
}

static void assert_right(struct limefs_tally *tally, const struct limefile_checksum *right)
{
    struct limefile_checksum sum;
    assert_true(limefs_tally_result(tally, &sum));
    assert_int_equal(sum.suma, right->suma);
    assert_int_equal(sum.sumb, right->sumb);
    assert_int_equal(limefs_tally_unclaimed(tally), 0);
}

TEST(test_any_order)
{
    static const uint64_t sizes[] = {1, 7, 24, 576, 5000};
    srand(3);
    for (int round = 0; round < 400; round++) {
        struct limefile_field field = field_of(sizes[round % COUNT(sizes)], 1 + rand() % 60);
        uint64_t bytes = field.record.bytes;
        unsigned char *data = noise((size_t)bytes);
        struct limefile_checksum right = right_sum(&field, data), sum;
        struct limefs_tally *tally = limefs_tally_new(&field);
        assert_false(limefs_tally_result(tally, &sum));
        for (int i = 0; i < 40; i++) { /* also overlapping ranges, and beyond the end */
            uint64_t from = (uint64_t)rand() % bytes;
            serve(tally, data, from, from + 1 + (uint64_t)rand() % (bytes / 4 + 1));
        }
        serve(tally, data, 0, bytes);
        assert_right(tally, &right);
        limefs_tally_free(tally);
        free(data);
    }
}

/* Requests of a stream arrive out of order and do not end at sites. */
TEST(test_stream)
{
    srand(4);
    struct limefile_field field = field_of(576, 10000);
    uint64_t bytes = field.record.bytes, step = 131072;
    unsigned char *data = noise((size_t)bytes);
    struct limefile_checksum right = right_sum(&field, data);
    for (int round = 0; round < 20; round++) {
        struct limefs_tally *tally = limefs_tally_new(&field);
        for (uint64_t at = 0; at < bytes; at += 4 * step)
            for (int i = 3; i >= 0; i--)
                serve(tally, data, at + (uint64_t)i * step, at + (uint64_t)(i + 1) * step);
        assert_right(tally, &right);
        serve(tally, data, 0, bytes); /* is not counted again */
        assert_right(tally, &right);
        limefs_tally_free(tally);
    }
    data[bytes / 2] ^= 4;
    struct limefs_tally *tally = limefs_tally_new(&field);
    struct limefile_checksum sum;
    serve(tally, data, 0, bytes);
    assert_true(limefs_tally_result(tally, &sum));
    assert_true(sum.suma != right.suma && sum.sumb != right.sumb);
    limefs_tally_free(tally);
    free(data);
}

/* A hypercube: a site's rank is the one that it has in the whole lattice. */
TEST(test_boxed)
{
    struct limefile_field field = field_of(8, 2 * 4 * 4);
    field.is_box = true;
    field.lattice = (struct limefile_lattice){4, {8, 4, 4, 4}};
    memcpy(field.lower, (uint64_t[LIMEFILE_DIMS_MAX]){1, 0, 0, 2}, sizeof field.lower);
    memcpy(field.upper, (uint64_t[LIMEFILE_DIMS_MAX]){2, 3, 3, 2}, sizeof field.upper);
    unsigned char *data = noise((size_t)field.record.bytes);
    struct limefile_checksum right = right_sum(&field, data);
    struct limefs_tally *tally = limefs_tally_new(&field);
    for (uint64_t at = field.record.bytes; at > 0; at -= 4)
        serve(tally, data, at - 4, at);
    assert_right(tally, &right);
    limefs_tally_free(tally);
    free(data);
}

/* Random reads stop the tally before it takes much memory or time. */
TEST(test_hopeless)
{
    struct limefile_field field = field_of(64, 100000);
    unsigned char *data = noise((size_t)field.record.bytes);
    struct limefs_tally *tally = limefs_tally_new(&field);
    struct limefile_checksum sum;
    for (uint64_t at = 0; at < field.record.bytes; at += 1000)
        serve(tally, data, at, at + 100);
    assert_true(limefs_tally_is_abandoned(tally));
    serve(tally, data, 0, field.record.bytes);
    assert_false(limefs_tally_result(tally, &sum));
    limefs_tally_free(tally);
    free(data);

    field = field_of(UINT64_C(1) << 40, 1); /* one datum larger than memory */
    tally = limefs_tally_new(&field);
    serve(tally, (const unsigned char *)"", 0, 1);
    assert_true(limefs_tally_is_abandoned(tally));
    limefs_tally_free(tally);
}
