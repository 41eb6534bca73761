/* test_stage.c - sums of a stream in chunks of any length */
#define _GNU_SOURCE
#include "sums.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned char *noise(size_t n)
{
    unsigned char *data = malloc(n + 1);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (unsigned char)(rand() >> 7);
    return data;
}

TEST(digests_agree)
{
    struct stage_digest a = {.kinds = STAGE_CKSUM | STAGE_MD5, .cksum = 7};
    struct stage_digest b = {.kinds = STAGE_CKSUM | STAGE_ADLER32, .cksum = 7, .adler32 = 9};
    assert_true(stage_digest_matches(&a, &b));
    b.cksum = 8;
    assert_false(stage_digest_matches(&a, &b));
    b.kinds = STAGE_ADLER32; /* without a common sum nothing is proven */
    assert_false(stage_digest_matches(&a, &b));
    b = a;
    b.md5[0] = '1';
    assert_false(stage_digest_matches(&a, &b));
}

/* ---- fields in a stream ---- */

/* A container with three fields of any site; the middle one has no checksum. The last checksum
 * may be wrong, and the first field late: described as a lattice of other sites, which
 * contradicts its length. */
struct passing {
    struct bytes bytes;
    struct limefile_memory memory;
    struct limefile_index *index;
    struct limefile_fields fields;
    bool bad, late;
};

static void add_description(struct bytes *b, size_t site_bytes, bool late)
{
    char text[256];
    if (late)
        bytes_text(b, "scidac-private-file-xml",
                   "<scidacFile><dims>21 2</dims><volfmt>0</volfmt></scidacFile>", MB | ME);
    snprintf(text, sizeof text,
             "<scidacRecord><recordtype>0</recordtype><typesize>%zu</typesize>"
             "<datacount>1</datacount></scidacRecord>",
             site_bytes);
    bytes_text(b, "scidac-private-record-xml", text, MB);
}

static void add_field(struct bytes *b, int i, bool wrong, bool late)
{
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t site_bytes = 1 + (size_t)rand() % 700, sites = 1 + (size_t)rand() % 20;
    unsigned char *data = noise(site_bytes * sites);
    struct limefile_checksum sum = {0};
    add_description(b, site_bytes, late);
    bytes_header(b, "scidac-binary-data", site_bytes * sites, i == 1 ? ME : 0);
    bytes_add(b, data, site_bytes * sites);
    bytes_fill(b, 0, (8 - site_bytes * sites % 8) % 8);
    limefile_checksum_add(&sum, data, sites, site_bytes, 0);
    sum.sumb ^= wrong;
    limefile_checksum_xml(&sum, xml);
    if (i != 1)
        bytes_text(b, "scidac-checksum", xml, ME);
    free(data);
}

static void make(struct passing *p, int round)
{
    *p = (struct passing){.bad = round % 4 == 0, .late = round % 3 == 0};
    for (int i = 0; i < 3; i++) {
        bytes_record(&p->bytes, "filler", (size_t)rand() % 3000, i, MB | ME);
        add_field(&p->bytes, i, p->bad && i == 2, p->late);
    }
    limefile_memory_borrow(&p->memory, p->bytes.at, p->bytes.n);
    assert_int_equal(limefile_index_build(&p->memory.source, &p->index), 0);
    assert_int_equal(limefile_fields_build(&p->memory.source, p->index, &p->fields), 0);
    assert_int_equal(p->fields.count, 3);
}

static void unmake(struct passing *p)
{
    limefile_fields_release(&p->fields);
    limefile_index_free(p->index);
    bytes_free(&p->bytes);
}

static void pass(const struct passing *p, struct stage_fieldsums *sums, size_t most, size_t end)
{
    for (size_t done = 0, n; done < end; done += n) {
        n = 1 + (size_t)rand() % most;
        n = n < end - done ? n : end - done;
        stage_fieldsums_add(sums, p->bytes.at + done, n, done);
    }
}

/* Two fields among other bytes, in chunks of any size, with sites of any size. */
TEST(fields_in_pieces)
{
    for (int round = 0; round < 200; round++) {
        struct passing p;
        struct stage_fieldsums sums;
        struct limefile_checksum found;
        struct limefile_field last;
        make(&p, round);
        limefile_fields_get(&p.fields, 2, &last);
        int fd = memfd_create("container", MFD_CLOEXEC);
        assert_int_equal(write(fd, p.bytes.at, p.bytes.n), p.bytes.n);
        assert_int_equal(stage_fieldsums_init(&sums, &p.fields), 0);
        assert_int_equal(sums.count, 2);
        pass(&p, &sums, round % 2 ? 300 : 20000, p.bytes.n);
        assert_int_equal(stage_fieldsums_compare(&sums, fd, &found),
                         p.bad ? last.record.ordinal : 0);
        stage_fieldsums_release(&sums);
        close(fd);
        unmake(&p);
    }
}

/* ---- records of ildg-binary-data ---- */

static struct limefile_index *index_data(struct bytes *b, struct limefile_memory *memory,
                                         size_t count, size_t most)
{
    struct limefile_index *index;
    for (size_t i = 0; i < count; i++) {
        size_t n = (size_t)rand() % most;
        unsigned char raw[144], *data = noise(n);
        bool other = rand() % 4 == 0;
        const char *type = other ? "another" : "ildg-binary-data";
        raw_header(raw, type, strlen(type), n, 0xc0);
        bytes_add(b, raw, sizeof raw);
        bytes_add(b, data, n);
        bytes_fill(b, 0, -n & 7);
        free(data);
    }
    limefile_memory_borrow(memory, b->at, b->n);
    assert_int_equal(limefile_index_build(&memory->source, &index), 0);
    assert_int_equal(limefile_index_count(index), count);
    return index;
}

static void pass_data(const struct bytes *b, const struct limefile_fields *fields, size_t most,
                      struct stage_digest *out)
{
    struct stage_datasums data;
    struct stage_sums sums;
    assert_int_equal(stage_sums_init(&sums, 0), 0);
    stage_datasums_init(&data, fields);
    for (size_t at = 0, n; at < b->n; at += n) {
        n = 1 + (size_t)rand() % most;
        if (n > b->n - at)
            n = b->n - at;
        stage_datasums_add(&data, &sums, b->at + at, n);
        stage_sums_add(&sums, b->at + at, n);
    }
    stage_sums_result(&sums, out);
    stage_sums_release(&sums);
    assert_false(out->has_data);
    stage_datasums_result(&data, out);
    assert_true(out->has_data);
}

TEST(data_in_pieces)
{
    for (int round = 0; round < 400; round++) {
        struct bytes b = {0};
        struct limefile_memory memory;
        struct limefile_fields fields;
        struct stage_digest digest;
        size_t count = round % 50 == 7 ? 400 : 1 + (size_t)rand() % 9;
        struct limefile_index *index = index_data(&b, &memory, count, round % 3 ? 3 : 3000);
        assert_int_equal(limefile_fields_build(&memory.source, index, &fields), 0);
        pass_data(&b, &fields, round % 2 ? 100 : 100000, &digest);
        assert_int_equal(digest.data_count + digest.data_more, fields.count);
        assert_int_equal(digest.data_more > 0, fields.count > STAGE_DATA_MAX);
        for (unsigned i = 0; i < digest.data_count; i++) {
            struct limefile_field f;
            struct limefile_cksum want = {0};
            limefile_fields_get(&fields, i, &f);
            limefile_cksum_add(&want, b.at + f.record.data_offset, (size_t)f.record.bytes);
            assert_int_equal(digest.data[i].ordinal, f.record.ordinal);
            assert_int_equal(digest.data[i].cksum, limefile_cksum_result(&want));
        }
        limefile_fields_release(&fields);
        limefile_index_free(index);
        bytes_free(&b);
    }
}

/* An unfinished field is not right. */
TEST(fields_cut_short)
{
    struct passing p;
    struct stage_fieldsums sums;
    struct limefile_checksum found;
    struct limefile_field last;
    make(&p, 1);
    limefile_fields_get(&p.fields, 2, &last);
    assert_int_equal(stage_fieldsums_init(&sums, &p.fields), 0);
    pass(&p, &sums, 300, last.record.data_offset + last.record.bytes - 1);
    assert_int_equal(stage_fieldsums_compare(&sums, -1, &found), last.record.ordinal);
    stage_fieldsums_release(&sums);
    unmake(&p);
}
