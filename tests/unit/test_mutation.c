/*
 * test_mutation.c - metadata of all writers, changed at random: whatever comes of it, a parser
 * gives an answer that keeps its promises, and soon. `make stress` does a million; sanitizers
 * watch where B is built with them. SEED=n runs the changes of seed n again.
 */
#include "unit.h"

#include <time.h>

#include "limeildg.h"
#include "xmlread.h"

#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"

static const char *const seeds[] = {
    DECLARATION "<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>8 4 4 4 "
                "</dims><volfmt>0</volfmt></scidacFile>",
    DECLARATION "<scidacRecord><version>1.1</version><date>Fri Nov 20 07:41:53 2026 UTC</date>"
                "<recordtype>2</recordtype><spacetime>4</spacetime><hyperlower>1 0 0 2 "
                "</hyperlower><hyperupper>2 3 3 2 </hyperupper><datatype>QDP_F_Real</datatype>"
                "<precision>F</precision><colors>3</colors><spins>4</spins><typesize>4"
                "</typesize><datacount>2</datacount></scidacRecord>",
    DECLARATION "<scidacChecksum><version>1.0</version><suma>52e387af</suma><sumb>b848b848"
                "</sumb></scidacChecksum>",
    DECLARATION
    "\n<ildgFormat xmlns=\"http://www.lqcd.org/ildg\"\n"
    "            xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n"
    "            xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\">\n"
    "  <version>1.0</version>\n  <field>su3gauge</field>\n  <precision>64</precision>\n"
    "  <lx>4</lx>\n  <ly>4</ly>\n  <lz>4</lz>\n  <lt>4</lt>\n</ildgFormat>",
    DECLARATION "\n<etmcFormat>\n  <field>diracFermion</field>\n  <precision>32</precision>\n"
                "  <flavours>1</flavours>\n  <lx>4</lx>\n  <ly>4</ly>\n  <lz>4</lz>\n"
                "  <lt>4</lt>\n</etmcFormat>",
    DECLARATION "\n<cvcFormat>\n<type>cvc-v-x</type>\n<precision>64</precision>\n"
                "<components>16</components>\n<lx>4</lx>\n<ly>4</ly>\n<lz>4</lz>\n"
                "<lt>8</lt>\n<nconf>100</nconf>\n</cvcFormat>\ndate Fri Nov 20 2026\n",
    "<?xml version=\"1.0\"?>\n<FieldMetaData>\n  <nd>4</nd>\n  <dimension>\n    "
    "<elem>4</elem>\n"
    "    <elem>4</elem>\n    <elem>4</elem>\n    <elem>8</elem>\n  </dimension>\n"
    "  <floating_point>IEEE64BIG</floating_point>\n</FieldMetaData>\n",
    "<?xml version='1.0' encoding='ISO-8859-1'?><!DOCTYPE i:ildgFormat SYSTEM 'i.dtd'>"
    "<i:ildgFormat><!-- \xfc --><i:field>su3gauge</i:field><i:precision>D</i:precision>"
    "<i:lx><![CDATA[4]]></i:lx><i:ly>&#52;</i:ly><i:lz> 4 </i:lz><i:lt>4</i:lt><?p q?>"
    "</i:ildgFormat>",
    "<!DOCTYPE a [<!ENTITY a \"4\"><!ENTITY b \"&a;&a;&a;&a;\">]><a><lx>&b;</lx></a>",
    "lfn://ildg/project/ensemble/conf.0042",
};

/* What a change at random would hardly find. */
static const char *const tokens[] = {
    "<",
    ">",
    "</",
    "/>",
    "&",
    ";",
    "&amp;",
    "&#x41;",
    "&#0;",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<?",
    "?>",
    "<?xml version='1.0'?>",
    "<!DOCTYPE a [",
    "<!ENTITY a 'b'>",
    "]>",
    "&a;",
    "\"",
    "'",
    "=",
    " a='b'",
    "xmlns:",
    ":",
    "<lx>",
    "</lx>",
    "<dims>",
    "<ildgFormat>",
    "<scidacRecord>",
    "<scidacFile>",
    "<scidacChecksum>",
    "<suma>",
    "0x",
    "-1",
    "0",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "99999999999999999999999999",
    "encoding='",
    "UTF-16",
    "ISO-8859-1",
    "windows-1252",
    "\xef\xbb\xbf",
    "\xff\xfe",
    "\xc3",
    "\xe2\x82\xac",
    "\xed\xa0\x80",
    "\n",
    " ",
    "\t",
    "4 4 4 4 4 4 4 4 4",
};

/* ---- chance ---- */

static size_t below(uint64_t *state, size_t n)
{
    return n ? (size_t)(chance(state) % n) : 0;
}

/* ---- changes ---- */

static void cut(struct bytes *b, size_t at, size_t n)
{
    memmove(b->at + at, b->at + at + n, b->n - at - n);
    b->n -= n;
}

static void insert(struct bytes *b, size_t at, const void *data, size_t n)
{
    unsigned char *copy = malloc(n + 1); /* data may be a part of b */
    memcpy(copy, data, n);
    bytes_fill(b, 0, n);
    memmove(b->at + at + n, b->at + at, b->n - n - at);
    memcpy(b->at + at, copy, n);
    free(copy);
}

static void change(struct bytes *b, uint64_t *state)
{
    size_t at = below(state, b->n + 1), n = below(state, b->n - at + 1);
    const char *word = tokens[below(state, COUNT(tokens))];
    switch (below(state, 8)) {
    case 0:
        if (b->n)
            b->at[below(state, b->n)] ^= (unsigned char)(1 << below(state, 8));
        break;
    case 1:
        if (b->n)
            b->at[below(state, b->n)] = (unsigned char)chance(state);
        break;
    case 2:
        cut(b, at, n < 40 ? n : below(state, 40));
        break;
    case 3:
        insert(b, below(state, b->n + 1), b->at + at, n);
        break;
    case 4: /* a word many times, at times very many */
        for (size_t times = chance(state) % 64 ? 1 + below(state, 30) : 1 + below(state, 2000);
             times; times--)
            insert(b, at, word, strlen(word));
        break;
    case 5:
        word = seeds[below(state, COUNT(seeds))];
        insert(b, at, word, below(state, strlen(word) + 1));
        break;
    default:
        insert(b, at, word, strlen(word));
        break;
    }
    if (b->n > 32768)
        b->n = 32768;
}

/* ---- what must hold ---- */

static void check_lattice(const struct limefile_lattice *lattice)
{
    assert_in_range(lattice->dims, 1, LIMEFILE_DIMS_MAX);
    assert_in_range(limefile_lattice_sites(lattice), 1, INT64_MAX);
}

static void check_code(int err)
{
    if (err != LIMEFILE_E_XML && err != LIMEFILE_E_XML_VALUE)
        assert_int_equal(err, 0);
}

static void check_fact(void *context, const char *name, size_t depth, const char *text)
{
    size_t *facts = context;
    assert_true(++*facts <= XMLREAD_ELEMENTS_MAX && *name && depth <= XMLREAD_DEPTH_MAX);
    assert_true(strlen(text) <= XMLREAD_FACT_MAX);
}

static int parse_all(const void *xml, size_t n)
{
    int good = 0, err;
    struct limefile_ildg ildg;
    struct limefile_scidac_file file;
    struct limefile_lattice lattice;
    struct limefile_scidac_record record;
    struct limefile_checksum sum;
    char lfn[LIMEFILE_LFN_MAX];
    check_code(err = limefile_ildg_parse(xml, n, &ildg));
    if (err == 0) {
        check_lattice(&ildg.lattice);
        assert_true(ildg.precision == 32 || ildg.precision == 64);
        assert_true(ildg.field[0] && strlen(ildg.field) < sizeof ildg.field);
        assert_in_range(ildg.flavours, 1, 1000);
        good++;
    }
    check_code(err = limefile_cvc_parse(xml, n, &ildg));
    if (err == 0) {
        check_lattice(&ildg.lattice);
        assert_true(ildg.precision == 32 || ildg.precision == 64);
        assert_in_range(ildg.components, 1, UINT32_MAX);
        good++;
    }
    check_code(err = limefile_scidac_file_parse(xml, n, &file));
    if (err == 0) {
        check_lattice(&file.lattice);
        good++;
    }
    check_code(err = limefile_grid_parse(xml, n, &lattice));
    if (err == 0) {
        check_lattice(&lattice);
        good++;
    }
    check_code(err = limefile_scidac_record_parse(xml, n, &record));
    if (err == 0) {
        uint64_t bytes;
        assert_false(__builtin_mul_overflow(record.typesize, record.datacount, &bytes));
        assert_in_range(bytes, 1, INT64_MAX);
        for (unsigned i = 0; i < record.box_dims; i++)
            assert_true(record.lower[i] <= record.upper[i]);
        good++;
    }
    check_code(err = limefile_checksum_parse(xml, n, &sum));
    good += err == 0;
    size_t facts = 0;
    check_code(err = xmlread_facts(xml, n, check_fact, &facts));
    assert_true(err || facts > 0);
    err = limefile_lfn_parse(xml, n, lfn);
    assert_true(err == LIMEFILE_E_XML_VALUE || (err == 0 && lfn[0] && !strchr(lfn, '\n')));
    return good;
}

/* ---- all of them ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Of all parsers together; *good: one more if one of them has understood it. */
static double time_of(const void *xml, size_t n, uint64_t *good)
{
    double before = seconds();
    *good += parse_all(xml, n) > 0;
    return seconds() - before;
}

static void mutate(uint64_t seed, struct bytes *b)
{
    uint64_t state = seed;
    const char *from = seeds[below(&state, COUNT(seeds))];
    b->n = 0;
    bytes_add(b, from, strlen(from));
    for (size_t times = 1 + below(&state, 1 + below(&state, 6)); times; times--)
        change(b, &state);
}

TEST(test_mutations)
{
    const char *again = getenv("SEED"), *stress = getenv("STRESS");
    uint64_t first = again ? strtoull(again, NULL, 10) : (uint64_t)time(NULL) << 20;
    uint64_t count = again ? 1 : stress && *stress ? 1000000 : 30000, slow_seed = 0, good = 0;
    double slowest = 0;
    size_t slow_bytes = 0;
    struct bytes b = {0};
    for (uint64_t i = 0; i < count; i++) {
        mutate(first + i, &b);
        /* of its own length, so that a sanitizer sees a byte too far */
        unsigned char *exact = malloc(b.n ? b.n : 1);
        memcpy(exact, b.at, b.n);
        double took = time_of(exact, b.n, &good);
        for (uint64_t ignored = 0, times = 0; took > slowest && times < 3; times++) {
            double once_more = time_of(exact, b.n, &ignored); /* a loaded machine hiccups */
            took = once_more < took ? once_more : took;
        }
        free(exact);
        if (took > slowest) {
            slowest = took;
            slow_seed = first + i;
            slow_bytes = b.n;
        }
    }
    print_message("# %llu mutations from seed %llu, %llu still good; the slowest took %.3f ms "
                  "(%zu bytes, seed %llu)\n",
                  (unsigned long long)count, (unsigned long long)first,
                  (unsigned long long)good, slowest * 1e3, slow_bytes,
                  (unsigned long long)slow_seed);
    assert_true(slowest < 0.25); /* six parsers, at most 32 KiB, perhaps sanitized */
    bytes_free(&b);
}
