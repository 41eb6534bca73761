/* test_permute.c - orders of dimensions against an oracle that uses divisions */
#include "lattice.h"
#include "permute.h"

#include <stdbool.h>

enum {
    DIMS = 6,
    GUARD = 9, /* around each buffer; odd, so that buffers are unaligned */
    FILL = 0xa5,
};

struct orders {
    int dims;
    int64_t sites[DIMS]; /* in disk order */
    int order[DIMS];
    int64_t site_bytes;
};

static int64_t sites_of(const struct orders *orders)
{
    int64_t n = 1;
    for (int i = 0; i < orders->dims; i++)
        n *= orders->sites[i];
    return n;
}

/* Returns the position in memory of the `site`-th site on disk. */
static int64_t in_memory(const struct orders *orders, int64_t site)
{
    int64_t at[DIMS] = {0}, found = 0;
    for (int i = orders->dims - 1; i >= 0; i--) {
        at[i] = site % orders->sites[i];
        site /= orders->sites[i];
    }
    for (int i = 0; i < orders->dims; i++)
        found = found * orders->sites[orders->order[i]] + at[orders->order[i]];
    return found;
}

static unsigned char value(int64_t site, int64_t byte)
{
    return (unsigned char)((uint64_t)(site * 0x9e3779b1 + byte * 0x85ebca6b) >> 13);
}

/* Returns a buffer in disk order or in memory order, with guards. */
static char *filled(const struct orders *orders, bool memory)
{
    int64_t n = sites_of(orders), site_bytes = orders->site_bytes;
    char *buffer = malloc((size_t)(n * site_bytes) + 2 * GUARD);
    assert_non_null(buffer);
    memset(buffer, FILL, (size_t)(n * site_bytes) + 2 * GUARD);
    for (int64_t site = 0; site < n; site++)
        for (int64_t b = 0; b < site_bytes; b++) {
            int64_t place = memory ? in_memory(orders, site) : site;
            buffer[GUARD + place * site_bytes + b] = (char)value(site, b);
        }
    return buffer;
}

/* Converts in both directions; returns the number of dimensions after merging. */
static int try_orders(const struct orders *orders)
{
    struct lemon_permute permute;
    lemon_permute_init(&permute, orders->dims, orders->sites, orders->order,
                       orders->site_bytes);
    size_t bytes = (size_t)(sites_of(orders) * orders->site_bytes);
    char *disk = filled(orders, false), *memory = filled(orders, true);
    if (permute.dims == 0) {
        assert_memory_equal(disk, memory, bytes + 2 * GUARD);
    } else {
        char *copy = malloc(bytes + 2 * GUARD);
        assert_non_null(copy);
        memset(copy, FILL, bytes + 2 * GUARD);
        lemon_permute_to_memory(&permute, disk + GUARD, copy + GUARD);
        assert_memory_equal(copy, memory, bytes + 2 * GUARD);
        memset(copy + GUARD, FILL, bytes);
        lemon_permute_to_disk(&permute, memory + GUARD, copy + GUARD);
        assert_memory_equal(copy, disk, bytes + 2 * GUARD);
        free(copy);
    }
    free(disk);
    free(memory);
    return permute.dims;
}

static bool next_permutation(int *p, int n)
{
    int i = n - 2, j = n - 1;
    while (i >= 0 && p[i] > p[i + 1])
        i--;
    if (i < 0)
        return false;
    while (p[j] < p[i])
        j--;
    int swap = p[i];
    p[i] = p[j];
    p[j] = swap;
    for (i++, j = n - 1; i < j; i++, j--) {
        swap = p[i];
        p[i] = p[j];
        p[j] = swap;
    }
    return true;
}

TEST(test_all_orders)
{
    static const int64_t site_bytes[] = {1, 4, 7, 8, 16, 24};
    for (int dims = 1; dims <= 5; dims++) {
        struct orders orders = {.dims = dims, .sites = {3, 2, 5, 4, 3}};
        int tried = 0, same = 0;
        for (int i = 0; i < dims; i++)
            orders.order[i] = i;
        do {
            orders.site_bytes = site_bytes[tried++ % 6];
            int left = try_orders(&orders);
            assert_true(left == 0 || (left >= 2 && left <= dims));
            same += left == 0;
        } while (next_permutation(orders.order, dims));
        assert_int_equal(same, 1); /* and is never copied */
    }
}

TEST(test_by_chance)
{
    for (int n = chance_times(3000); n > 0; n--) {
        struct orders orders = {.dims = 1 + (int)chance_below(DIMS)};
        orders.site_bytes = (int64_t)chance_below(20);
        for (int i = 0; i < orders.dims; i++)
            orders.sites[i] = 1 + (int64_t)chance_below(5);
        if (chance_below(10) == 0)
            orders.sites[chance_below((uint64_t)orders.dims)] = 0;
        shuffle(orders.order, orders.dims);
        try_orders(&orders);
    }
}

/* More than one block, and not a multiple of it. */
TEST(test_long_dimensions)
{
    static const int64_t lengths[] = {31, 32, 33, 64, 100};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            struct orders flat = {2, {lengths[i], lengths[j]}, {1, 0}, 8};
            assert_int_equal(try_orders(&flat), 2);
            struct orders deep = {3, {lengths[i], 3, lengths[j]}, {2, 1, 0}, 5};
            assert_int_equal(try_orders(&deep), 3);
        }
}

TEST(test_adjacent_dimensions_are_merged)
{
    struct orders halves = {4, {2, 3, 4, 5}, {2, 3, 0, 1}, 8};
    assert_int_equal(try_orders(&halves), 2);
    struct orders slow = {4, {2, 3, 4, 5}, {1, 0, 2, 3}, 8};
    assert_int_equal(try_orders(&slow), 2);
    struct orders thin = {4, {7, 1, 5, 1}, {1, 0, 3, 2}, 8};
    assert_int_equal(try_orders(&thin), 0); /* all orders are equal */
    struct orders one = {3, {1, 1, 1}, {2, 0, 1}, 8};
    assert_int_equal(try_orders(&one), 0);
    struct orders none = {3, {4, 0, 4}, {2, 0, 1}, 8};
    assert_int_equal(try_orders(&none), 0);
    struct orders empty = {3, {4, 3, 4}, {2, 0, 1}, 0};
    assert_int_equal(try_orders(&empty), 0);
}

TEST(test_maximal_dimensions)
{
    struct lemon_permute permute;
    int64_t sites[LEMON_BOX_DIMS];
    int order[LEMON_BOX_DIMS];
    uint16_t disk[1 << LEMON_BOX_DIMS], memory[1 << LEMON_BOX_DIMS];
    for (int i = 0; i < LEMON_BOX_DIMS; i++) {
        sites[i] = 2;
        order[i] = LEMON_BOX_DIMS - 1 - i;
    }
    for (int i = 0; i < 1 << LEMON_BOX_DIMS; i++)
        disk[i] = (uint16_t)i;
    lemon_permute_init(&permute, LEMON_BOX_DIMS, sites, order, sizeof disk[0]);
    assert_int_equal(permute.dims, LEMON_BOX_DIMS);
    lemon_permute_to_memory(&permute, (char *)disk, (char *)memory);
    for (int i = 0; i < 1 << LEMON_BOX_DIMS; i++) { /* reversed bits */
        int reversed = 0;
        for (int b = 0; b < LEMON_BOX_DIMS; b++)
            reversed |= (i >> b & 1) << (LEMON_BOX_DIMS - 1 - b);
        assert_int_equal(memory[reversed], i);
    }
}
