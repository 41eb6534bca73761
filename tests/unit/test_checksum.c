/* test_checksum.c - our sums against those that tmLQCD and QIO wrote into their files */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

struct field {
    const char *file;
    uint64_t ordinal; /* of the lattice record; its checksum comes next, or after that */
    size_t site_bytes;
    uint64_t sites;
};

static const struct field fields[] = {
    {"tm_clime_gauge_4444_p64_n1.lime", 0, 576, 256},
    {"tm_clime_gauge_4448_p32_n1.lime", 0, 288, 512},
    {"tm_clime_prop_4444_p32_n1.lime", 0, 96, 256},
    {"tm_lemon_prop_4444_p64_n1.lime", 0, 192, 256},
    {"qio_nersc_ildg.lime", 0, 288, 512},
    {"qio_test1_scidac_n1.lime", 5, 8, 512},
    {"qio_test1_scidac_n1.lime", 0, 288, 512}, /* the last: four colour matrices a site */
    {"qio_test1_scidac_n1.lime", 13, 12, 1},   /* global data: one site */
};

static struct limefile_fd open_corpus(const char *name)
{
    char path[4096];
    struct limefile_fd file;
    const char *folder = getenv("CORPUS");
    if (!folder) /* as compiled: from the repository's root */
        folder = "tests/data/corpus";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = limefile_open(path, O_RDONLY);
    if (fd < 0)
        print_message("# %s: %s\n", path, limefile_strerror(fd));
    assert_true(fd >= 0);
    limefile_fd_init(&file, fd);
    return file;
}

static bool is_lattice(const struct limefile_record *r)
{
    return strcmp(r->type, "ildg-binary-data") == 0 ||
           strcmp(r->type, "scidac-binary-data") == 0;
}

/* The record, or where none is given the last lattice record of the file. */
static struct limefile_record lattice(const struct limefile_index *index, uint64_t ordinal)
{
    struct limefile_record r, found = {0};
    for (uint64_t i = 1; i <= limefile_index_count(index); i++) {
        assert_int_equal(limefile_index_get(index, i, &r), 0);
        if (is_lattice(&r) && (ordinal == 0 || i == ordinal))
            found = r;
    }
    assert_true(found.ordinal > 0);
    return found;
}

static unsigned char *load(struct limefile_source *source, const struct limefile_record *r)
{
    unsigned char *data = malloc(r->bytes + 1);
    assert_non_null(data);
    assert_int_equal(limefile_read_full(source, data, r->bytes, r->data_offset), r->bytes);
    data[r->bytes] = 0;
    return data;
}

static uint32_t hex_after(const char *xml, const char *tag)
{
    const char *at = strstr(xml, tag);
    assert_non_null(at);
    return (uint32_t)strtoul(at + strlen(tag), NULL, 16);
}

static struct limefile_checksum written(struct limefile_source *source,
                                        const struct limefile_index *index, uint64_t after)
{
    struct limefile_record r;
    do
        assert_int_equal(limefile_index_get(index, ++after, &r), 0);
    while (strcmp(r.type, "scidac-checksum") != 0);
    char *xml = (char *)load(source, &r);
    struct limefile_checksum sum = {hex_after(xml, "<suma>"), hex_after(xml, "<sumb>")};
    free(xml);
    return sum;
}

/* All at once, and in pieces added in another order and combined by XOR. */
static void compare(const unsigned char *data, const struct field *f,
                    struct limefile_checksum want)
{
    struct limefile_checksum whole = {0}, even = {0}, odd = {0};
    limefile_checksum_add(&whole, data, f->sites, f->site_bytes, 0);
    assert_int_equal(whole.suma, want.suma);
    assert_int_equal(whole.sumb, want.sumb);
    uint64_t piece = 37;
    for (uint64_t n = (f->sites + piece - 1) / piece; n-- > 0;) {
        uint64_t first = n * piece;
        uint64_t sites = f->sites - first < piece ? f->sites - first : piece;
        limefile_checksum_add(n % 2 ? &odd : &even, data + first * f->site_bytes, sites,
                              f->site_bytes, first);
    }
    assert_int_equal(even.suma ^ odd.suma, want.suma);
    assert_int_equal(even.sumb ^ odd.sumb, want.sumb);
}

TEST(test_corpus)
{
    for (size_t i = 0; i < COUNT(fields); i++) {
        struct limefile_fd file = open_corpus(fields[i].file);
        struct limefile_index *index = index_of(&file.source);
        struct limefile_record r = lattice(index, fields[i].ordinal);
        assert_int_equal(r.bytes, fields[i].sites * fields[i].site_bytes);
        unsigned char *data = load(&file.source, &r);
        compare(data, &fields[i], written(&file.source, index, r.ordinal));
        free(data);
        limefile_index_free(index);
        close(file.fd);
    }
}

/* CRC-32 of "123456789" is 0xcbf43926, by definition of the polynomial. */
TEST(test_by_hand)
{
    static const uint32_t crc = 0xcbf43926;
    struct limefile_checksum sum = {0};
    limefile_checksum_add(&sum, "123456789", 1, 9, 0);
    assert_int_equal(sum.suma, crc);
    assert_int_equal(sum.sumb, crc);
    sum = (struct limefile_checksum){0};
    limefile_checksum_add(&sum, "123456789", 1, 9, 29); /* mod 29: 0, mod 31: 29 */
    assert_int_equal(sum.suma, crc);
    assert_int_equal(sum.sumb, crc << 29 | crc >> 3);
    sum = (struct limefile_checksum){0};
    /* 2^64 - 1 mod 29 is 23, mod 31 is 15 */
    limefile_checksum_add(&sum, "123456789", 1, 9, UINT64_MAX);
    assert_int_equal(sum.suma, crc << 23 | crc >> 9);
    assert_int_equal(sum.sumb, crc << 15 | crc >> 17);
    sum = (struct limefile_checksum){0};
    limefile_checksum_add(&sum, "123456789123456789", 2, 9, 28); /* ranks 28 and 29 */
    assert_int_equal(sum.suma, (crc << 28 | crc >> 4) ^ crc);
    assert_int_equal(sum.sumb, (crc << 28 | crc >> 4) ^ (crc << 29 | crc >> 3));
    struct limefile_checksum before = sum;
    limefile_checksum_add(&sum, NULL, 0, 9, 5);
    assert_memory_equal(&sum, &before, sizeof sum);
}
