/* test_fields.c - which records of a container belong together, and what they describe */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "limeildg.h"

/* ---- containers made of a table ---- */

struct row {
    const char *type, *data; /* data NULL: `n` bytes */
    size_t n;
    unsigned flags;
};

#define DATA(type, n, flags) \
    {                        \
        type, NULL, n, flags \
    }
#define TEXT(type, text, flags)             \
    {                                       \
        type, text, sizeof(text) - 1, flags \
    }

static struct bytes build(const struct row *rows, size_t count)
{
    struct bytes b = {0};
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].data) {
            bytes_record(&b, rows[i].type, rows[i].n, (int)i, rows[i].flags);
            continue;
        }
        bytes_header(&b, rows[i].type, rows[i].n, rows[i].flags);
        bytes_add(&b, rows[i].data, rows[i].n);
        bytes_fill(&b, 0, (8 - rows[i].n % 8) % 8);
    }
    return b;
}

/* A container and what fields.c makes of it. */
struct looked {
    struct bytes bytes;
    struct limefile_memory memory;
    struct limefile_index *index;
    struct limefile_fields fields;
    struct limefile_field *field; /* all of them */
    struct seen seen;
};

static void see(const struct limefile_fields *fields, struct seen *seen)
{
    struct limefile_finding finding;
    for (size_t i = 0; limefile_fields_finding(fields, i, &finding); i++)
        seen_report(seen, &finding);
}

static void look_at(struct looked *l, struct bytes bytes, size_t count)
{
    *l = (struct looked){.bytes = bytes};
    limefile_memory_lend(&l->memory, l->bytes.at, l->bytes.n);
    l->index = index_of(&l->memory.source);
    assert_int_equal(limefile_index_count(l->index), count);
    assert_int_equal(limefile_fields_build(&l->memory.source, l->index, &l->fields), 0);
    see(&l->fields, &l->seen);
    uint64_t before = 0;
    for (size_t i = 0; i < l->seen.findings && i < FINDINGS_MAX; i++) {
        assert_true(l->seen.finding[i].offset >= before);
        before = l->seen.finding[i].offset;
    }
    l->field = calloc(l->fields.count + 1, sizeof *l->field);
    assert_non_null(l->field);
    for (size_t i = 0; i < l->fields.count; i++) {
        struct limefile_field f;
        limefile_fields_get(&l->fields, i, &l->field[i]);
        assert_true(limefile_fields_of(&l->fields, l->field[i].record.ordinal, &f));
        assert_int_equal(f.record.ordinal, l->field[i].record.ordinal);
        assert_string_equal(f.name, l->field[i].name);
    }
    assert_false(limefile_fields_of(&l->fields, 0, &l->field[l->fields.count]));
    assert_false(limefile_fields_of(&l->fields, count + 1, &l->field[l->fields.count]));
}

static void look(struct looked *l, const struct row *rows, size_t count)
{
    look_at(l, build(rows, count), count);
}

static void unlook(struct looked *l)
{
    free(l->field);
    limefile_fields_release(&l->fields);
    limefile_index_free(l->index);
    bytes_free(&l->bytes);
}

static void assert_found(const struct looked *l, size_t i, int code, uint64_t ordinal)
{
    if (i < l->seen.findings &&
        (l->seen.finding[i].code != code || l->seen.finding[i].ordinal != ordinal)) {
        char text[256];
        limefile_finding_text(&l->seen.finding[i], text, sizeof text);
        print_message("# %s\n", text);
    }
    assert_true(i < l->seen.findings);
    assert_string_equal(limefile_error_word(l->seen.finding[i].code),
                        limefile_error_word(code));
    assert_int_equal(l->seen.finding[i].ordinal, ordinal);
}

static void assert_none(const struct looked *l)
{
    if (l->seen.findings)
        print_message("# %s, record %d\n", limefile_error_word(l->seen.finding[0].code),
                      (int)l->seen.finding[0].ordinal);
    assert_int_equal(l->seen.findings, 0);
}

/* Each ends with exactly these findings; `code` 0: none. */
static void assert_ends(struct looked *l, int code, uint64_t ordinal)
{
    if (code) {
        assert_found(l, 0, code, ordinal);
        assert_int_equal(l->seen.findings, 1);
    } else {
        assert_none(l);
    }
    unlook(l);
}

#define LOOK(l, rows) look(l, rows, COUNT(rows))

#define ILDG(precision, x, y, z, t)                                                   \
    "<ildgFormat><version>1.0</version><field>su3gauge</field><precision>" #precision \
    "</precision><lx>" #x "</lx><ly>" #y "</ly><lz>" #z "</lz><lt>" #t "</lt></ildgFormat>"
#define ETMC(precision, flavours)                                   \
    "<etmcFormat><field>diracFermion</field><precision>" #precision \
    "</precision><flavours>" #flavours                              \
    "</flavours><lx>2</lx><ly>2</ly><lz>2</lz><lt>2</lt></etmcFormat>"
#define SUM(a, b)                                                                  \
    "<scidacChecksum><version>1.0</version><suma>" #a "</suma><sumb>" #b "</sumb>" \
    "</scidacChecksum>"
#define FILE_XML(dims) "<scidacFile><dims>" dims "</dims><volfmt>0</volfmt></scidacFile>"
#define RECORD_XML(type, inner)                                                       \
    "<scidacRecord><recordtype>" #type "</recordtype><datatype>QDP_F_Real</datatype>" \
    "<precision>F</precision>" inner "</scidacRecord>"
#define SITE       "<typesize>4</typesize><datacount>2</datacount>"
#define GAUGE_SITE "<typesize>72</typesize><datacount>4</datacount>"

enum { GAUGE_2222 = 16 * 288, SPINOR_2222 = 16 * 96 };

/* ---- as writers write it ---- */

static struct limefile_fd open_corpus(const char *name)
{
    char path[4096];
    struct limefile_fd file;
    const char *folder = getenv("CORPUS");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/data/corpus", name);
    int fd = limefile_open(path, O_RDONLY);
    if (fd < 0)
        print_message("# %s: %s\n", path, limefile_strerror(fd));
    assert_true(fd >= 0);
    limefile_fd_init(&file, fd);
    return file;
}

struct expected {
    const char *file;
    uint64_t ordinal;
    enum limefile_fieldkind kind;
    const char *name;
    unsigned precision;
    const char *lattice;
    bool boxed;
    uint64_t sites, site_bytes;
    uint64_t by_format, by_record, by_file, by_checksum, by_lfn;
    uint32_t suma, sumb;
};

static const struct expected corpus[] = {
    {"qio_nersc_ildg.lime", 7, LIMEFILE_KIND_GAUGE, "su3gauge", 32, "4 4 4 8", false, 512, 288,
     5, 3, 1, 8, 6, 0x52e387af, 0xb848b848},
    {"qio_test1_scidac_n1.lime", 5, LIMEFILE_KIND_SCIDAC, "QDP_F_Real", 32, "8 4 4 4", false,
     512, 8, 0, 3, 1, 6, 0, 0x65999bf7, 0x16199060},
    {"qio_test1_scidac_n1.lime", 9, LIMEFILE_KIND_SCIDAC, "QDP_F_Real", 32, "8 4 4 4", true, 32,
     8, 0, 7, 1, 10, 0, 0xf791abfd, 0xcfafa402},
    {"qio_test1_scidac_n1.lime", 13, LIMEFILE_KIND_GLOBAL, "QLA_F_Real", 32, "", false, 1, 12,
     0, 11, 1, 14, 0, 0x343a3571, 0x343a3571},
    {"qio_test1_scidac_n1.lime", 17, LIMEFILE_KIND_GAUGE, "QDP_F3_ColorMatrix", 32, "8 4 4 4",
     false, 512, 288, 0, 15, 1, 18, 0, 0x92249621, 0xbbac102e},
    {"tm_clime_gauge_4444_p64_n1.lime", 3, LIMEFILE_KIND_GAUGE, "su3gauge", 64, "4 4 4 4",
     false, 256, 576, 2, 0, 0, 4, 0, 0xf17ba6db, 0xebc2d919},
    {"tm_clime_gauge_4448_p32_n1.lime", 3, LIMEFILE_KIND_GAUGE, "su3gauge", 32, "4 4 4 8",
     false, 512, 288, 2, 0, 0, 4, 0, 0x62d81924, 0x43650089},
    {"tm_clime_prop_4444_p32_n1.lime", 6, LIMEFILE_KIND_PROPAGATOR, "diracFermion", 32,
     "4 4 4 4", false, 256, 96, 5, 0, 0, 7, 0, 0x6c03aa9c, 0x0719c285},
    {"tm_lemon_prop_4444_p64_n1.lime", 6, LIMEFILE_KIND_PROPAGATOR, "diracFermion", 64,
     "4 4 4 4", false, 256, 192, 5, 0, 0, 7, 0, 0x4601721a, 0x0d9ba640},
};

static void lattice_text(const struct limefile_lattice *lattice, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < lattice->dims; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%d", i ? " " : "", (int)lattice->extent[i]);
}

static void assert_field(const struct limefile_field *f, const struct expected *e)
{
    char lattice[100];
    lattice_text(&f->lattice, lattice, sizeof lattice);
    assert_int_equal(f->kind, e->kind);
    assert_string_equal(f->name, e->name);
    assert_int_equal(f->precision, e->precision);
    assert_string_equal(lattice, e->lattice);
    assert_int_equal(f->boxed, e->boxed);
    assert_int_equal(f->sites, e->sites);
    assert_int_equal(f->site_bytes, e->site_bytes);
    assert_int_equal(f->expected, e->sites * e->site_bytes);
    assert_int_equal(f->expected, f->record.bytes);
    assert_int_equal(f->by_format, e->by_format);
    assert_int_equal(f->by_record, e->by_record);
    assert_int_equal(f->by_file, e->by_file);
    assert_int_equal(f->by_checksum, e->by_checksum);
    assert_int_equal(f->by_lfn, e->by_lfn);
    assert_true(f->has_checksum);
    assert_int_equal(f->checksum.suma, e->suma);
    assert_int_equal(f->checksum.sumb, e->sumb);
    assert_true(limefile_field_is_summable(f));
}

TEST(test_corpus)
{
    for (size_t i = 0; i < COUNT(corpus); i++) {
        struct limefile_fd file = open_corpus(corpus[i].file);
        struct limefile_index *index = index_of(&file.source);
        struct limefile_fields fields;
        struct seen seen = {0};
        assert_int_equal(limefile_fields_build(&file.source, index, &fields), 0);
        see(&fields, &seen);
        assert_int_equal(seen.findings, 0);
        assert_true(fields.described);
        size_t of_file = 0;
        for (size_t j = 0; j < COUNT(corpus); j++)
            of_file += strcmp(corpus[j].file, corpus[i].file) == 0;
        assert_int_equal(fields.count, of_file);
        struct limefile_field f;
        assert_true(limefile_fields_of(&fields, corpus[i].ordinal, &f));
        assert_field(&f, &corpus[i]);
        assert_string_equal(fields.lfn, corpus[i].by_lfn ? "lfn://test/lfn" : "");
        assert_int_equal(fields.by_lfn, corpus[i].by_lfn);
        limefile_fields_release(&fields);
        limefile_index_free(index);
        close(file.fd);
    }
}

/* Of these nothing is said: what is in them has nothing to do with ILDG. */
TEST(test_plain_corpus)
{
    static const char *const files[] = {"clime_pack_multi.lime", "clime_writer_test1.lime",
                                        "lemon_canonical_n1.lime", "lemon_parallel_n1.lime",
                                        "lemon_xlf_non_blocking_n1.lime"};
    for (size_t i = 0; i < COUNT(files); i++) {
        struct limefile_fd file = open_corpus(files[i]);
        struct limefile_index *index = index_of(&file.source);
        struct limefile_fields fields;
        struct seen seen = {0};
        assert_int_equal(limefile_fields_build(&file.source, index, &fields), 0);
        see(&fields, &seen);
        assert_int_equal(seen.findings, 0);
        assert_false(fields.described);
        assert_int_equal(fields.count, i == 0 ? 2 : 0);
        for (size_t j = 0; j < fields.count; j++) {
            struct limefile_field f;
            limefile_fields_get(&fields, j, &f);
            assert_int_equal(f.kind, LIMEFILE_KIND_UNKNOWN);
            assert_false(limefile_field_is_summable(&f));
        }
        limefile_fields_release(&fields);
        limefile_index_free(index);
        close(file.fd);
    }
}

/* tmLQCD: a record with its checksum for each flavour, in messages of their own. */
TEST(test_flavours)
{
    static const struct row rows[] = {
        TEXT("propagator-type", "DiracFermion_Sink", MB | ME),
        TEXT("etmc-propagator-format", ETMC(32, 2), MB | ME),
        DATA("scidac-binary-data", SPINOR_2222, MB),
        TEXT("scidac-checksum", SUM(1, 2), ME),
        DATA("scidac-binary-data", SPINOR_2222, MB),
        TEXT("scidac-checksum", SUM(3, 4), ME),
        DATA("scidac-binary-data", SPINOR_2222 + 8, MB | ME), /* something else */
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.fields.count, 3);
    for (size_t i = 0; i < 2; i++) {
        const struct limefile_field *f = &l.field[i];
        assert_int_equal(f->kind, LIMEFILE_KIND_PROPAGATOR);
        assert_int_equal(f->by_format, 2);
        assert_int_equal(f->by_checksum, 4 + 2 * i);
        assert_int_equal(f->checksum.suma, 1 + 2 * i);
        assert_true(limefile_field_is_summable(f));
    }
    assert_int_equal(l.field[2].kind, LIMEFILE_KIND_UNKNOWN);
    assert_int_equal(l.field[2].by_format, 0);
    assert_ends(&l, 0, 0);
}

/* Older ones wrote every record as a message; the source stands before the propagator. */
TEST(test_source_and_sink)
{
    static const struct row rows[] = {
        TEXT("propagator-type", "DiracFermion_Source_Sink_Pairs", MB | ME),
        TEXT("etmc-source-format", ETMC(64, 1), MB | ME),
        DATA("scidac-binary-data", 2 * SPINOR_2222, MB | ME),
        TEXT("scidac-checksum", SUM(1, 2), MB | ME),
        TEXT("quda-propagator-format", ETMC(32, 1), MB | ME),
        DATA("scidac-binary-data", SPINOR_2222, MB | ME),
        TEXT("scidac-checksum", SUM(3, 4), MB | ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_SOURCE);
    assert_int_equal(l.field[0].precision, 64);
    assert_int_equal(l.field[0].by_checksum, 4);
    assert_int_equal(l.field[1].kind, LIMEFILE_KIND_PROPAGATOR);
    assert_int_equal(l.field[1].by_checksum, 7);
    assert_ends(&l, 0, 0);
}

/* nissa's: the format says a spinor, its type that it has colours only. */
TEST(test_staggered)
{
    static const struct row rows[] = {
        TEXT("propagator-type", "ColorOnly", MB | ME),
        TEXT("stag-propagator-format", ETMC(64, 1), MB | ME),
        DATA("scidac-binary-data", 16 * 48, MB | ME),
        TEXT("etmc-propagator-format", ETMC(64, 1), MB | ME),
        DATA("scidac-binary-data", 2 * SPINOR_2222, MB | ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_PROPAGATOR);
    assert_int_equal(l.field[0].site_bytes, 48);
    assert_int_equal(l.field[1].site_bytes, 192);
    assert_ends(&l, 0, 0);
}

/* Contractions of any number of components, spinors; the date behind the document is as cvc
 * writes it. */
TEST(test_cvc)
{
#define CVC(inner)                                                                \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<cvcFormat>\n" inner             \
    "<precision>64</precision>\n<lx>2</lx>\n<ly>2</ly>\n<lz>2</lz>\n<lt>2</lt>\n" \
    "</cvcFormat>"
#define CVC_TYPE "<type>cvc-v-x</type>\n<components>16</components>\n"
    static const struct row rows[] = {
        TEXT("cvc_contraction-format", CVC(CVC_TYPE) "\ndate Fri Nov 20 07:42:24 2026\n",
             MB | ME),
        DATA("scidac-binary-data", 16 * 256, MB),
        TEXT("scidac-checksum", SUM(1, 2), ME),
        TEXT("cvc-contraction-format", CVC(CVC_TYPE), MB),
        DATA("scidac-binary-data", 16 * 256, ME),
        TEXT("cvc_contraction-format", CVC(""), MB | ME),
        DATA("scidac-binary-data", 2 * SPINOR_2222, MB | ME),
        TEXT("etmc-propagator-type", ETMC(32, 1), MB | ME),
        DATA("scidac-binary-data", SPINOR_2222, MB | ME),
        TEXT("cvc-contraction-format", CVC("<components>0</components>"), MB | ME),
        DATA("scidac-binary-data", 8, MB | ME),
    };
    struct looked l;
    LOOK(&l, rows);
    for (size_t i = 0; i < 4; i++)
        assert_true(limefile_field_is_summable(&l.field[i]));
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_SCIDAC);
    assert_string_equal(l.field[0].name, "cvc-v-x");
    assert_int_equal(l.field[0].precision, 64);
    assert_int_equal(l.field[0].site_bytes, 256);
    assert_int_equal(l.field[0].lattice.dims, 4);
    assert_int_equal(l.field[0].by_checksum, 3);
    assert_int_equal(l.field[1].site_bytes, 256);
    assert_int_equal(l.field[2].site_bytes, 192);
    assert_string_equal(l.field[2].name, "");
    assert_int_equal(l.field[3].kind, LIMEFILE_KIND_PROPAGATOR);
    assert_false(limefile_field_is_summable(&l.field[4]));
    assert_ends(&l, LIMEFILE_D_XML, 10);
}

/* Whatever the field, it is ildg-binary-data; a configuration has its format. */
TEST(test_grid)
{
#define NAMED(name)                                                                      \
    "<scidacRecord>\n<version>1</version>\n<recordtype>0</recordtype>\n<datatype>" name  \
    "</datatype>\n<precision>D</precision>\n<colors>1</colors>\n<spins>1</spins>\n" SITE \
    "</scidacRecord>\n"
    static const struct row rows[] = {
        TEXT("scidac-private-file-xml", FILE_XML("2 \n2 \n2 \n2"), MB | ME),
        TEXT("grid-format", "<FieldMetaData/>", MB),
        TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), 0),
        DATA("ildg-binary-data", 16 * 8, 0),
        TEXT("FieldNormMetaData", "<FieldNormMetaData/>", 0),
        TEXT("scidac-checksum", SUM(1, 2), ME),
        TEXT("scidac-private-record-xml", NAMED("QDP_D3_ColorMatrix"), MB),
        DATA("ildg-binary-data", 16 * 8, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_SCIDAC);
    assert_int_equal(l.field[0].by_checksum, 6);
    assert_true(limefile_field_is_summable(&l.field[0]));
    assert_ends(&l, LIMEFILE_D_FORMAT_MISSING, 8);
}

#define GRID(dims) "<FieldMetaData><nd>0</nd><dimension>" dims "</dimension></FieldMetaData>"
#define E(n)       "<elem>" #n "</elem>\n"

/* It says the lattice in each message; a checkerboard, and a tensor that has no name, by their
 * length only. */
TEST(test_grid_lengths)
{
    static const struct row rows[] = {
        TEXT("scidac-private-file-xml", FILE_XML("2 2 2 2"), MB | ME),
        TEXT("grid-format", GRID(E(4) E(4) E(4) E(8)), MB),
        TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), 0),
        DATA("ildg-binary-data", 512 * 8, ME),
        TEXT("grid-format", GRID(E(4) E(4) E(4) E(8)), MB),
        TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), 0),
        DATA("ildg-binary-data", 256 * 8, ME),
        TEXT("grid-format", GRID(E(3) E(2) E(2) E(2) E(2)), MB),
        TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), 0),
        DATA("ildg-binary-data", 24 * 8, ME),
        TEXT("grid-format", GRID(E(2) E(2) E(2) E(4)), MB),
        TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), 0),
        DATA("ildg-binary-data", 32 * 8 * 5, ME),
        TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), MB),
        DATA("ildg-binary-data", 16 * 8, ME),
        TEXT("grid-format", GRID(E(3) E(2) E(2) E(2)), MB), /* 3 has no half */
        TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), 0),
        DATA("ildg-binary-data", 12 * 8, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    const struct limefile_field *f = l.field;
    assert_int_equal(f[0].sites, 512);
    assert_int_equal(f[0].by_file, 2);
    assert_false(f[0].boxed || f[0].halved);
    assert_true(f[1].boxed && f[1].halved);
    assert_int_equal(f[1].sites, 256);
    assert_int_equal(f[1].lattice.extent[0], 4);
    assert_int_equal(f[1].upper[0], 1);
    assert_int_equal(f[1].upper[3], 7);
    assert_true(f[2].halved);
    assert_int_equal(f[2].upper[0], 2);
    assert_int_equal(f[2].upper[1], 0);
    assert_int_equal(f[3].site_bytes, 40);
    assert_int_equal(f[3].sites, 32);
    assert_int_equal(f[4].sites, 16);
    assert_int_equal(f[4].by_file, 1);
    for (size_t i = 0; i < 5; i++)
        assert_true(limefile_field_is_summable(&f[i]));
    assert_false(f[5].halved);
    assert_ends(&l, LIMEFILE_D_FIELD_LENGTH, 18);
}

/* Written where there is no name: no deviation, and no name. */
TEST(test_blank_lfn)
{
    static const char *const blank[] = {"", " ", "\n"};
    for (size_t i = 0; i < COUNT(blank); i++) {
        const struct row rows[] = {
            TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
            {"ildg-data-lfn", blank[i], strlen(blank[i]), 0},
            DATA("ildg-binary-data", GAUGE_2222, ME),
        };
        struct looked l;
        LOOK(&l, rows);
        assert_int_equal(l.fields.by_lfn, 0);
        assert_int_equal(l.field[0].by_lfn, 0);
        assert_ends(&l, 0, 0);
    }
}

/* A format or a checksum whose data a fault has cut off is where it belongs. */
TEST(test_data_cut_off)
{
    static const struct row rows[] = {
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
        DATA("ildg-binary-data", GAUGE_2222, ME),
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
        TEXT("scidac-checksum", SUM(1, 2), 0),
    };
    struct bytes bytes = build(rows, COUNT(rows));
    bytes_header(&bytes, "ildg-binary-data", GAUGE_2222, ME);
    struct looked l;
    look_at(&l, bytes, COUNT(rows));
    assert_non_null(limefile_index_fault(l.index));
    assert_int_equal(l.fields.count, 1);
    assert_int_equal(l.field[0].by_checksum, 0);
    assert_ends(&l, 0, 0);
}

/* Several configurations in one container, the LFN behind. */
TEST(test_two_gauges)
{
    static const struct row rows[] = {
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
        DATA("ildg-binary-data", GAUGE_2222, 0),
        TEXT("scidac-checksum", SUM(1, 2), 0),
        TEXT("ildg-data-lfn", "lfn://one", ME),
        TEXT("ildg-data-lfn", "lfn://two", MB),
        TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), 0),
        DATA("ildg-binary-data", 2 * GAUGE_2222, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].by_lfn, 4);
    assert_int_equal(l.field[1].by_lfn, 5);
    assert_int_equal(l.field[1].precision, 64);
    assert_false(l.field[1].has_checksum);
    assert_int_equal(l.fields.by_lfn, 4);
    assert_string_equal(l.fields.lfn, "lfn://one");
    assert_ends(&l, 0, 0);
}

/* ---- flags of messages that are wrong ---- */

static void broken(unsigned a, unsigned b, unsigned c, unsigned d)
{
    const struct row rows[] = {
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), a),
        DATA("ildg-binary-data", GAUGE_2222, b),
        TEXT("scidac-checksum", SUM(1, 2), c),
        TEXT("ildg-data-lfn", "lfn://one", d),
        TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), a),
        DATA("ildg-binary-data", 2 * GAUGE_2222, b),
        TEXT("scidac-checksum", SUM(3, 4), c),
        TEXT("ildg-data-lfn", "lfn://two", d),
    };
    struct looked l;
    LOOK(&l, rows);
    for (size_t i = 0; i < 2; i++) {
        const struct limefile_field *f = &l.field[i];
        assert_int_equal(f->kind, LIMEFILE_KIND_GAUGE);
        assert_int_equal(f->precision, i ? 64 : 32);
        assert_int_equal(f->by_format, 1 + 4 * i);
        assert_int_equal(f->by_checksum, 3 + 4 * i);
        assert_int_equal(f->checksum.suma, i ? 3 : 1);
        assert_int_equal(f->by_lfn, 4 + 4 * i);
    }
    assert_string_equal(l.fields.lfn, "lfn://one");
    assert_none(&l);
    unlook(&l);
}

TEST(test_broken_flags)
{
    broken(MB, 0, 0, ME);
    broken(0, 0, 0, 0);
    broken(MB, MB, MB, MB);
    broken(ME, ME, ME, ME);
    broken(MB, 0, 0, 0);
    broken(0, 0, 0, ME);
    broken(MB, ME, 0, ME);
    broken(0, MB, 0, MB);
}

/* Good flags, but the format's message has no data: told, and taken all the same. */
TEST(test_each_record_a_message)
{
    static const struct row rows[] = {
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB | ME),
        TEXT("ildg-data-lfn", "lfn://one", MB | ME),
        DATA("ildg-binary-data", GAUGE_2222, MB | ME),
        TEXT("scidac-checksum", SUM(1, 2), MB | ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_GAUGE);
    assert_int_equal(l.field[0].by_checksum, 4);
    assert_int_equal(l.field[0].by_lfn, 2);
    assert_ends(&l, LIMEFILE_D_FORMAT_LATE, 1);
    static const struct row scidac[] = {
        TEXT("scidac-private-file-xml", FILE_XML("2 2 2 2"), MB | ME),
        TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB | ME),
        DATA("scidac-binary-data", 16 * 8, MB | ME),
        TEXT("scidac-checksum", SUM(1, 2), MB | ME),
        DATA("scidac-binary-data", 16 * 8, MB | ME),
    };
    LOOK(&l, scidac);
    assert_int_equal(l.field[0].by_record, 2);
    assert_true(limefile_field_is_summable(&l.field[0]));
    assert_int_equal(l.field[0].by_checksum, 4);
    assert_int_equal(l.field[1].kind, LIMEFILE_KIND_UNKNOWN);
    assert_ends(&l, 0, 0);
}

/* ---- what is wrong ---- */

TEST(test_format_missing)
{
    static const struct row rows[] = {
        DATA("ildg-binary-data", GAUGE_2222, MB),
        TEXT("scidac-checksum", SUM(1, 2), ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_true(l.fields.described);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_UNKNOWN);
    assert_int_equal(l.field[0].by_checksum, 2);
    assert_ends(&l, LIMEFILE_D_FORMAT_MISSING, 1);
    static const struct row scidac[] = {
        TEXT("scidac-private-file-xml", FILE_XML("2 2 2 2 "), MB | ME),
        TEXT("scidac-private-record-xml", RECORD_XML(0, GAUGE_SITE), MB),
        DATA("ildg-binary-data", GAUGE_2222, ME),
    };
    LOOK(&l, scidac);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_SCIDAC);
    assert_true(limefile_field_is_summable(&l.field[0]));
    assert_ends(&l, LIMEFILE_D_FORMAT_MISSING, 3);
    /* No other metadata is in the container. */
    static const struct row alone[] = {
        TEXT("xlf-info", "plaquette = 0.5\n", MB | ME),
        DATA("ildg-binary-data", GAUGE_2222, MB | ME),
    };
    LOOK(&l, alone);
    assert_false(l.fields.described);
    assert_ends(&l, LIMEFILE_D_FORMAT_MISSING, 2);
    static const struct row word[] = {DATA("ildg-binary-data", GAUGE_2222 - 1, MB | ME)};
    LOOK(&l, word);
    assert_ends(&l, 0, 0);
}

TEST(test_format_late)
{
    static const struct row behind[] = {
        DATA("ildg-binary-data", GAUGE_2222, MB),
        TEXT("scidac-checksum", SUM(1, 2), 0),
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), ME),
    };
    struct looked l;
    LOOK(&l, behind);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_GAUGE);
    assert_int_equal(l.field[0].by_format, 3);
    assert_int_equal(l.field[0].by_checksum, 2);
    assert_true(limefile_field_is_summable(&l.field[0]));
    assert_ends(&l, LIMEFILE_D_FORMAT_LATE, 3);

    static const struct row alone[] = {TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB | ME)};
    LOOK(&l, alone);
    assert_int_equal(l.fields.count, 0);
    assert_ends(&l, LIMEFILE_D_FORMAT_LATE, 1);

    static const struct row twice[] = {
        TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), MB),
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), 0),
        DATA("ildg-binary-data", GAUGE_2222, ME),
    };
    LOOK(&l, twice);
    assert_int_equal(l.field[0].by_format, 2);
    assert_ends(&l, LIMEFILE_D_FORMAT_LATE, 1);

    static const struct row between[] = {
        DATA("ildg-binary-data", 8, MB),
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), 0),
        DATA("ildg-binary-data", GAUGE_2222, ME),
    };
    LOOK(&l, between);
    assert_int_equal(l.field[1].by_format, 2);
    assert_ends(&l, LIMEFILE_D_FORMAT_MISSING, 1);
}

/* One format, one private record, and which size a site has is not sure. */
static void disputed(const char *record, size_t record_n, size_t bytes, bool is)
{
    const struct row rows[] = {
        {"scidac-private-record-xml", record, record_n, MB},
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), 0),
        DATA("ildg-binary-data", bytes, 0),
        TEXT("scidac-checksum", SUM(1, 2), ME),
    };
    struct looked l;
    LOOK(&l, rows);
    const struct limefile_field *f = &l.field[0];
    struct limefile_field as;
    assert_int_equal(f->disputed, is);
    assert_int_equal(f->site_bytes, 288);
    assert_int_equal(limefile_field_reading(f, 0, &as), !is || bytes == GAUGE_2222);
    unlook(&l);
}

TEST(test_disputed)
{
    static const char same[] = RECORD_XML(0, GAUGE_SITE);
    static const char twice[] =
        RECORD_XML(0, "<typesize>144</typesize><datacount>4</datacount>");
    static const char global[] = RECORD_XML(1, GAUGE_SITE);
    static const size_t bytes[] = {GAUGE_2222, 2 * GAUGE_2222, GAUGE_2222 / 2};
    for (size_t i = 0; i < COUNT(bytes); i++) {
        disputed(same, sizeof same - 1, bytes[i], false);
        disputed(twice, sizeof twice - 1, bytes[i], true);
        disputed(global, sizeof global - 1, bytes[i], true);
    }
}

static void differs(const char *file, size_t file_n, const char *record, size_t record_n,
                    uint64_t ordinal)
{
    const struct row rows[] = {
        {"scidac-private-file-xml", file, file_n, MB | ME},
        {"scidac-private-record-xml", record, record_n, MB},
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 4), 0),
        DATA("ildg-binary-data", 2 * GAUGE_2222, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_GAUGE);
    assert_true(limefile_field_is_summable(&l.field[0])); /* as its format says */
    assert_ends(&l, ordinal ? LIMEFILE_D_FORMAT_DIFFERS : 0, ordinal);
}

#define TWO(a, b, ordinal) differs(a, sizeof(a) - 1, b, sizeof(b) - 1, ordinal)

TEST(test_format_differs)
{
    TWO(FILE_XML("2 2 2 4"), RECORD_XML(0, GAUGE_SITE), 0);
    TWO(FILE_XML("2 2 4 2"), RECORD_XML(0, GAUGE_SITE), 1);
    TWO(FILE_XML("2 2 8"), RECORD_XML(0, GAUGE_SITE), 1);
    TWO(FILE_XML("2 2 2 4"), RECORD_XML(0, SITE), 2);
    TWO(FILE_XML("2 2 2 4"), RECORD_XML(1, GAUGE_SITE), 2);
    TWO(FILE_XML("2 2 2 4"),
        "<scidacRecord><precision>D</precision>" GAUGE_SITE "</scidacRecord>", 2);
}

TEST(test_length)
{
    static const struct row rows[] = {
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
        DATA("ildg-binary-data", GAUGE_2222 - 1, ME),
        TEXT("etmc-propagator-format", ETMC(32, 1), MB | ME),
        DATA("scidac-binary-data", SPINOR_2222 + 1, MB | ME),
        TEXT("scidac-private-file-xml", FILE_XML("2 2 2 2 "), MB | ME),
        TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB),
        DATA("scidac-binary-data", 0, ME),
        TEXT("scidac-private-record-xml", RECORD_XML(1, SITE), MB),
        DATA("scidac-binary-data", 16, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.seen.findings, 4);
    static const uint64_t want[] = {GAUGE_2222, SPINOR_2222, 128, 8};
    for (size_t i = 0; i < 4; i++) {
        const struct limefile_field *f = &l.field[i];
        assert_found(&l, i, LIMEFILE_D_FIELD_LENGTH, f->record.ordinal);
        assert_int_equal(l.seen.finding[i].offset, f->record.header_offset + 8);
        assert_int_equal(l.seen.finding[i].have, f->record.bytes);
        assert_int_equal(l.seen.finding[i].want, want[i]);
        assert_int_equal(f->expected, want[i]);
        assert_true(f->kind != LIMEFILE_KIND_UNKNOWN);
        assert_false(limefile_field_is_summable(f));
    }
    unlook(&l);
}

/* More bytes than there can be: whatever the arithmetic gives, it is not that length. */
TEST(test_astronomical)
{
    static const struct row rows[] = {
        TEXT("ildg-format", ILDG(64, 4294967296, 1048576, 2, 16), MB),
        DATA("ildg-binary-data", 0, ME),
        TEXT("scidac-private-file-xml", FILE_XML("4611686018427387904"), MB | ME),
        TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB),
        DATA("scidac-binary-data", 0, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.seen.findings, 2);
    assert_found(&l, 0, LIMEFILE_D_XML, 1);
    assert_found(&l, 1, LIMEFILE_D_XML, 4);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(l.field[i].kind, LIMEFILE_KIND_UNKNOWN);
        assert_false(limefile_field_is_summable(&l.field[i]));
    }
    unlook(&l);
}

TEST(test_boxes)
{
#define BOX(lower, upper) \
    RECORD_XML(2, "<hyperlower>" lower "</hyperlower><hyperupper>" upper "</hyperupper>" SITE)
    static const struct row rows[] = {
        TEXT("scidac-private-file-xml", FILE_XML("4 2 2 2 "), MB | ME),
        TEXT("scidac-private-record-xml", BOX("1 0 0 1", "3 1 1 1"), MB),
        DATA("scidac-binary-data", 12 * 8, ME),
        TEXT("scidac-private-record-xml", BOX("1 0 0 1", "4 1 1 1"), MB), /* outside */
        DATA("scidac-binary-data", 16 * 8, ME),
        TEXT("scidac-private-record-xml", BOX("1 0 0", "3 1 1"), MB), /* flat */
        DATA("scidac-binary-data", 12 * 8, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].sites, 12);
    assert_int_equal(l.field[0].lattice.extent[0], 4);
    assert_int_equal(l.field[0].upper[0], 3);
    assert_true(limefile_field_is_summable(&l.field[0]));
    assert_false(limefile_field_is_summable(&l.field[1]));
    assert_false(limefile_field_is_summable(&l.field[2]));
    assert_int_equal(l.seen.findings, 2);
    assert_found(&l, 0, LIMEFILE_D_FORMAT_DIFFERS, 4);
    assert_found(&l, 1, LIMEFILE_D_FORMAT_DIFFERS, 6);
    unlook(&l);
}

/* Without a file's XML sites have their ranks, but not a box's; a part of a file is none. */
TEST(test_lattice_unknown)
{
    static const struct row rows[] = {
        TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB),
        DATA("scidac-binary-data", 80, ME),
        TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB),
        DATA("scidac-binary-data", 81, ME),
        TEXT("scidac-private-record-xml", BOX("0 0", "1 1"), MB),
        DATA("scidac-binary-data", 32, ME),
        TEXT("scidac-private-file-xml",
             "<scidacFile><dims>4 4</dims><volfmt>1</volfmt></scidacFile>", MB | ME),
        TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB),
        DATA("scidac-binary-data", 32, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].sites, 10);
    assert_int_equal(l.field[0].expected, 0);
    assert_int_equal(l.field[0].lattice.dims, 0);
    assert_true(limefile_field_is_summable(&l.field[0]));
    for (size_t i = 1; i < 4; i++)
        assert_false(limefile_field_is_summable(&l.field[i]));
    assert_int_equal(l.field[3].lattice.dims, 2);
    assert_int_equal(l.seen.finding[0].have, 81);
    assert_int_equal(l.seen.finding[0].want, 0); /* some whole number of sites */
    assert_ends(&l, LIMEFILE_D_FIELD_LENGTH, 4);
}

TEST(test_checksums_alone)
{
    static const struct row two[] = {
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
        DATA("ildg-binary-data", GAUGE_2222, 0),
        TEXT("scidac-checksum", SUM(1, 2), 0),
        TEXT("scidac-checksum", SUM(3, 4), ME),
    };
    struct looked l;
    LOOK(&l, two);
    assert_int_equal(l.field[0].by_checksum, 3);
    assert_ends(&l, LIMEFILE_D_CHECKSUM_ALONE, 4);

    static const struct row nothing[] = {TEXT("scidac-checksum", SUM(1, 2), MB | ME)};
    LOOK(&l, nothing);
    assert_ends(&l, LIMEFILE_D_CHECKSUM_ALONE, 1);

    static const struct row before[] = {
        TEXT("etmc-propagator-format", ETMC(32, 1), MB | ME),
        TEXT("scidac-checksum", SUM(1, 2), MB),
        DATA("scidac-binary-data", SPINOR_2222, ME),
        TEXT("scidac-checksum", SUM(3, 4), MB),
        DATA("scidac-binary-data", SPINOR_2222, ME),
    };
    LOOK(&l, before);
    assert_int_equal(l.field[0].by_checksum, 2);
    assert_int_equal(l.field[1].by_checksum, 4);
    assert_ends(&l, 0, 0);

    static const struct row around[] = {
        TEXT("scidac-checksum", SUM(1, 2), MB),
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), 0),
        DATA("ildg-binary-data", GAUGE_2222, 0),
        TEXT("scidac-checksum", SUM(3, 4), ME),
    };
    LOOK(&l, around);
    assert_int_equal(l.field[0].by_checksum, 4);
    assert_int_equal(l.field[0].checksum.suma, 3);
    assert_ends(&l, LIMEFILE_D_CHECKSUM_ALONE, 1);

    static const struct row copy[] = {
        TEXT("gauge-scidac-checksum-copy", SUM(1, 2), MB | ME),
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
        DATA("ildg-binary-data", GAUGE_2222, ME),
    };
    LOOK(&l, copy);
    assert_false(l.field[0].has_checksum);
    assert_ends(&l, 0, 0);
}

/* Data and sums in one message, in any order: which sum ("1".."9") belongs to which data. */
static void assert_pairs(const char *order, const char *sums, uint64_t alone)
{
    struct row rows[16] = {TEXT("xlf-info", "x", MB)};
    size_t count = 1;
    static const char *const xml[] = {SUM(0, 0), SUM(1, 0), SUM(2, 0), SUM(3, 0), SUM(4, 0)};
    for (; *order; order++) {
        rows[count++] = *order == 'd' ? (struct row)DATA("scidac-binary-data", 8, 0)
                                      : (struct row){"scidac-checksum", xml[*order - '0'],
                                                     strlen(xml[0]), 0};
    }
    rows[count - 1].flags = ME;
    struct looked l;
    look(&l, rows, count);
    assert_int_equal(l.fields.count, strlen(sums));
    for (size_t i = 0; sums[i]; i++) {
        assert_int_equal(l.field[i].has_checksum, sums[i] != '0');
        assert_int_equal(l.field[i].checksum.suma, sums[i] - '0');
    }
    assert_ends(&l, alone ? LIMEFILE_D_CHECKSUM_ALONE : 0, alone);
}

TEST(test_pairs)
{
    assert_pairs("d1d2", "12", 0);
    assert_pairs("d1d2d3", "123", 0);
    assert_pairs("dd2", "02", 0);
    assert_pairs("d1d", "10", 0);
    assert_pairs("1d2d", "12", 0); /* each before its data */
    assert_pairs("1d2d3d", "123", 0);
    assert_pairs("1d", "1", 0);
    assert_pairs("1d2d3", "23", 2); /* one of something else, and the usual order */
    assert_pairs("1d2", "2", 2);
    assert_pairs("1dd2", "12", 0);
    assert_pairs("12dd", "20", 2);
    assert_pairs("d12d", "10", 4);
}

TEST(test_senseless_metadata)
{
    static const struct row rows[] = {
        TEXT("scidac-private-file-xml", "<scidacFile/>", MB | ME),
        TEXT("scidac-private-record-xml", "nothing", MB),
        TEXT("ildg-format", "", 0),
        TEXT("ildg-data-lfn", "a\nb", 0),
        DATA("ildg-binary-data", 8, 0),
        TEXT("scidac-checksum", "<scidacChecksum><suma>x</suma></scidacChecksum>", ME),
        DATA("etmc-propagator-format", LIMEFILE_XML_BYTES_MAX + 1, MB | ME),
        DATA("scidac-binary-data", 8, MB | ME),
        TEXT("ildg-data-lfn", "lfn://good", MB | ME),
    };
    static const int codes[] = {
        LIMEFILE_E_XML_VALUE, LIMEFILE_E_XML, LIMEFILE_E_XML, LIMEFILE_E_XML_VALUE, 0,
        LIMEFILE_E_XML_VALUE, LIMEFILE_E_XML};
    struct looked l;
    LOOK(&l, rows);
    size_t n = 0;
    for (size_t i = 0; i < COUNT(codes); i++) {
        if (!codes[i])
            continue;
        assert_found(&l, n, LIMEFILE_D_XML, i + 1);
        assert_int_equal(l.seen.finding[n].have, (uint64_t)-codes[i]);
        n++;
    }
    assert_int_equal(l.seen.findings, n);
    assert_int_equal(l.field[0].by_format, 3); /* there is one: it isn't missing */
    assert_int_equal(l.field[0].by_record, 2);
    assert_int_equal(l.field[0].by_checksum, 6);
    assert_false(l.field[0].has_checksum);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_UNKNOWN);
    assert_int_equal(l.fields.by_lfn, 9); /* the first that says one */
    assert_string_equal(l.fields.lfn, "lfn://good");
    unlook(&l);
}

TEST(test_other_gauge_groups)
{
#define GROUP(name)                                                                         \
    "<ildgFormat><field>" name "</field><precision>32</precision><lx>2</lx><ly>2</ly><lz>2" \
    "</lz><lt>2</lt></ildgFormat>"
    static const struct row rows[] = {
        TEXT("ildg-format", GROUP("su2gauge"), MB),    DATA("ildg-binary-data", 16 * 128, ME),
        TEXT("ildg-format", GROUP("sp4links"), MB),    DATA("ildg-binary-data", 100, ME),
        TEXT("ildg-format", GROUP("photonField"), MB), DATA("ildg-binary-data", 16 * 32, ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.field[0].kind, LIMEFILE_KIND_GAUGE);
    assert_int_equal(l.field[0].site_bytes, 128);
    assert_true(limefile_field_is_summable(&l.field[0]));
    assert_string_equal(l.field[1].name, "sp4links");
    assert_int_equal(l.field[1].site_bytes, 0);
    assert_int_equal(l.field[1].expected, 0);
    assert_int_equal(l.field[2].kind, LIMEFILE_KIND_SCIDAC); /* not called gauge */
    assert_int_equal(l.field[2].site_bytes, 32);             /* there are 16 sites */
    assert_true(limefile_field_is_summable(&l.field[2]));
    assert_ends(&l, 0, 0);
}

TEST(test_gauge_names)
{
    static const struct {
        const char *name;
        enum limefile_group group;
        unsigned n;
        bool variant;
    } good[] = {
        {"su3gauge", LIMEFILE_GROUP_SU, 3, false},
        {"su2gauge", LIMEFILE_GROUP_SU, 2, false},
        {"su9gauge", LIMEFILE_GROUP_SU, 9, false},
        {"su10gauge", LIMEFILE_GROUP_SU, 10, false},
        {"su4gauge#a", LIMEFILE_GROUP_SU, 4, true},
        {"su3gauge_X9", LIMEFILE_GROUP_SU, 3, true},
        {"so3gauge", LIMEFILE_GROUP_SO, 3, false},
        {"so4gauge_b1", LIMEFILE_GROUP_SO, 4, true},
        {"so12gauge", LIMEFILE_GROUP_SO, 12, false},
        {"sp4gauge", LIMEFILE_GROUP_SP, 4, false},
        {"sp6gauge", LIMEFILE_GROUP_SP, 6, false},
        {"sp8gauge", LIMEFILE_GROUP_SP, 8, false},
        {"sp10gauge", LIMEFILE_GROUP_SP, 10, false},
        {"u1gauge", LIMEFILE_GROUP_U, 1, false},
        {"u12gauge", LIMEFILE_GROUP_U, 12, false},
        {"u1phase", LIMEFILE_GROUP_U1_PHASE, 1, false},
        {"SU3Gauge", LIMEFILE_GROUP_SU, 3, false},
    };
    static const char *const bad[] = {
        "",
        "su",
        "gauge",
        "su3",
        "sugauge",
        "su0gauge",
        "su1gauge",
        "su03gauge",
        "su3gauges",
        "su3gauge#",
        "su3gauge_",
        "su3gauge#a-b",
        "su3gauge a",
        "su10gauge#a",
        "sp2gauge",
        "sp5gauge",
        "sp4gauge#a",
        "sp11gauge",
        "u0gauge",
        "u1gauge#a",
        "u2phase",
        "u1phases",
        "so1gauge",
        "diracFermion",
        "su12345678901234567890gauge",
        "su+3gauge",
        "su 3gauge",
        "xsu3gauge",
    };
    struct limefile_gaugename gauge;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(limefile_gaugename_parse(good[i].name, &gauge));
        assert_int_equal(gauge.group, good[i].group);
        assert_int_equal(gauge.n, good[i].n);
        assert_int_equal(gauge.variant, good[i].variant);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (limefile_gaugename_parse(bad[i], &gauge))
            print_message("# %s\n", bad[i]);
        assert_false(limefile_gaugename_parse(bad[i], &gauge));
        assert_int_equal(gauge.group, LIMEFILE_GROUP_NONE);
    }
}

/* Of SU(N) the name gives the size of a site; of others the length does, or a private record.
 */
TEST(test_sites_of_groups)
{
    static const struct row rows[] = {
        TEXT("ildg-format", GROUP("su4gauge"), MB),
        DATA("ildg-binary-data", 16 * 4 * 16 * 2 * 4, ME),
        TEXT("ildg-format", GROUP("su4gauge"), MB),
        DATA("ildg-binary-data", 16 * 4 * 16 * 2 * 4 + 16, ME), /* too long */
        TEXT("ildg-format", GROUP("u1phase"), MB),
        DATA("ildg-binary-data", 16 * 16, ME),
        TEXT("ildg-format", GROUP("so3gauge"), MB),
        TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), 0),
        DATA("ildg-binary-data", 16 * 8, ME),
        TEXT("ildg-format", GROUP("su3gauge#half"), MB),
        DATA("ildg-binary-data", 16 * 144, ME),
        TEXT("ildg-format", GROUP("sp4gauge"), MB),
        DATA("ildg-binary-data", 16 * 100 + 1, ME), /* nobody can tell */
    };
    static const uint64_t site_bytes[] = {512, 512, 16, 8, 144, 0};
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.fields.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(l.field[i].kind, LIMEFILE_KIND_GAUGE);
        assert_int_equal(l.field[i].site_bytes, site_bytes[i]);
        assert_int_equal(limefile_field_is_summable(&l.field[i]), i != 1 && i != 5);
        assert_int_equal(l.field[i].expected, i == 5 ? 0 : site_bytes[i] * 16);
    }
    assert_ends(&l, LIMEFILE_D_FIELD_LENGTH, 4);
}

/* ---- several configurations in one container (ILDG 2.0) ---- */

/* A configuration of two fields, and one more, each with its format and sum, in one message. */
TEST(test_pairs_in_a_message)
{
    static const struct row rows[] = {
        TEXT("ildg-data-lfn", "lfn://all", MB | ME),
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
        DATA("ildg-binary-data", GAUGE_2222, 0),
        TEXT("scidac-checksum", SUM(1, 2), 0),
        TEXT("ildg-format", GROUP("u1phase"), 0),
        DATA("ildg-binary-data", 16 * 16, 0),
        TEXT("scidac-checksum", SUM(3, 4), ME),
        TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), MB),
        DATA("ildg-binary-data", 2 * GAUGE_2222, 0),
        TEXT("scidac-checksum", SUM(5, 6), ME),
    };
    static const char *const names[] = {"su3gauge", "u1phase", "su3gauge"};
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.fields.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct limefile_field *f = &l.field[i];
        assert_string_equal(f->name, names[i]);
        assert_int_equal(f->kind, LIMEFILE_KIND_GAUGE);
        assert_int_equal(f->precision, i == 2 ? 64 : 32);
        assert_int_equal(f->by_format, f->record.ordinal - 1);
        assert_int_equal(f->by_checksum, f->record.ordinal + 1);
        assert_int_equal(f->checksum.suma, 2 * i + 1);
        assert_true(limefile_field_is_summable(f));
    }
    assert_int_equal(l.field[0].by_lfn, 1); /* the file's: it is said once */
    assert_string_equal(l.fields.lfn, "lfn://all");
    assert_ends(&l, 0, 0);
}

/* A message for the format and one for the data: read all the same, and named. */
TEST(test_pairs_of_messages)
{
    static const struct row rows[] = {
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB | ME),
        DATA("ildg-binary-data", GAUGE_2222, MB | ME),
        TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), MB | ME),
        DATA("ildg-binary-data", 2 * GAUGE_2222, MB | ME),
        TEXT("ildg-data-lfn", "lfn://all", MB | ME),
    };
    struct looked l;
    LOOK(&l, rows);
    assert_int_equal(l.fields.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(l.field[i].by_format, 2 * i + 1);
        assert_int_equal(l.field[i].precision, i ? 64 : 32);
        assert_true(limefile_field_is_summable(&l.field[i]));
        assert_found(&l, i, LIMEFILE_D_FORMAT_LATE, 2 * i + 1);
    }
    assert_int_equal(l.field[1].by_lfn, 5);
    assert_int_equal(l.seen.findings, 2);
    unlook(&l);
}

/* ---- reading ---- */

TEST(test_read_errors)
{
    static const struct row rows[] = {
        TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
        DATA("ildg-binary-data", GAUGE_2222, 0),
        TEXT("scidac-checksum", SUM(1, 2), ME),
    };
    struct bytes b = build(rows, COUNT(rows));
    struct faulty faulty;
    struct limefile_fields fields;
    faulty_init(&faulty, &b);
    struct limefile_index *index = index_of(&faulty.source);
    unsigned indexed = faulty.calls;
    assert_int_equal(limefile_fields_build(&faulty.source, index, &fields), 0);
    assert_int_equal(fields.count, 1);
    limefile_fields_release(&fields);
    unsigned all = faulty.calls - indexed;
    assert_int_equal(all, 2); /* what it needs, once */
    for (unsigned i = 1; i <= all; i++) {
        faulty.fail_at = faulty.calls + i;
        faulty.fail_for = 1;
        assert_int_equal(limefile_fields_build(&faulty.source, index, &fields), -EIO);
        assert_null(fields.kept);
    }
    faulty.memory.size = 150; /* the file was cut */
    assert_int_equal(limefile_fields_build(&faulty.source, index, &fields), LIMEFILE_E_SHRUNK);
    limefile_index_free(index);
    bytes_free(&b);
}

/* Many records of each kind: one pass, whatever their order. */
TEST(test_many)
{
    static const struct row rows[] = {
        TEXT("ildg-format", ILDG(32, 1, 1, 1, 1), 0),
        TEXT("etmc-source-format", "<a/>", 0),
        TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), 0),
        TEXT("ildg-data-lfn", "lfn://x", 0),
        DATA("ildg-binary-data", 288, 0),
        TEXT("scidac-checksum", SUM(1, 2), 0),
        DATA("scidac-binary-data", 0, 0),
        TEXT("scidac-checksum", "x", 0),
        TEXT("scidac-checksum", SUM(3, 4), 0),
    };
    enum { TIMES = 10000 };
    struct row *all = calloc(TIMES * COUNT(rows), sizeof *all);
    for (size_t i = 0; i < TIMES; i++)
        memcpy(all + i * COUNT(rows), rows, sizeof rows);
    struct looked l;
    look(&l, all, TIMES * COUNT(rows));
    assert_int_equal(l.fields.count, 2 * TIMES);
    /* differs, metadata twice, a checksum alone */
    assert_int_equal(l.seen.findings, 4 * TIMES);
    assert_int_equal(l.field[2 * TIMES - 2].by_format, (TIMES - 1) * COUNT(rows) + 1);
    unlook(&l);
    free(all);
}

TEST(test_no_fields)
{
    struct looked l;
    look(&l, NULL, 0);
    assert_int_equal(l.fields.count, 0);
    assert_false(l.fields.described);
    assert_ends(&l, 0, 0);
    static const struct row rows[] = {TEXT("xlf-info", "plaquette = 0.5\n", MB | ME)};
    LOOK(&l, rows);
    assert_false(l.fields.described);
    assert_ends(&l, 0, 0);
}
