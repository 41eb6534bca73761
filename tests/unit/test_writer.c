/* test_writer.c - bytes that the writer writes, and calls that it refuses */
#include "unit.h"

static struct limefile_writer *writer_to(struct limefile_source *to)
{
    struct limefile_writer *writer = NULL;
    assert_int_equal(limefile_writer_new(to, 0, &writer), 0);
    return writer;
}

static int add(struct limefile_writer *writer, const char *type, size_t n, int value, bool mb,
               bool me)
{
    unsigned char *data = malloc(n + 1);
    assert_non_null(data);
    memset(data, value, n);
    int err = limefile_writer_begin(writer, type, strlen(type), n, mb, me);
    if (!err)
        err = limefile_writer_write(writer, data, n);
    if (!err)
        err = limefile_writer_end(writer);
    free(data);
    return err;
}

/* Sizes around the writer's buffer (256 KiB) and the padding. */
static const size_t sizes[] = {0, 1, 7, 8, 9, 1000, 262144, 262143, 262145, 3, 600001};

static int write_all(struct limefile_writer *writer, uint64_t *size)
{
    int err = 0;
    for (size_t i = 0; i < COUNT(sizes) && !err; i++)
        err = add(writer, "some-type", sizes[i], (int)i + 1, i % 3 == 0,
                  i % 3 == 2 || i + 1 == COUNT(sizes));
    return err ? err : limefile_writer_finish(writer, size);
}

static struct bytes expected(void)
{
    struct bytes b = {0};
    for (size_t i = 0; i < COUNT(sizes); i++)
        bytes_record(&b, "some-type", sizes[i], (int)i + 1,
                     (i % 3 == 0 ? MB : 0) | (i % 3 == 2 || i + 1 == COUNT(sizes) ? ME : 0));
    return b;
}

TEST(test_bytes_are_exact)
{
    struct bytes want = expected();
    for (int mode = 0; mode < 2; mode++) { /* whole, and short and interrupted writes */
        struct faulty to;
        uint64_t size = 0;
        faulty_init(&to, NULL);
        to.short_by = mode ? 1001 : 0;
        to.interrupt = mode ? 2 : 0;
        struct limefile_writer *writer = writer_to(&to.source);
        assert_int_equal(write_all(writer, &size), 0);
        assert_int_equal(size, want.n);
        assert_int_equal(to.memory.size, want.n);
        assert_memory_equal(to.memory.data, want.at, want.n);
        limefile_writer_free(writer);
        limefile_memory_release(&to.memory);
    }
    bytes_free(&want);
}

TEST(test_data_in_pieces)
{
    struct bytes want = {0};
    struct limefile_memory memory;
    uint64_t size, at;
    unsigned char data[1000];
    memset(data, 'p', sizeof data);
    bytes_record(&want, "pieces", 1000, 'p', MB | ME);
    bytes_record(&want, "reserved", 1001, 'p', MB | ME);
    limefile_memory_init(&memory);
    struct limefile_writer *writer = writer_to(&memory.source);
    assert_int_equal(limefile_writer_begin(writer, "pieces", 6, 1000, true, true), 0);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(limefile_writer_write(writer, data + i, 1), 0);
    assert_int_equal(limefile_writer_write(writer, data, 0), 0);
    assert_int_equal(limefile_writer_end(writer), 0);
    assert_int_equal(limefile_writer_begin(writer, "reserved", 8, 1001, true, true), 0);
    assert_int_equal(limefile_writer_write(writer, data, 1), 0);
    assert_int_equal(limefile_writer_reserve(writer, 999, &at), 0);
    assert_int_equal(at, 1144 + 144 + 1);
    assert_int_equal(limefile_write_full(&memory.source, data, 999, at), 0);
    assert_int_equal(limefile_writer_write(writer, data, 1), 0);
    assert_int_equal(limefile_writer_end(writer), 0);
    assert_int_equal(limefile_writer_finish(writer, &size), 0);
    assert_int_equal(size, want.n);
    assert_memory_equal(memory.data, want.at, want.n);
    limefile_writer_free(writer);
    limefile_memory_release(&memory);
    bytes_free(&want);
}

TEST(test_appending)
{
    struct bytes want = {0};
    struct limefile_memory memory;
    struct limefile_writer *writer;
    uint64_t size;
    bytes_record(&want, "old", 5, 'o', MB | ME);
    limefile_memory_init(&memory);
    assert_int_equal(limefile_write_full(&memory.source, want.at, want.n, 0), 0);
    assert_int_equal(limefile_writer_new(&memory.source, want.n, &writer), 0);
    assert_int_equal(add(writer, "new", 5, 'n', true, true), 0);
    assert_int_equal(limefile_writer_finish(writer, &size), 0);
    bytes_record(&want, "new", 5, 'n', MB | ME);
    assert_int_equal(size, want.n);
    assert_memory_equal(memory.data, want.at, want.n);
    limefile_writer_free(writer);
    limefile_memory_release(&memory);
    bytes_free(&want);
}

TEST(test_order_of_messages)
{
    struct limefile_memory memory;
    uint64_t size;
    limefile_memory_init(&memory);
    struct limefile_writer *w = writer_to(&memory.source);
    assert_int_equal(add(w, "t", 1, 0, false, true), LIMEFILE_E_ORDER);
    assert_int_equal(add(w, "t", 1, 0, false, false), LIMEFILE_E_ORDER);
    assert_int_equal(add(w, "t", 1, 0, true, false), 0);
    assert_int_equal(limefile_writer_finish(w, &size), LIMEFILE_E_ORDER);
    assert_int_equal(add(w, "t", 1, 0, true, false), LIMEFILE_E_ORDER);
    assert_int_equal(add(w, "t", 1, 0, true, true), LIMEFILE_E_ORDER);
    assert_int_equal(add(w, "t", 1, 0, false, true), 0); /* a refused call changes nothing */
    assert_int_equal(limefile_writer_finish(w, &size), 0);
    assert_int_equal(size, 304);
    limefile_writer_free(w);
    limefile_memory_release(&memory);
}

TEST(test_state)
{
    struct limefile_memory memory;
    uint64_t size, at;
    limefile_memory_init(&memory);
    struct limefile_writer *w = writer_to(&memory.source);
    assert_int_equal(limefile_writer_write(w, "x", 1), LIMEFILE_E_STATE);
    assert_int_equal(limefile_writer_reserve(w, 1, &at), LIMEFILE_E_STATE);
    assert_int_equal(limefile_writer_end(w), LIMEFILE_E_STATE);
    assert_int_equal(limefile_writer_begin(w, "t", 1, 3, true, true), 0);
    assert_int_equal(limefile_writer_begin(w, "t", 1, 3, true, true), LIMEFILE_E_STATE);
    assert_int_equal(limefile_writer_finish(w, &size), LIMEFILE_E_STATE);
    assert_int_equal(limefile_writer_write(w, "wxyz", 4), LIMEFILE_E_OVERFILL);
    assert_int_equal(limefile_writer_write(w, "ab", 2), 0);
    assert_int_equal(limefile_writer_end(w), LIMEFILE_E_UNDERFILL);
    assert_int_equal(limefile_writer_reserve(w, 2, &at), LIMEFILE_E_OVERFILL);
    assert_int_equal(limefile_writer_reserve(w, UINT64_MAX, &at), LIMEFILE_E_OVERFILL);
    assert_int_equal(limefile_writer_write(w, "yz", 2), LIMEFILE_E_OVERFILL);
    assert_int_equal(limefile_writer_write(w, "c", 1), 0);
    assert_int_equal(limefile_writer_end(w), 0);
    assert_int_equal(limefile_writer_end(w), LIMEFILE_E_STATE);
    assert_int_equal(limefile_writer_finish(w, &size), 0);
    assert_int_equal(size, 152);
    assert_memory_equal(memory.data + 144, "abc\0\0\0\0", 8);
    limefile_writer_free(w);
    limefile_memory_release(&memory);
    limefile_writer_free(NULL);
}

TEST(test_types_and_lengths)
{
    struct limefile_memory memory;
    char type[200];
    memset(type, 't', sizeof type);
    limefile_memory_init(&memory);
    struct limefile_writer *w = writer_to(&memory.source);
    assert_int_equal(limefile_writer_begin(w, type, 128, 0, true, true), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_writer_begin(w, type, 200, 0, true, true), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_writer_begin(w, "a\0b", 3, 0, true, true), LIMEFILE_E_TYPE);
    assert_int_equal(limefile_writer_begin(w, "a", 1, INT64_MAX, true, true),
                     LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_writer_begin(w, "a", 1, UINT64_MAX, true, true),
                     LIMEFILE_E_LENGTH);
    assert_int_equal(limefile_writer_begin(w, type, 127, UINT64_C(1) << 62, true, true), 0);
    limefile_writer_free(w);
    assert_int_equal(memory.size, 0); /* nothing was written yet */
    limefile_memory_release(&memory);
}

TEST(test_failing_writes)
{
    struct faulty to;
    uint64_t size;
    struct bytes want = expected();
    faulty_init(&to, NULL);
    struct limefile_writer *w = writer_to(&to.source);
    assert_int_equal(write_all(w, &size), 0);
    limefile_writer_free(w);
    limefile_memory_release(&to.memory);
    unsigned calls = to.calls;
    assert_true(calls >= 4);
    for (unsigned n = 1; n <= calls; n++) {
        faulty_init(&to, NULL);
        to.fail_at = n;
        to.fail_for = 1;
        w = writer_to(&to.source);
        assert_int_equal(write_all(w, &size), -EIO);
        assert_memory_equal(to.memory.data ? to.memory.data : want.at, want.at, to.memory.size);
        limefile_writer_free(w);
        limefile_memory_release(&to.memory);
    }
    bytes_free(&want);
}

TEST(test_read_only_source)
{
    struct limefile_memory memory;
    uint64_t size;
    limefile_memory_borrow(&memory, "", 0);
    struct limefile_writer *w = writer_to(&memory.source);
    assert_int_equal(add(w, "t", 1, 0, true, true), 0);
    assert_int_equal(limefile_writer_finish(w, &size), -EROFS);
    limefile_writer_free(w);
}
