/* test_index.c - lookups, and the cost of huge, many and hostile records */
#include "unit.h"

#include <time.h>

/* ---- a container too large to store: headers are computed when they are read ---- */

struct virtual
{
    struct limefile_source source;
    uint64_t data;   /* data bytes of each record, without padding */
    uint64_t count;  /* number of records */
    bool own_types;  /* each record has a different type */
    size_t type_len; /* of those types */
    uint64_t reads, moved;
};

static uint64_t stride(const struct virtual *v)
{
    return 144 + v->data + (8 - v->data % 8) % 8;
}

static void virtual_header(const struct virtual *v, uint64_t i, unsigned char raw[144])
{
    char type[129] = "type";
    size_t len = 4;
    if (v->own_types) {
        memset(type, 'x', sizeof type);
        len = (size_t)snprintf(type, sizeof type, "%llu", (unsigned long long)i);
        type[len] = 'x';
        len = v->type_len > len ? v->type_len : len;
    }
    raw_header(raw, type, len, v->data, MB | ME);
}

static ssize_t virtual_read(struct limefile_source *source, void *buf, size_t n,
                            uint64_t offset)
{
    struct virtual *v = (struct virtual *)source;
    unsigned char raw[144], *out = buf;
    uint64_t size = stride(v) * v->count;
    v->reads++;
    if (offset >= size)
        return 0;
    if (n > size - offset)
        n = (size_t)(size - offset);
    for (size_t done = 0; done < n;) {
        uint64_t at = offset + done, i = at / stride(v), in = at % stride(v);
        size_t part = (size_t)(in < 144 ? 144 - in : stride(v) - in);
        if (part > n - done)
            part = n - done;
        if (in < 144) {
            virtual_header(v, i, raw);
            memcpy(out + done, raw + in, part);
        } else {
            memset(out + done, 0, part);
        }
        done += part;
    }
    v->moved += n;
    return (ssize_t)n;
}

static int virtual_size(struct limefile_source *source, uint64_t *size)
{
    struct virtual *v = (struct virtual *)source;
    *size = stride(v) * v->count;
    return 0;
}

static const struct limefile_source_ops virtual_ops = {.read = virtual_read,
                                                       .size = virtual_size};

TEST(test_records_of_20_gb)
{
    struct virtual v = {.source.ops = &virtual_ops, .data = UINT64_C(20000000003), .count = 5};
    struct limefile_index *index = index_of(&v.source);
    struct limefile_record r;
    assert_int_equal(limefile_index_count(index), 5);
    assert_null(limefile_index_fault(index));
    assert_int_equal(limefile_index_get(index, 5, &r), 0);
    assert_int_equal(r.header_offset, 4 * UINT64_C(20000000152));
    assert_int_equal(r.bytes, UINT64_C(20000000003));
    assert_int_equal(limefile_index_end(index), 5 * UINT64_C(20000000152));
    assert_true(v.reads <= 6);
    assert_true(v.moved <= 6 * 4096);
    limefile_index_free(index);
}

/* Two records of 2^62 - 152 bytes: the file ends at 2^63 - 16, the last valid offset. */
TEST(test_offsets_near_2_63)
{
    struct virtual v = {
        .source.ops = &virtual_ops, .data = (UINT64_C(1) << 62) - 152, .count = 2};
    struct limefile_index *index = index_of(&v.source);
    struct limefile_record r;
    assert_null(limefile_index_fault(index));
    assert_int_equal(limefile_index_get(index, 2, &r), 0);
    assert_int_equal(r.data_offset, (UINT64_C(1) << 62) + 136);
    assert_int_equal(limefile_index_end(index), (UINT64_C(1) << 63) - 16);
    assert_true(v.reads <= 3);
    limefile_index_free(index);

    v.count = 3; /* the third ends beyond the limit: reported, and two remain */
    index = index_of(&v.source);
    assert_int_equal(limefile_index_count(index), 2);
    assert_int_equal(limefile_index_fault(index)->code, LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_index_fault(index)->offset, (UINT64_C(1) << 63) - 8);
    limefile_index_free(index);
}

TEST(test_a_million_small_records)
{
    struct virtual v = {.source.ops = &virtual_ops, .data = 100, .count = 1000000};
    struct limefile_index *index = index_of(&v.source);
    struct limefile_record r;
    uint64_t count, size = UINT64_C(248) * 1000000;
    assert_int_equal(limefile_index_count(index), 1000000);
    assert_int_equal(limefile_index_messages(index), 1000000);
    assert_int_equal(limefile_index_size(index), size);
    assert_true(v.reads <= 10 + size / (256 * 1024 - 400));
    assert_true(v.moved <= size + v.reads * 400);
    assert_true(limefile_index_memory(index) < 60000000);
    assert_int_equal(limefile_index_by_type(index, "type", 4, &r, &count), 0);
    assert_int_equal(count, 1000000);
    assert_int_equal(r.ordinal, 1);
    assert_int_equal(limefile_index_by_number(index, 999999, 1, &r), 0);
    assert_int_equal(r.header_offset, UINT64_C(248) * 999998);
    limefile_index_free(index);
}

/* Reads stay short if it is better to skip the records. */
TEST(test_records_of_middling_size)
{
    struct virtual v = {.source.ops = &virtual_ops, .data = 250000, .count = 1000};
    struct limefile_index *index = index_of(&v.source);
    assert_int_equal(limefile_index_count(index), 1000);
    assert_true(v.reads <= 1001);
    assert_true(v.moved <= 1001 * 4096);
    limefile_index_free(index);
}

/* Worst case for memory: only headers, each with a different type of maximal length. */
TEST(test_a_million_types)
{
    struct virtual v = {
        .source.ops = &virtual_ops, .count = 1000000, .own_types = true, .type_len = 128};
    struct limefile_index *index = index_of(&v.source);
    struct limefile_record r, found;
    uint64_t count;
    assert_int_equal(limefile_index_count(index), 1000000);
    assert_int_equal(limefile_index_deviations(index), 1000000); /* type-long */
    assert_true(limefile_index_memory(index) < 144000000 + 64000000);
    for (uint64_t i = 1; i <= 1000000; i += 99999) {
        assert_int_equal(limefile_index_get(index, i, &r), 0);
        assert_int_equal(r.type_len, 128);
        assert_int_equal(limefile_index_by_type(index, r.type, 128, &found, &count), 0);
        assert_int_equal(found.ordinal, i);
        assert_int_equal(count, 1);
    }
    limefile_index_free(index);
}

/* ---- types that collide in the hash of an earlier index (FNV-1a, 32 bits) ---- */

static uint32_t fnv(const char *s, size_t n)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)s[i]) * 16777619u;
    return hash;
}

/* Four pairs of strings that leave the same FNV state make 2^k types; a search finds them. */
static void colliding_pair(uint32_t seed, char a[4], char b[4])
{
    enum { TABLE = 1 << 20 };
    uint32_t *slot = calloc(TABLE, sizeof *slot);
    assert_non_null(slot);
    for (uint32_t i = 1;; i++) {
        char text[4] = {(char)(33 + i % 90), (char)(33 + i / 90 % 90),
                        (char)(33 + i / 8100 % 90), (char)(33 + i / 729000 % 90)};
        uint32_t hash = seed;
        for (int k = 0; k < 4; k++)
            hash = (hash ^ (unsigned char)text[k]) * 16777619u;
        uint32_t *at = &slot[hash % TABLE], old = *at;
        char other[4] = {(char)(33 + old % 90), (char)(33 + old / 90 % 90),
                         (char)(33 + old / 8100 % 90), (char)(33 + old / 729000 % 90)};
        uint32_t other_hash = seed;
        for (int k = 0; k < 4; k++)
            other_hash = (other_hash ^ (unsigned char)other[k]) * 16777619u;
        if (old && other_hash == hash) {
            memcpy(a, text, 4);
            memcpy(b, other, 4);
            break;
        }
        *at = i;
    }
    free(slot);
}

TEST(test_colliding_types_cost_nothing)
{
    enum { PAIRS = 16, TYPES = 1 << PAIRS };
    char pair[PAIRS][2][4], type[4 * PAIRS + 1] = "";
    struct bytes b = {0};
    uint32_t seed = fnv("", 0);
    for (int i = 0; i < PAIRS; i++) {
        colliding_pair(seed, pair[i][0], pair[i][1]);
        for (int k = 0; k < 4; k++)
            seed = (seed ^ (unsigned char)pair[i][0][k]) * 16777619u;
    }
    b.at = malloc((size_t)TYPES * 144);
    assert_non_null(b.at);
    for (uint32_t i = 0; i < TYPES; i++) {
        for (int k = 0; k < PAIRS; k++)
            memcpy(type + 4 * k, pair[k][i >> k & 1], 4);
        assert_int_equal(fnv(type, 4 * PAIRS), seed);
        raw_header(b.at + b.n, type, 4 * PAIRS, 0, MB | ME);
        b.n += 144;
    }
    struct limefile_memory memory;
    limefile_memory_borrow(&memory, b.at, b.n);
    clock_t start = clock();
    struct limefile_index *index = index_of(&memory.source);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_int_equal(limefile_index_count(index), TYPES);
    assert_true(seconds < 2); /* 2^31 comparisons take longer */
    limefile_index_free(index);
    bytes_free(&b);
}

/* ---- look-ups ---- */

static struct bytes sample(void)
{
    struct bytes b = {0};
    bytes_record(&b, "a", 1, 'a', MB);
    bytes_record(&b, "b", 2, 'b', 0);
    bytes_record(&b, "a", 3, 'c', ME);
    bytes_record(&b, "c", 0, 0, MB | ME);
    bytes_record(&b, "b", 8, 'd', MB);
    bytes_record(&b, "e", 9, 'e', ME);
    return b;
}

TEST(test_lookups)
{
    static const struct {
        uint32_t message, record;
        uint64_t offset, bytes;
    } want[] = {{1, 1, 0, 1},   {1, 2, 152, 2}, {1, 3, 304, 3},
                {2, 1, 456, 0}, {3, 1, 600, 8}, {3, 2, 752, 9}};
    struct bytes b = sample();
    struct limefile_memory memory;
    struct limefile_record r;
    limefile_memory_borrow(&memory, b.at, b.n);
    struct limefile_index *index = index_of(&memory.source);
    assert_int_equal(limefile_index_count(index), 6);
    assert_int_equal(limefile_index_messages(index), 3);
    assert_int_equal(limefile_index_end(index), b.n);
    assert_int_equal(limefile_index_deviations(index), 0);
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(limefile_index_by_number(index, want[i].message, want[i].record, &r),
                         0);
        assert_int_equal(r.ordinal, i + 1);
        assert_int_equal(limefile_index_get(index, i + 1, &r), 0);
        assert_int_equal(r.message, want[i].message);
        assert_int_equal(r.record, want[i].record);
        assert_int_equal(r.header_offset, want[i].offset);
        assert_int_equal(r.data_offset, want[i].offset + 144);
        assert_int_equal(r.bytes, want[i].bytes);
        assert_int_equal(r.mb, want[i].record == 1);
        assert_int_equal(r.me, i == 2 || i == 3 || i == 5);
    }
    static const uint32_t none[][2] = {{0, 0},          {0, 1},         {1, 0}, {1, 4},
                                       {2, 2},          {3, 3},         {4, 1}, {3, 0},
                                       {1, UINT32_MAX}, {UINT32_MAX, 1}};
    for (size_t i = 0; i < COUNT(none); i++)
        assert_int_equal(limefile_index_by_number(index, none[i][0], none[i][1], &r),
                         LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_index_get(index, 0, &r), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_index_get(index, 7, &r), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_index_get(index, UINT64_MAX, &r), LIMEFILE_E_NO_RECORD);
    limefile_index_free(index);
    bytes_free(&b);
}

TEST(test_by_type)
{
    static const struct {
        const char *type;
        uint64_t first, count;
    } want[] = {{"a", 1, 2}, {"b", 2, 2}, {"c", 4, 1}, {"e", 6, 1}};
    struct bytes b = sample();
    struct limefile_memory memory;
    struct limefile_record r;
    uint64_t count;
    limefile_memory_borrow(&memory, b.at, b.n);
    struct limefile_index *index = index_of(&memory.source);
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(limefile_index_by_type(index, want[i].type, 1, &r, &count), 0);
        assert_int_equal(r.ordinal, want[i].first);
        assert_int_equal(count, want[i].count);
    }
    assert_int_equal(limefile_index_by_type(index, "d", 1, &r, &count), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_index_by_type(index, "", 0, &r, &count), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_index_by_type(index, "a\0", 2, &r, &count), LIMEFILE_E_NO_RECORD);
    limefile_index_free(index);
    bytes_free(&b);
}

TEST(test_empty_file)
{
    struct limefile_memory memory;
    struct limefile_record r;
    uint64_t count;
    limefile_memory_borrow(&memory, "", 0);
    struct limefile_index *index = index_of(&memory.source);
    assert_true(limefile_index_is_container(index));
    assert_null(limefile_index_fault(index));
    assert_int_equal(limefile_index_count(index), 0);
    assert_int_equal(limefile_index_messages(index), 0);
    assert_int_equal(limefile_index_end(index), 0);
    assert_int_equal(limefile_index_get(index, 1, &r), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_index_by_number(index, 1, 1, &r), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_index_by_type(index, "a", 1, &r, &count), LIMEFILE_E_NO_RECORD);
    limefile_index_free(index);
    limefile_index_free(NULL);
}

TEST(test_is_container)
{
    struct bytes b = sample();
    struct limefile_memory memory;
    for (size_t n = 1; n < b.n; n++) { /* a container truncated anywhere is still a container */
        limefile_memory_borrow(&memory, b.at, n);
        struct limefile_index *index = index_of(&memory.source);
        assert_true(limefile_index_is_container(index));
        assert_true(limefile_index_end(index) <= n);
        limefile_index_free(index);
    }
    b.at[3] = 0;
    for (size_t n = 4; n < b.n; n += 100) {
        limefile_memory_borrow(&memory, b.at, n);
        struct limefile_index *index = index_of(&memory.source);
        assert_false(limefile_index_is_container(index));
        assert_int_equal(limefile_index_fault(index)->code, LIMEFILE_E_MAGIC);
        limefile_index_free(index);
    }
    bytes_free(&b);
}

TEST(test_records_before_a_fault_stay)
{
    struct bytes b = sample();
    struct limefile_memory memory;
    struct limefile_record r;
    size_t whole = b.n;
    bytes_fill(&b, 'z', 77);
    limefile_memory_borrow(&memory, b.at, b.n);
    struct limefile_index *index = index_of(&memory.source);
    assert_int_equal(limefile_index_count(index), 6);
    assert_int_equal(limefile_index_end(index), whole);
    assert_int_equal(limefile_index_size(index), whole + 77);
    assert_int_equal(limefile_index_fault(index)->code, LIMEFILE_E_TRAILING);
    assert_int_equal(limefile_index_fault(index)->offset, whole);
    assert_int_equal(limefile_index_deviations(index), 0);
    assert_int_equal(limefile_index_get(index, 6, &r), 0);
    limefile_index_free(index);
    bytes_free(&b);
}

/* An updated index equals a new one after the end grows, shrinks or changes. */
TEST(test_another_last_record)
{
    struct bytes b = {0};
    struct limefile_memory memory;
    struct limefile_record r, last;
    uint64_t count;
    for (int i = 0; i < 100; i++)
        bytes_record(&b, i % 3 ? "often" : "seldom", (size_t)i, i, MB | ME);
    limefile_memory_borrow(&memory, b.at, b.n);
    struct limefile_index *full = index_of(&memory.source), *index = full, *next;
    limefile_index_ref(full);
    for (int i = 100; i > 0; i--) {
        assert_int_equal(limefile_index_without_last(index, &next), 0);
        limefile_index_free(index);
        index = next;
        assert_int_equal(limefile_index_count(index), i - 1);
    }
    assert_int_equal(limefile_index_without_last(index, &next), LIMEFILE_E_NO_RECORD);
    assert_int_equal(limefile_index_by_type(index, "often", 5, &r, &count),
                     LIMEFILE_E_NO_RECORD);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(limefile_index_get(full, i, &r), 0);
        last = r;
        last.type = "other", last.type_len = 5, last.bytes = 7;
        assert_int_equal(limefile_index_with(index, &last, &next), 0);
        limefile_index_free(index);
        assert_int_equal(limefile_index_by_type(next, "other", 5, &last, &count), 0);
        assert_int_equal(count, 1);
        assert_int_equal(last.ordinal, i);
        assert_int_equal(limefile_index_with(next, &r, &index), 0); /* in place */
        limefile_index_free(next);
    }
    assert_int_equal(limefile_index_end(index), b.n);
    assert_int_equal(limefile_index_by_type(index, "often", 5, &r, &count), 0);
    assert_int_equal(count, 66);
    assert_int_equal(r.ordinal, 2);
    r.ordinal = 102;
    assert_int_equal(limefile_index_with(index, &r, &next), LIMEFILE_E_NO_RECORD);
    limefile_index_free(index);
    limefile_index_free(full);
    bytes_free(&b);
}

static int no_size(struct limefile_source *source, uint64_t *size)
{
    (void)source;
    (void)size;
    return -EBADF;
}

TEST(test_unknown_size)
{
    static const struct limefile_source_ops ops = {.read = virtual_read, .size = no_size};
    struct limefile_source source = {&ops};
    struct limefile_index *index = NULL;
    assert_int_equal(limefile_index_build(&source, &index), -EBADF);
    assert_null(index);
}
