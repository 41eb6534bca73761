/* test_ildgxml.c - contents of metadata records of all writers, and of invalid ones */
#include "unit.h"

#include <time.h>

#include "limeildg.h"
#include "xmlread.h"

/* ---- real records ---- */

#define ILDG(inner)      "<ildgFormat>" inner "</ildgFormat>"
#define FOUR(x, y, z, t) "<lx>" x "</lx><ly>" y "</ly><lz>" z "</lz><lt>" t "</lt>"
#define GOOD(inner) \
    ILDG("<version>1.0</version><field>su3gauge</field><precision>64</precision>" inner)
#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"

static int ildg(const char *xml, struct limefile_ildg *out)
{
    memset(out, 0xaa, sizeof *out);
    return limefile_ildg_parse(xml, strlen(xml), out);
}

static void assert_ildg(const char *xml, size_t n, unsigned precision, uint64_t x, uint64_t y,
                        uint64_t z, uint64_t t)
{
    struct limefile_ildg f;
    memset(&f, 0xaa, sizeof f);
    int err = limefile_ildg_parse(xml, n, &f);
    if (err)
        print_message("# %s: %.*s\n", limefile_strerror(err), (int)n, xml);
    assert_int_equal(err, 0);
    assert_int_equal(f.precision, precision);
    assert_int_equal(f.lattice.dims, 4);
    assert_int_equal(f.lattice.extent[0], x);
    assert_int_equal(f.lattice.extent[1], y);
    assert_int_equal(f.lattice.extent[2], z);
    assert_int_equal(f.lattice.extent[3], t);
    assert_int_equal(limefile_lattice_sites(&f.lattice), x * y * z * t);
}

static void assert_4448(const char *xml)
{
    assert_ildg(xml, strlen(xml), 64, 4, 4, 4, 8);
}

TEST(test_ildg_values)
{
    struct limefile_ildg f;
    assert_int_equal(ildg(GOOD(FOUR("24", "25", "26", "48")), &f), 0);
    assert_string_equal(f.version, "1.0");
    assert_string_equal(f.field, "su3gauge");
    assert_int_equal(f.flavours, 1);
    assert_int_equal(f.precision, 64);
    assert_int_equal(f.lattice.extent[2], 26);
    assert_int_equal(ildg("<etmcFormat><field>diracFermion</field><precision>32</precision>"
                          "<flavours>2</flavours>" FOUR("4", "4", "4", "8") "</etmcFormat>",
                          &f),
                     0);
    assert_string_equal(f.version, "");
    assert_string_equal(f.field, "diracFermion");
    assert_int_equal(f.flavours, 2);
    assert_int_equal(f.precision, 32);
}

/* Any text may surround the XML and its elements. */
TEST(test_ildg_tolerance)
{
    static const char *const good[] = {
        GOOD(FOUR("4", "4", "4", "8")),
        DECLARATION GOOD(FOUR("4", "4", "4", "8")),
        " \n\t" DECLARATION "\n" GOOD(FOUR("4", "4", "4", "8")) "\r\n\n",
        "\xef\xbb\xbf" DECLARATION GOOD(FOUR("4", "4", "4", "8")),
        "\n\xef\xbb\xbf \n" DECLARATION GOOD(FOUR("4", "4", "4", "8")),
        GOOD(FOUR(" 4 ", "\n4\n", "+4", "0008")),
        "<ildg:ildgFormat xmlns:ildg=\"http://www.lqcd.org/ildg\"><ildg:field>su3gauge"
        "</ildg:field><ildg:precision>64</ildg:precision><ildg:lx>4</ildg:lx><ildg:ly>4"
        "</ildg:ly><ildg:lz>4</ildg:lz><ildg:lt>8</ildg:lt></ildg:ildgFormat>",
        "<i:ildgFormat><i:field>su3gauge</i:field><precision>64</precision>" /* unbound */
        FOUR("4", "4", "4", "8") "</i:ildgFormat>",
        "<?xml version='1.0' encoding='ISO-8859-1'?><!-- J\xfclich -->" GOOD(
            FOUR("4", "4", "4", "8")),
        DECLARATION "<!-- J\xfclich -->" GOOD(FOUR("4", "4", "4", "8")), /* not UTF-8 */
        "<?xml version='1.0' encoding='windows-1252'?><!-- \x80 -->" GOOD(
            FOUR("4", "4", "4", "8")),
        "<?xml version='1.0' encoding='us-ascii'?>" GOOD(FOUR("4", "4", "4", "8")),
        GOOD(FOUR("4", "4", "4", "8") "<more><lx>7</lx><deep><lt>9</lt></deep></more>"),
        GOOD(FOUR("4", "4", "4", "8") "<lx>4</lx>"), /* twice, but equal */
        "<grid><note>ours</note>" GOOD(FOUR("4", "4", "4", "8")) "<lx>9</lx></grid>",
        "<wrap><lx>9</lx>" GOOD(FOUR("4", "4", "4", "8")) "</wrap>",
        "<lattice><field>su3gauge</field><precision>double</precision>" FOUR("4", "4", "4",
                                                                             "8") "</lattice>",
        "<ILDGFORMAT><Field>su3gauge</Field><PRECISION>D</PRECISION>" FOUR("4", "4", "4",
                                                                           "8") "</ILDGFORMAT>",
        "<!DOCTYPE ildgFormat SYSTEM \"/etc/passwd\">" GOOD(FOUR("4", "4", "4", "8")),
        "<!DOCTYPE ildgFormat>" GOOD(FOUR("4", "4", "4", "8")),
        GOOD(FOUR("<![CDATA[4]]>", "&#52;", "<!-- four -->4", "<b>8</b>")),
        GOOD(FOUR("4", "4", "4", "8") "<note>&lt;lx&gt;&amp;</note>"),
        GOOD("<dims>4 4 4 8 </dims>"), /* SIMULATeQCD */
        GOOD(FOUR("4", "4", "4", "8") "<dims>2 2 2 2</dims>"),
    };
    for (size_t i = 0; i < COUNT(good); i++)
        assert_4448(good[i]);
    static const char nuls[] = "\0\0" DECLARATION GOOD(FOUR("4", "4", "4", "8")) "\0\0\n\0";
    assert_ildg(nuls, sizeof nuls, 64, 4, 4, 4, 8);
    static const char buffer[] = DECLARATION GOOD(FOUR("4", "4", "4", "8")) "\0left </over>";
    assert_ildg(buffer, sizeof buffer, 64, 4, 4, 4, 8);
}

TEST(test_precisions)
{
    static const struct {
        const char *word;
        unsigned bits;
    } precisions[] = {
        {"32", 32},     {"64", 64},     {"F", 32},         {"D", 64},         {"f", 32},
        {"single", 32}, {"double", 64}, {"65", 0},         {"0", 0},          {"", 0},
        {"-32", 0},     {"3 2", 0},     {"IEEE64BIG", 64}, {"IEEE32BIG", 32}, {"Float", 32},
        {"16", 0},      {"I", 0},       {"128", 0},        {"64 ", 64},
    };
    for (size_t i = 0; i < COUNT(precisions); i++) {
        char xml[400];
        struct limefile_ildg f;
        snprintf(
            xml, sizeof xml,
            ILDG("<field>su3gauge</field><precision>%s</precision>" FOUR("1", "2", "3", "4")),
            precisions[i].word);
        assert_int_equal(ildg(xml, &f), precisions[i].bits ? 0 : LIMEFILE_E_XML_VALUE);
        if (precisions[i].bits)
            assert_int_equal(f.precision, precisions[i].bits);
    }
}

TEST(test_invalid_ildg)
{
    static const char *const bad[] = {
        "<ildgFormat/>",
        GOOD(FOUR("0", "4", "4", "8")),
        GOOD(FOUR("-4", "4", "4", "8")),
        GOOD(FOUR("4", "4", "4", "")),
        GOOD(FOUR("4.0", "4", "4", "8")),
        GOOD(FOUR("0x4", "4", "4", "8")),
        GOOD(FOUR("4 4", "4", "4", "8")),
        GOOD(FOUR("four", "4", "4", "8")),
        GOOD("<lx>4</lx><ly>4</ly><lz>4</lz>"),
        GOOD(FOUR("4", "4", "4", "8") "<lx>5</lx>"),
        GOOD(FOUR("9223372036854775807", "2", "1", "1")),
        GOOD(FOUR("9223372036854775808", "1", "1", "1")),
        GOOD(FOUR("18446744073709551617", "1", "1", "1")),
        GOOD(FOUR("99999999999999999999999999", "1", "1", "1")),
        GOOD(FOUR("65536", "65536", "65536", "65536")),
        GOOD(FOUR("55109", "55109", "55109", "55109")), /* the product exceeds 2^63 */
        ILDG("<precision>64</precision>" FOUR("4", "4", "4", "8")),
        ILDG("<field></field><precision>64</precision>" FOUR("4", "4", "4", "8")),
        ILDG("<field>su3gauge</field>" FOUR("4", "4", "4", "8")),
        "<a>" GOOD(FOUR("4", "4", "4", "")) FOUR("4", "4", "4", "8") "</a>",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct limefile_ildg f, before;
        memset(&before, 0xaa, sizeof before);
        int err = ildg(bad[i], &f);
        if (err != LIMEFILE_E_XML_VALUE)
            print_message("# %d: %s\n", err, bad[i]);
        assert_int_equal(err, LIMEFILE_E_XML_VALUE);
        assert_memory_equal(&f, &before, sizeof f); /* unchanged */
    }
    struct limefile_ildg f;
    assert_int_equal(ildg(GOOD(FOUR("55108", "55108", "55108", "55108")), &f), 0);
    assert_int_equal(ildg(GOOD(FOUR("9223372036854775807", "1", "1", "1")), &f), 0);
}

#define BOMB                                                                            \
    "<!DOCTYPE a [<!ENTITY a \"4\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>" GOOD( \
        FOUR("&b;", "4", "4", "8"))

TEST(test_not_xml)
{
    static const char *const bad[] = {
        "",
        " \n ",
        "text",
        "<",
        "<ildgFormat>",
        "<ildgFormat></ildgformat>",
        GOOD(FOUR("4", "4", "4", "8")) "<again/>",
        GOOD(FOUR("4", "4", "4", "8")) "text",
        GOOD(FOUR("&four;", "4", "4", "8")),
        GOOD(FOUR("&#0;", "4", "4", "8")),
        GOOD(FOUR("\x01", "4", "4", "8")),
        "<?xml version='2.0' encoding='UTF-8'" GOOD(FOUR("4", "4", "4", "8")),
        BOMB,
        "<!DOCTYPE a [<!ENTITY % p SYSTEM \"file:///etc/passwd\"> %p;]>" GOOD(
            FOUR("4", "4", "4", "8")),
        "<!DOCTYPE a [<!ENTITY x SYSTEM \"/dev/zero\">]>" GOOD(FOUR("&x;", "4", "4", "8")),
        "<!DOCTYPE a SYSTEM \"a.dtd\" [<!ATTLIST a b CDATA \"c\">]>" GOOD(
            FOUR("4", "4", "4", "8")),
        "<!DOCTYPE a []>" GOOD(FOUR("4", "4", "4", "8")),
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct limefile_ildg f;
        int err = ildg(bad[i], &f);
        if (err != LIMEFILE_E_XML)
            print_message("# %d: %s\n", err, bad[i]);
        assert_int_equal(err, LIMEFILE_E_XML);
    }
    struct limefile_ildg f;
    assert_int_equal(limefile_ildg_parse(NULL, 0, &f), LIMEFILE_E_XML);
    assert_int_equal(limefile_ildg_parse("\0\0\0", 3, &f), LIMEFILE_E_XML);
}

/* ---- SciDAC ---- */

static int scidac_file(const char *xml, struct limefile_scidac_file *out)
{
    return limefile_scidac_file_parse(xml, strlen(xml), out);
}

TEST(test_scidac_file)
{
    struct limefile_scidac_file f;
    assert_int_equal(scidac_file(DECLARATION "<scidacFile><version>1.1</version><spacetime>4"
                                             "</spacetime><dims>8 4 4 16 </dims><volfmt>0"
                                             "</volfmt></scidacFile>",
                                 &f),
                     0);
    assert_int_equal(f.lattice.dims, 4);
    assert_int_equal(f.lattice.extent[0], 8);
    assert_int_equal(f.lattice.extent[3], 16);
    assert_int_equal(f.volfmt, 0);
    assert_int_equal(
        scidac_file("<scidacFile><dims>2, 3,5</dims><volfmt>1</volfmt></scidacFile>", &f), 0);
    assert_int_equal(f.lattice.dims, 3);
    assert_int_equal(f.lattice.extent[2], 5);
    assert_int_equal(f.volfmt, 1);
    assert_int_equal(scidac_file("<scidacFile><dims><elem>2</elem><elem>3</elem></dims>"
                                 "</scidacFile>",
                                 &f),
                     0);
    assert_int_equal(f.lattice.dims, 2);
    assert_int_equal(scidac_file("<scidacFile><dims>1 2 3 4 5 6 7 8</dims></scidacFile>", &f),
                     0);
    assert_int_equal(f.lattice.dims, 8);
    static const char *const bad[] = {
        "<scidacFile/>",
        "<scidacFile><dims></dims></scidacFile>",
        "<scidacFile><dims>4 4 0 4</dims></scidacFile>",
        "<scidacFile><dims>4 4 -4 4</dims></scidacFile>",
        "<scidacFile><dims>4x4</dims></scidacFile>",
        "<scidacFile><dims>1 2 3 4 5 6 7 8 9</dims></scidacFile>",
        "<scidacFile><spacetime>4</spacetime><dims>4 4 4</dims></scidacFile>",
        "<scidacFile><dims>4294967296 4294967296</dims></scidacFile>",
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(scidac_file(bad[i], &f), LIMEFILE_E_XML_VALUE);
}

#define RECORD(inner) "<scidacRecord>" inner "</scidacRecord>"
#define SITE          "<typesize>72</typesize><datacount>4</datacount>"

static int scidac_record(const char *xml, struct limefile_scidac_record *out)
{
    return limefile_scidac_record_parse(xml, strlen(xml), out);
}

TEST(test_scidac_record)
{
    struct limefile_scidac_record r;
    assert_int_equal(
        scidac_record(RECORD("<version>1.1</version><date>Fri Nov 20 07:41:53 2026 UTC</date>"
                             "<recordtype>0</recordtype><datatype>QDP_F3_ColorMatrix</datatype>"
                             "<precision>F</precision><colors>3</colors><spins>4</spins>" SITE),
                      &r),
        0);
    assert_int_equal(r.recordtype, LIMEFILE_FIELD);
    assert_string_equal(r.datatype, "QDP_F3_ColorMatrix");
    assert_string_equal(r.date, "Fri Nov 20 07:41:53 2026 UTC");
    assert_int_equal(r.precision, 32);
    assert_int_equal(r.colors, 3);
    assert_int_equal(r.spins, 4);
    assert_int_equal(r.typesize, 72);
    assert_int_equal(r.datacount, 4);
    assert_int_equal(scidac_record(RECORD("<precision>I</precision>" SITE), &r), 0);
    assert_int_equal(r.precision, 0);
    assert_int_equal(r.recordtype, LIMEFILE_FIELD);
    assert_int_equal(r.colors, 0);
    assert_string_equal(r.datatype, "");
    assert_int_equal(scidac_record(RECORD("<globaldata>1</globaldata>" SITE), &r), 0);
    assert_int_equal(r.recordtype, LIMEFILE_GLOBAL); /* version 1.0 */
    assert_int_equal(
        scidac_record(RECORD("<recordtype>2</recordtype><spacetime>4</spacetime><hyperlower>1 "
                             "0 0 2 </hyperlower><hyperupper>2 3 3 2 </hyperupper>" SITE),
                      &r),
        0);
    assert_int_equal(r.box_dims, 4);
    assert_int_equal(r.lower[3], 2);
    assert_int_equal(r.upper[1], 3);
}

TEST(test_invalid_scidac_record)
{
    static const char *const bad[] = {
        RECORD(""),
        RECORD("<typesize>72</typesize>"),
        RECORD("<datacount>4</datacount>"),
        RECORD("<typesize>0</typesize><datacount>4</datacount>"),
        RECORD("<typesize>72</typesize><datacount>-4</datacount>"),
        RECORD("<typesize>4294967296</typesize><datacount>4294967296</datacount>"),
        RECORD("<recordtype>3</recordtype>" SITE),
        RECORD("<globaldata>2</globaldata>" SITE),
        RECORD("<recordtype>2</recordtype>" SITE),
        RECORD("<recordtype>2</recordtype><hyperlower>0 0</hyperlower>" SITE),
        RECORD("<recordtype>2</recordtype><hyperlower>0 2</hyperlower><hyperupper>1 1"
               "</hyperupper>" SITE),
        RECORD("<recordtype>2</recordtype><hyperlower>0 0</hyperlower><hyperupper>1 1 1"
               "</hyperupper>" SITE),
        RECORD("<recordtype>2</recordtype><hyperlower>0</hyperlower><hyperupper>"
               "18446744073709551615</hyperupper>" SITE),
        RECORD("<recordtype>2</recordtype><hyperlower>0 0</hyperlower><hyperupper>4294967295 "
               "4294967295</hyperupper>" SITE),
        RECORD("<recordtype>2</recordtype><spacetime>3</spacetime><hyperlower>0 0</hyperlower>"
               "<hyperupper>1 1</hyperupper>" SITE),
    };
    struct limefile_scidac_record r;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(scidac_record(bad[i], &r), LIMEFILE_E_XML_VALUE);
}

/* An optional number that cannot be read counts as missing, and its name is reported. */
TEST(test_optional_elements)
{
    static const char *const texts[] = {
        "", " ", "x", "-1", "3.0", "3 3", "99999999999999999999"};
    static const char *const of_record[] = {"recordtype", "globaldata", "colors", "spins"};
    static const char *const of_file[] = {"spacetime", "volfmt"};
    static const char *const of_format[] = {"flavours"};
    const struct {
        const char *before, *after, *const *names;
        size_t count;
    } kinds[] = {
        {"<scidacRecord>", SITE "</scidacRecord>", of_record, COUNT(of_record)},
        {"<scidacFile>", "<dims>4 4 4 8</dims></scidacFile>", of_file, COUNT(of_file)},
        {"<etmcFormat><field>f</field><precision>64</precision>",
         FOUR("4", "4", "4", "8") "</etmcFormat>", of_format, COUNT(of_format)},
    };
    for (size_t kind = 0; kind < COUNT(kinds); kind++)
        for (size_t i = 0; i < kinds[kind].count * COUNT(texts); i++) {
            const char *name = kinds[kind].names[i / COUNT(texts)];
            const char *text = texts[i % COUNT(texts)];
            struct limefile_scidac_record record = {.precision = 0};
            struct limefile_scidac_file file = {.volfmt = 9};
            struct limefile_ildg format = {.precision = 0};
            char xml[512];
            size_t n = (size_t)snprintf(xml, sizeof xml, "%s<%s>%s</%s>%s", kinds[kind].before,
                                        name, text, name, kinds[kind].after);
            int err = kind == 0   ? limefile_scidac_record_parse(xml, n, &record)
                      : kind == 1 ? limefile_scidac_file_parse(xml, n, &file)
                                  : limefile_ildg_parse(xml, n, &format);
            const char *ignored = kind == 0   ? record.ignored
                                  : kind == 1 ? file.ignored
                                              : format.ignored;
            assert_int_equal(err, 0);
            assert_non_null(ignored);
            assert_string_equal(ignored, name);
            assert_int_equal(record.recordtype, LIMEFILE_FIELD);
            assert_int_equal(record.colors + record.spins, 0);
            assert_int_equal(file.volfmt, kind == 1 ? 0 : 9);
            assert_int_equal(format.flavours, kind == 2);
        }
    struct limefile_scidac_record record;
    assert_int_equal(scidac_record(RECORD("<colors>3</colors>" SITE), &record), 0);
    assert_null(record.ignored);
}

/* A long text is cut between characters. */
TEST(test_long_words)
{
    char xml[800] = "<scidacRecord>" SITE "<datatype>";
    struct limefile_scidac_record r;
    for (int i = 0; i < 62; i++)
        strcat(xml, "x");
    strcat(xml, "\xc3\xa9</datatype><date>a\tb\n\n c</date></scidacRecord>");
    assert_int_equal(scidac_record(xml, &r), 0);
    assert_int_equal(strlen(r.datatype), 62);
    assert_int_equal(r.datatype[61], 'x');
    assert_string_equal(r.date, "a b c");
}

/* ---- checksums and names ---- */

static int sum_of(const char *suma, const char *sumb, struct limefile_checksum *out)
{
    char xml[400];
    int n = snprintf(xml, sizeof xml,
                     "<scidacChecksum><version>1.0</version><suma>%s</suma><sumb>%s</sumb>"
                     "</scidacChecksum>",
                     suma, sumb);
    return limefile_checksum_parse(xml, (size_t)n, out);
}

TEST(test_checksum)
{
    struct limefile_checksum sum;
    assert_int_equal(sum_of("f17ba6db", "EBC2D919", &sum), 0);
    assert_int_equal(sum.suma, 0xf17ba6db);
    assert_int_equal(sum.sumb, 0xebc2d919);
    assert_int_equal(sum_of("0x1f", " 0XAb ", &sum), 0);
    assert_int_equal(sum.suma, 0x1f);
    assert_int_equal(sum.sumb, 0xab);
    assert_int_equal(sum_of("0", "00000000000f17ba6db", &sum), 0);
    assert_int_equal(sum.suma, 0);
    assert_int_equal(sum.sumb, 0xf17ba6db);
    static const char *const bad[] = {"",      "0x",        "g",         "-1", "1 2",
                                      "0x0x1", "123456789", "ffffffff0", "@A", "0x g"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(sum_of(bad[i], "1", &sum), LIMEFILE_E_XML_VALUE);
        assert_int_equal(sum_of("1", bad[i], &sum), LIMEFILE_E_XML_VALUE);
    }
    static const char half[] = "<scidacChecksum><suma>1</suma></scidacChecksum>";
    assert_int_equal(limefile_checksum_parse(half, sizeof half, &sum), LIMEFILE_E_XML_VALUE);
}

TEST(test_checksum_xml)
{
    static const char qio[] = DECLARATION
        "<scidacChecksum><version>1.0</version><suma>52e387af</suma><sumb>848b848</sumb>"
        "</scidacChecksum>";
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    struct limefile_checksum sum = {0x52e387af, 0x0848b848}, back;
    assert_int_equal(limefile_checksum_xml(&sum, xml), sizeof qio - 1);
    assert_string_equal(xml, qio);
    assert_int_equal(limefile_checksum_parse(xml, strlen(xml), &back), 0);
    assert_int_equal(back.suma, sum.suma);
    assert_int_equal(back.sumb, sum.sumb);
}

TEST(test_lfn)
{
    char lfn[LIMEFILE_LFN_MAX], name[LIMEFILE_LFN_MAX + 1];
    assert_int_equal(limefile_lfn_parse("\0 \r\nlfn://test/lfn\n\0\0", 20, lfn), 0);
    assert_string_equal(lfn, "lfn://test/lfn");
    assert_int_equal(limefile_lfn_parse("with a space", 12, lfn), 0);
    assert_string_equal(lfn, "with a space");
    memset(name, 'x', sizeof name);
    assert_int_equal(limefile_lfn_parse(name, LIMEFILE_LFN_MAX - 1, lfn), 0);
    assert_int_equal(limefile_lfn_parse(name, LIMEFILE_LFN_MAX, lfn), LIMEFILE_E_XML_VALUE);
    assert_int_equal(limefile_lfn_parse(NULL, 0, lfn), LIMEFILE_E_XML_VALUE);
    assert_int_equal(limefile_lfn_parse(" \0\n", 3, lfn), LIMEFILE_E_XML_VALUE);
    assert_int_equal(limefile_lfn_parse("a\0b", 3, lfn), LIMEFILE_E_XML_VALUE);
    assert_int_equal(limefile_lfn_parse("a\x1b[2Jb", 6, lfn), LIMEFILE_E_XML_VALUE);
    assert_int_equal(limefile_lfn_parse("a\nb", 3, lfn), LIMEFILE_E_XML_VALUE);
    assert_int_equal(limefile_lfn_parse("a\x7f"
                                        "b",
                                        3, lfn),
                     LIMEFILE_E_XML_VALUE);
}

/* ---- any XML ---- */

static void keep_fact(void *context, const char *name, size_t depth, const char *text)
{
    struct bytes *b = context;
    char line[200];
    int n = snprintf(line, sizeof line, "%s@%d=%.100s;", name, (int)depth, text);
    bytes_add(b, line, (size_t)n);
}

static void facts(const char *xml, int code, const char *want)
{
    struct bytes b = {0};
    assert_int_equal(xmlread_facts(xml, strlen(xml), keep_fact, &b), code);
    bytes_add(&b, "", 1);
    assert_string_equal((char *)b.at, want);
    bytes_free(&b);
}

TEST(test_facts)
{
    facts("<title> of all </title>", 0, "title@1=of all;");
    facts("<a>x<b>1</b><c:d> 2\n3 </c:d><e/><f><g>4</g>y</f></a>", 0,
          "b@2=1;d@2=2\n3;e@2=;g@3=4;");
    facts("<n:usqcdInfo xmlns:n='x'><n:info><![CDATA[A = 1\nB = 2]]></n:info></n:usqcdInfo>", 0,
          "info@2=A = 1\nB = 2;");
    facts("<a><b>1</b><c></a>", LIMEFILE_E_XML, "b@2=1;");
    facts("<a:><:/></a:>", 0, ":@2=;");
    facts("text", LIMEFILE_E_XML, "");
    facts("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", LIMEFILE_E_XML, "");
}

/* expat also ends an empty element that was refused. */
TEST(test_facts_beyond_the_limit)
{
    char xml[XMLREAD_DEPTH_MAX * 3 + 8] = "";
    for (int i = 0; i < XMLREAD_DEPTH_MAX; i++)
        strcat(xml, "<a>");
    strcat(xml, "<b/>");
    facts(xml, LIMEFILE_E_XML, "");
    facts(xml + 3, LIMEFILE_E_XML, "b@64=;");
}

/* ---- large, deep or slow documents ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void repeat(struct bytes *b, const char *text, size_t upto)
{
    size_t n = strlen(text);
    while (b->n + n <= upto)
        bytes_add(b, text, n);
}

/* Parses head, n bytes of bodies and tail; returns the result and checks the time. */
static int blown_up(const char *head, const char *body, const char *tail, size_t n)
{
    struct bytes b = {0};
    struct limefile_ildg f;
    bytes_add(&b, head, strlen(head));
    repeat(&b, body, n - strlen(tail));
    bytes_add(&b, tail, strlen(tail));
    double before = seconds();
    int err = limefile_ildg_parse(b.at, b.n, &f);
    double took = seconds() - before;
    if (took > 1)
        print_message("# %s...: %zu bytes take %.3f s\n", body, b.n, took);
    assert_true(took < 4); /* with sanitizers; 20 ms without */
    bytes_free(&b);
    return err;
}

TEST(test_limits)
{
    size_t most = LIMEFILE_XML_BYTES_MAX;
    const char *head = "<ildgFormat><field>su3gauge</field><precision>64</precision>";
    const char *tail = FOUR("4", "4", "4", "8") "</ildgFormat>";
    assert_int_equal(blown_up(head, " ", tail, most), 0);
    assert_int_equal(blown_up(head, "long text ", tail, most), 0);
    assert_int_equal(blown_up(head, " ", tail, most + 1), LIMEFILE_E_XML);
    assert_int_equal(blown_up(head, "<a/>", tail, most), LIMEFILE_E_XML); /* elements */
    assert_int_equal(blown_up(head, "<a/>", tail, 19000 * 4), 0);
    assert_int_equal(blown_up(head, "<a>", tail, most), LIMEFILE_E_XML); /* depth */
    assert_int_equal(blown_up(head, "<lx>4</lx>", tail, 50000), 0);
    assert_int_equal(blown_up("<lx>", "4", "</lx>", most), LIMEFILE_E_XML_VALUE);
    assert_int_equal(
        blown_up("<ildgFormat><field>", "x",
                 "</field><precision>64</precision>" FOUR("4", "4", "4", "8") "</ildgFormat>",
                 most),
        LIMEFILE_E_XML_VALUE);
}

/* One megabyte of any form. */
TEST(test_no_slow_case)
{
    static const char *const cases[][3] = {
        {"<a ", "b='c' ", "/>"},
        {"<a ", "b", "='c'/>"},
        {"<a b='", "&lt;", "'/>"},
        {"<a b='", "\n", "'/>"},
        {"<a>", "&amp;", "</a>"},
        {"<a>", "&#65;", "</a>"},
        {"<a>", "]", "</a>"},
        {"<a>", "]]", "></a>"},
        {"<a><![CDATA[", "]]", "]]></a>"},
        {"<a>", "<![CDATA[x]]>", "</a>"},
        {"<a><!--", " - ", "--></a>"},
        {"<a>", "<!---->", "</a>"},
        {"<a>", "<?p?>", "</a>"},
        {"<a><?p", " ?", "?></a>"},
        {"<a>", "\r", "</a>"},
        {"<a>", "\r\n", "</a>"},
        {"<a>", "\xc3\xa9", "</a>"},
        {"<a>", "\xe9", "</a>"},
        {"<", "a", "/>"},
        {"<", "a:", "a/>"},
        {"<a", " ", "/>"},
        {"<!DOCTYPE a SYSTEM '", "a", "'><a/>"},
        {"<!DOCTYPE a PUBLIC '", " ", "' 'b'><a/>"},
        {"<!DOCTYPE a [", "<!ELEMENT a ANY>", "]><a/>"},
        {"<!DOCTYPE a [<!ELEMENT a (", "(", "]><a/>"},
        {"<?xml version='1.0' encoding='", "x", "'?><a/>"},
        {"<?xml version='1.0'", " ", "?><a/>"},
        {"<a>", "<", "</a>"},
        {"<a>", "&", "</a>"},
        {"", "<", ""},
        {"", "\n", "<a/>"},
        {"<dims>", "4 ", "</dims>"},
        {"<scidacFile><dims>", "<e>4</e>", "</dims></scidacFile>"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        blown_up(cases[i][0], cases[i][1], cases[i][2], LIMEFILE_XML_BYTES_MAX);
    struct bytes b = {0}; /* attributes and elements that all differ */
    char text[64];
    struct limefile_ildg f;
    bytes_add(&b, "<a", 2);
    for (int i = 0; b.n < LIMEFILE_XML_BYTES_MAX - 64; i++)
        bytes_add(&b, text, (size_t)snprintf(text, sizeof text, " a%d=''", i));
    bytes_add(&b, "/>", 2);
    double before = seconds();
    assert_int_equal(limefile_ildg_parse(b.at, b.n, &f), LIMEFILE_E_XML_VALUE);
    assert_true(seconds() - before < 4);
    bytes_free(&b);
}
