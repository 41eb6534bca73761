/* test_fields.c - which records of a container belong together, and what they describe */
#include "unit.h"

#include "limeildg.h"

/* ---- containers from a table ---- */

enum { ROWS_MAX = 20 };

struct row {
    const char *type,
        *data; /* data NULL: `n` bytes, but none after the header of a `cut` one */
    size_t n;
    unsigned flags;
    bool cut;
};

#define DATA(type, n, flags)        \
    {                               \
        type, NULL, n, flags, false \
    }
#define TEXT(type, text, flags)                    \
    {                                              \
        type, text, sizeof(text) - 1, flags, false \
    }

#define CUT(type, n, flags)        \
    {                              \
        type, NULL, n, flags, true \
    }

static struct bytes build(const struct row *rows, size_t count)
{
    struct bytes b = {0};
    for (size_t i = 0; i < count; i++) {
        if (rows[i].cut) {
            bytes_header(&b, rows[i].type, rows[i].n, rows[i].flags);
            continue;
        }
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

/* A container and the fields that fields.c finds in it. */
struct field_test {
    struct bytes bytes;
    struct limefile_memory memory;
    struct limefile_index *index;
    struct limefile_fields fields;
};

static void open_field_test(struct field_test *l, const struct row *rows, size_t count)
{
    *l = (struct field_test){.bytes = build(rows, count)};
    limefile_memory_borrow(&l->memory, l->bytes.at, l->bytes.n);
    l->index = index_of(&l->memory.source);
    assert_int_equal(limefile_fields_build(&l->memory.source, l->index, &l->fields), 0);
}

static void close_field_test(struct field_test *l)
{
    limefile_fields_release(&l->fields);
    limefile_index_free(l->index);
    bytes_free(&l->bytes);
}

/* ---- the findings as text, without defaults, zeros and unknown values ---- */

struct text {
    char at[2000];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    text->n += (size_t)vsnprintf(text->at + text->n, sizeof text->at - text->n, format, args);
    va_end(args);
    assert_true(text->n < sizeof text->at);
}

static void add_number(struct text *text, const char *name, uint64_t number)
{
    if (number)
        add(text, "%s %llu", name, (unsigned long long)number);
}

static void add_place(struct text *text, const char *before, const uint64_t *coordinate,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(text, "%s%llu", i ? " " : before, (unsigned long long)coordinate[i]);
}

/* Adds a line for a field: its kind, its sites, the records that describe it. */
static void add_field(struct text *text, const struct limefile_field *f)
{
    static const char *const kinds[] = {"unknown", "gauge",  "propagator",
                                        "source",  "scidac", "global"};
    struct limefile_field as;
    unsigned readings = 0;
    while (limefile_field_layout(f, readings, &as))
        readings++;
    add(text, "%d: %s%s%s", (int)f->record.ordinal, kinds[f->kind], *f->name ? " " : "",
        f->name);
    add_number(text, "", f->precision);
    add_place(text, ", ", f->lattice.extent, f->lattice.dims);
    if (f->is_box) {
        add_place(text, f->is_checkerboard ? ", half " : ", box ", f->lower, f->lattice.dims);
        add_place(text, " - ", f->upper, f->lattice.dims);
    }
    add_number(text, ", sites", f->sites);
    add_number(text, " of", f->site_bytes);
    if (f->expected != f->sites * f->site_bytes)
        add(text, ", expected %d", (int)f->expected);
    add_number(text, ", format", f->format_ordinal);
    add_number(text, ", record", f->private_ordinal);
    add_number(text, ", file", f->by_file);
    add_number(text, ", lfn", f->lfn_ordinal);
    add_number(text, ", sum", f->checksum_ordinal);
    if (f->has_checksum)
        add(text, " (%x %x)", f->checksum.suma, f->checksum.sumb);
    if (readings != limefile_field_is_summable(f))
        add(text, ", %u readings", readings);
    add(text, "%s%s\n", f->descriptions_differ ? ", descriptions_differ" : "",
        limefile_field_is_summable(f) ? "" : ", not summable");
}

/* Adds a line for a finding: its record, the actual and the expected value. */
static void add_finding(struct text *text, const struct limefile_finding *finding,
                        const struct limefile_record *record)
{
    add(text, "%s at %llu", limefile_error_word(finding->code),
        (unsigned long long)finding->ordinal);
    add_number(text, " +", finding->offset - record->header_offset);
    if (finding->code == LIMEFILE_D_XML)
        add(text, ", %s", limefile_error_word(-(int)finding->have));
    else if (finding->have || finding->want)
        add(text, ", %d instead of %d", (int)finding->have, (int)finding->want);
    add(text, "\n");
}

static struct text describe(const struct limefile_index *index,
                            const struct limefile_fields *fields)
{
    struct text text = {.at = ""};
    struct limefile_field f, same;
    struct limefile_finding finding;
    struct limefile_record record;
    uint64_t before = 0;
    add(&text, "%s", fields->described ? "" : "nothing described\n");
    if (fields->lfn_ordinal)
        add(&text, "%s by %d\n", fields->lfn, (int)fields->lfn_ordinal);
    for (size_t i = 0; i < fields->count; i++) {
        limefile_fields_get(fields, i, &f);
        assert_true(limefile_fields_find(fields, f.record.ordinal, &same));
        assert_int_equal(same.record.ordinal, f.record.ordinal);
        assert_string_equal(same.name, f.name);
        add_field(&text, &f);
    }
    assert_false(limefile_fields_find(fields, 0, &f));
    assert_false(limefile_fields_find(fields, limefile_index_count(index) + 1, &f));
    for (size_t i = 0; limefile_fields_finding(fields, i, &finding); i++) {
        assert_true(finding.offset >= before);
        before = finding.offset;
        assert_int_equal(limefile_index_get(index, finding.ordinal, &record), 0);
        add_finding(&text, &finding, &record);
    }
    return text;
}

static void assert_described(const char *name, const struct row *rows, size_t count,
                             const char *want)
{
    struct field_test l;
    open_field_test(&l, rows, count);
    struct text text = describe(l.index, &l.fields);
    if (strcmp(text.at, want) != 0)
        fail_msg("%s:\n%s\ninstead of\n%s", name, text.at, want);
    close_field_test(&l);
}

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
#define CVC(inner)                                                                \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<cvcFormat>\n" inner             \
    "<precision>64</precision>\n<lx>2</lx>\n<ly>2</ly>\n<lz>2</lz>\n<lt>2</lt>\n" \
    "</cvcFormat>"
#define CVC_TYPE "<type>cvc-v-x</type>\n<components>16</components>\n"
#define NAMED(name)                                                                      \
    "<scidacRecord>\n<version>1</version>\n<recordtype>0</recordtype>\n<datatype>" name  \
    "</datatype>\n<precision>D</precision>\n<colors>1</colors>\n<spins>1</spins>\n" SITE \
    "</scidacRecord>\n"
#define GRID(dims) "<FieldMetaData><nd>0</nd><dimension>" dims "</dimension></FieldMetaData>"
#define E(n)       "<elem>" #n "</elem>\n"
#define BOX(lower, upper) \
    RECORD_XML(2, "<hyperlower>" lower "</hyperlower><hyperupper>" upper "</hyperupper>" SITE)
#define GROUP(name)                                                                         \
    "<ildgFormat><field>" name "</field><precision>32</precision><lx>2</lx><ly>2</ly><lz>2" \
    "</lz><lt>2</lt></ildgFormat>"

enum { GAUGE_2222 = 16 * 288, SPINOR_2222 = 16 * 96 };

/* ---- tables of containers ---- */

static const struct {
    const char *name;
    struct row rows[ROWS_MAX];
    const char *want;
} samples[] = {
    {"tmLQCD: a record with its checksum for each flavour, in messages of their own",
     {
         TEXT("propagator-type", "DiracFermion_Sink", MB | ME),
         TEXT("etmc-propagator-format", ETMC(32, 2), MB | ME),
         DATA("scidac-binary-data", SPINOR_2222, MB), TEXT("scidac-checksum", SUM(1, 2), ME),
         DATA("scidac-binary-data", SPINOR_2222, MB), TEXT("scidac-checksum", SUM(3, 4), ME),
         DATA("scidac-binary-data", SPINOR_2222 + 8, MB | ME), /* another length */
     },
     "3: propagator diracFermion 32, 2 2 2 2, sites 16 of 96, format 2, sum 4 (1 2)\n"
     "5: propagator diracFermion 32, 2 2 2 2, sites 16 of 96, format 2, sum 6 (3 4)\n"
     "7: unknown, not summable\n"},
    {"every record a message, the source before the propagator",
     {
         TEXT("propagator-type", "DiracFermion_Source_Sink_Pairs", MB | ME),
         TEXT("etmc-source-format", ETMC(64, 1), MB | ME),
         DATA("scidac-binary-data", 2 * SPINOR_2222, MB | ME),
         TEXT("scidac-checksum", SUM(1, 2), MB | ME),
         TEXT("quda-propagator-format", ETMC(32, 1), MB | ME),
         DATA("scidac-binary-data", SPINOR_2222, MB | ME),
         TEXT("scidac-checksum", SUM(3, 4), MB | ME),
     },
     "3: source diracFermion 64, 2 2 2 2, sites 16 of 192, format 2, sum 4 (1 2)\n"
     "6: propagator diracFermion 32, 2 2 2 2, sites 16 of 96, format 5, sum 7 (3 4)\n"},
    {"nissa: the format states a spinor, the type a field with colours only",
     {
         TEXT("propagator-type", "ColorOnly", MB | ME),
         TEXT("stag-propagator-format", ETMC(64, 1), MB | ME),
         DATA("scidac-binary-data", 16 * 48, MB | ME),
         TEXT("etmc-propagator-format", ETMC(64, 1), MB | ME),
         DATA("scidac-binary-data", 2 * SPINOR_2222, MB | ME),
     },
     "3: propagator diracFermion 64, 2 2 2 2, sites 16 of 48, format 2\n"
     "5: propagator diracFermion 64, 2 2 2 2, sites 16 of 192, format 4\n"},
    {"cvc: any number of components, and a date behind the document",
     {
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
     },
     "2: scidac cvc-v-x 64, 2 2 2 2, sites 16 of 256, format 1, sum 3 (1 2)\n"
     "5: scidac cvc-v-x 64, 2 2 2 2, sites 16 of 256, format 4\n"
     "7: scidac 64, 2 2 2 2, sites 16 of 192, format 6\n"
     "9: propagator diracFermion 32, 2 2 2 2, sites 16 of 96, format 8\n"
     "11: unknown, format 10, not summable\n"
     "metadata at 10 + 144, xml-value\n"},
    {"Grid: any field is ildg-binary-data; a configuration has its format",
     {
         TEXT("scidac-private-file-xml", FILE_XML("2 \n2 \n2 \n2"), MB | ME),
         TEXT("grid-format", "<FieldMetaData/>", MB),
         TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), 0),
         DATA("ildg-binary-data", 16 * 8, 0),
         TEXT("FieldNormMetaData", "<FieldNormMetaData/>", 0),
         TEXT("scidac-checksum", SUM(1, 2), ME),
         TEXT("scidac-private-record-xml", NAMED("QDP_D3_ColorMatrix"), MB),
         DATA("ildg-binary-data", 16 * 8, ME),
     },
     "4: scidac GRID_D_Complex 64, 2 2 2 2, sites 16 of 8, record 3, file 1, sum 6 (1 2)\n"
     "8: scidac QDP_D3_ColorMatrix 64, 2 2 2 2, sites 16 of 8, record 7, file 1\n"
     "format-missing at 8\n"},
    {"Grid: the lattice in each message; a checkerboard and a tensor by their length",
     {
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
         TEXT("grid-format", GRID(E(3) E(2) E(2) E(2)), MB), /* 3 can't be is_checkerboard */
         TEXT("scidac-private-record-xml", NAMED("GRID_D_Complex"), 0),
         DATA("ildg-binary-data", 12 * 8, ME),
     },
     "4: scidac GRID_D_Complex 64, 4 4 4 8, sites 512 of 8, record 3, file 2\n"
     "7: scidac GRID_D_Complex 64, 4 4 4 8, half 0 0 0 0 - 1 3 3 7, sites 256 of 8, record 6, "
     "file 5\n"
     "10: scidac GRID_D_Complex 64, 3 2 2 2 2, half 0 0 0 0 0 - 2 0 1 1 1, sites 24 of 8, "
     "record 9, file 8\n"
     "13: scidac GRID_D_Complex 64, 2 2 2 4, sites 32 of 40, record 12, file 11\n"
     "15: scidac GRID_D_Complex 64, 2 2 2 2, sites 16 of 8, record 14, file 1\n"
     "18: scidac GRID_D_Complex 64, 3 2 2 2, sites 24 of 8, record 17, file 16, 2 readings, "
     "not summable\n"
     "field-length at 18 + 8, 96 instead of 192\n"},
    {"several configurations, the LFN behind",
     {
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         DATA("ildg-binary-data", GAUGE_2222, 0),
         TEXT("scidac-checksum", SUM(1, 2), 0),
         TEXT("ildg-data-lfn", "lfn://one", ME),
         TEXT("ildg-data-lfn", "lfn://two", MB),
         TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), 0),
         DATA("ildg-binary-data", 2 * GAUGE_2222, ME),
     },
     "lfn://one by 4\n"
     "2: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 1, lfn 4, sum 3 (1 2)\n"
     "7: gauge su3gauge 64, 2 2 2 2, sites 16 of 576, format 6, lfn 5\n"},
    {"each record a message",
     {
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB | ME),
         TEXT("ildg-data-lfn", "lfn://one", MB | ME),
         DATA("ildg-binary-data", GAUGE_2222, MB | ME),
         TEXT("scidac-checksum", SUM(1, 2), MB | ME),
     },
     "lfn://one by 2\n"
     "3: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 1, lfn 2, sum 4 (1 2)\n"
     "format-late at 1 + 144\n"},
    {"each record a message, SciDAC",
     {
         TEXT("scidac-private-file-xml", FILE_XML("2 2 2 2"), MB | ME),
         TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB | ME),
         DATA("scidac-binary-data", 16 * 8, MB | ME),
         TEXT("scidac-checksum", SUM(1, 2), MB | ME),
         DATA("scidac-binary-data", 16 * 8, MB | ME),
     },
     "3: scidac QDP_F_Real 32, 2 2 2 2, sites 16 of 8, record 2, file 1, sum 4 (1 2)\n"
     "5: unknown, not summable\n"},
    {"no format",
     {
         DATA("ildg-binary-data", GAUGE_2222, MB),
         TEXT("scidac-checksum", SUM(1, 2), ME),
     },
     "1: unknown, sum 2 (1 2), not summable\n"
     "format-missing at 1\n"},
    {"no format, but a private record",
     {
         TEXT("scidac-private-file-xml", FILE_XML("2 2 2 2 "), MB | ME),
         TEXT("scidac-private-record-xml", RECORD_XML(0, GAUGE_SITE), MB),
         DATA("ildg-binary-data", GAUGE_2222, ME),
     },
     "3: scidac QDP_F_Real 32, 2 2 2 2, sites 16 of 288, record 2, file 1\n"
     "format-missing at 3\n"},
    {"no format, and no other metadata",
     {
         TEXT("xlf-info", "plaquette = 0.5\n", MB | ME),
         DATA("ildg-binary-data", GAUGE_2222, MB | ME),
     },
     "nothing described\n"
     "2: unknown, not summable\n"
     "format-missing at 2\n"},
    {"no format, and no whole number of words",
     {DATA("ildg-binary-data", GAUGE_2222 - 1, MB | ME)},
     "nothing described\n"
     "1: unknown, not summable\n"},
    {"the format behind the data",
     {
         DATA("ildg-binary-data", GAUGE_2222, MB),
         TEXT("scidac-checksum", SUM(1, 2), 0),
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), ME),
     },
     "1: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 3, sum 2 (1 2)\n"
     "format-late at 3 + 144\n"},
    {"the format alone",
     {TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB | ME)},
     "format-late at 1 + 144\n"},
    {"two formats",
     {
         TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), MB),
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), 0),
         DATA("ildg-binary-data", GAUGE_2222, ME),
     },
     "3: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 2\n"
     "format-late at 1 + 144\n"},
    {"the format between two data records",
     {
         DATA("ildg-binary-data", 8, MB),
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), 0),
         DATA("ildg-binary-data", GAUGE_2222, ME),
     },
     "1: unknown, not summable\n"
     "3: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 2\n"
     "format-missing at 1\n"},
    {"lengths that contradict the lattice",
     {
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         DATA("ildg-binary-data", GAUGE_2222 - 1, ME),
         TEXT("etmc-propagator-format", ETMC(32, 1), MB | ME),
         DATA("scidac-binary-data", SPINOR_2222 + 1, MB | ME),
         TEXT("scidac-private-file-xml", FILE_XML("2 2 2 2 "), MB | ME),
         TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB),
         DATA("scidac-binary-data", 0, ME),
         TEXT("scidac-private-record-xml", RECORD_XML(1, SITE), MB),
         DATA("scidac-binary-data", 16, ME),
     },
     "2: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 1, not summable\n"
     "4: propagator diracFermion 32, 2 2 2 2, sites 16 of 96, format 3, not summable\n"
     "7: scidac QDP_F_Real 32, 2 2 2 2, sites 16 of 8, record 6, file 5, not summable\n"
     "9: global QDP_F_Real 32, sites 1 of 8, record 8, file 5, 1 readings, not summable\n"
     "field-length at 2 + 8, 4607 instead of 4608\n"
     "field-length at 4 + 8, 1537 instead of 1536\n"
     "field-length at 7 + 8, 0 instead of 128\n"
     "field-length at 9 + 8, 16 instead of 8\n"},
    {"more bytes than there can be",
     {
         TEXT("ildg-format", ILDG(64, 4294967296, 1048576, 2, 16), MB),
         DATA("ildg-binary-data", 0, ME),
         TEXT("scidac-private-file-xml", FILE_XML("4611686018427387904"), MB | ME),
         TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), MB),
         DATA("scidac-binary-data", 0, ME),
     },
     "2: unknown, format 1, not summable\n"
     "5: unknown, record 4, file 3, not summable\n"
     "metadata at 1 + 144, xml-value\n"
     "metadata at 4 + 144, xml-value\n"},
    {"hypercubes: inside, outside, of fewer dimensions",
     {
         TEXT("scidac-private-file-xml", FILE_XML("4 2 2 2 "), MB | ME),
         TEXT("scidac-private-record-xml", BOX("1 0 0 1", "3 1 1 1"), MB),
         DATA("scidac-binary-data", 12 * 8, ME),
         TEXT("scidac-private-record-xml", BOX("1 0 0 1", "4 1 1 1"), MB), /* outside */
         DATA("scidac-binary-data", 16 * 8, ME),
         TEXT("scidac-private-record-xml", BOX("1 0 0", "3 1 1"), MB), /* flat */
         DATA("scidac-binary-data", 12 * 8, ME),
     },
     "3: scidac QDP_F_Real 32, 4 2 2 2, box 1 0 0 1 - 3 1 1 1, sites 12 of 8, record 2, file "
     "1\n"
     "5: scidac QDP_F_Real 32, sites 16 of 8, record 4, file 1, not summable\n"
     "7: scidac QDP_F_Real 32, sites 12 of 8, record 6, file 1, not summable\n"
     "format-differs at 4 + 144\n"
     "format-differs at 6 + 144\n"},
    {"no file XML, and a part of a file: ranks of sites, but not of a hypercube's",
     {
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
     },
     "2: scidac QDP_F_Real 32, sites 10 of 8, expected 0, record 1\n"
     "4: scidac QDP_F_Real 32 of 8, record 3, not summable\n"
     "6: scidac QDP_F_Real 32, sites 4 of 8, record 5, not summable\n"
     "9: scidac QDP_F_Real 32, 4 4 of 8, record 8, file 7, not summable\n"
     "field-length at 4 + 8, 81 instead of 0\n"},
    {"two checksums",
     {
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         DATA("ildg-binary-data", GAUGE_2222, 0),
         TEXT("scidac-checksum", SUM(1, 2), 0),
         TEXT("scidac-checksum", SUM(3, 4), ME),
     },
     "2: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 1, sum 3 (1 2)\n"
     "checksum-alone at 4 + 144\n"},
    {"a checksum and no data",
     {TEXT("scidac-checksum", SUM(1, 2), MB | ME)},
     "checksum-alone at 1 + 144\n"},
    {"checksums before their data",
     {
         TEXT("etmc-propagator-format", ETMC(32, 1), MB | ME),
         TEXT("scidac-checksum", SUM(1, 2), MB),
         DATA("scidac-binary-data", SPINOR_2222, ME),
         TEXT("scidac-checksum", SUM(3, 4), MB),
         DATA("scidac-binary-data", SPINOR_2222, ME),
     },
     "3: propagator diracFermion 32, 2 2 2 2, sites 16 of 96, format 1, sum 2 (1 2)\n"
     "5: propagator diracFermion 32, 2 2 2 2, sites 16 of 96, format 1, sum 4 (3 4)\n"},
    {"checksums around the data",
     {
         TEXT("scidac-checksum", SUM(1, 2), MB),
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), 0),
         DATA("ildg-binary-data", GAUGE_2222, 0),
         TEXT("scidac-checksum", SUM(3, 4), ME),
     },
     "3: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 2, sum 4 (3 4)\n"
     "checksum-alone at 1 + 144\n"},
    {"a copy of a checksum",
     {
         TEXT("gauge-scidac-checksum-copy", SUM(1, 2), MB | ME),
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         DATA("ildg-binary-data", GAUGE_2222, ME),
     },
     "3: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 2\n"},
    {"metadata without sense",
     {
         TEXT("scidac-private-file-xml", "<scidacFile/>", MB | ME),
         TEXT("scidac-private-record-xml", "nothing", MB),
         TEXT("ildg-format", "", 0),
         TEXT("ildg-data-lfn", "a\nb", 0),
         DATA("ildg-binary-data", 8, 0),
         TEXT("scidac-checksum", "<scidacChecksum><suma>x</suma></scidacChecksum>", ME),
         DATA("etmc-propagator-format", LIMEFILE_XML_BYTES_MAX + 1, MB | ME),
         DATA("scidac-binary-data", 8, MB | ME),
         TEXT("ildg-data-lfn", "lfn://good", MB | ME),
     },
     "lfn://good by 9\n"
     "5: unknown, format 3, record 2, lfn 4, sum 6, not summable\n"
     "8: unknown, format 7, not summable\n"
     "metadata at 1 + 144, xml-value\n"
     "metadata at 2 + 144, xml-malformed\n"
     "metadata at 3 + 144, xml-malformed\n"
     "metadata at 4 + 144, xml-value\n"
     "metadata at 6 + 144, xml-value\n"
     "metadata at 7 + 144, xml-malformed\n"},
    {"other gauge groups",
     {
         TEXT("ildg-format", GROUP("su2gauge"), MB),
         DATA("ildg-binary-data", 16 * 128, ME),
         TEXT("ildg-format", GROUP("sp4links"), MB),
         DATA("ildg-binary-data", 100, ME),
         TEXT("ildg-format", GROUP("photonField"), MB),
         DATA("ildg-binary-data", 16 * 32, ME),
     },
     "2: gauge su2gauge 32, 2 2 2 2, sites 16 of 128, format 1\n"
     "4: scidac sp4links 32, 2 2 2 2, sites 16, format 3, not summable\n"
     "6: scidac photonField 32, 2 2 2 2, sites 16 of 32, format 5\n"},
    {"the size of a site: by SU(N)'s name, else by the length or a private record",
     {
         TEXT("ildg-format", GROUP("su4gauge"), MB),
         DATA("ildg-binary-data", 16 * 4 * 16 * 2 * 4, ME),
         TEXT("ildg-format", GROUP("su4gauge"), MB),
         DATA("ildg-binary-data", 16 * 4 * 16 * 2 * 4 + 16, ME), /* too long */
         TEXT("ildg-format", GROUP("u1phase"), MB), DATA("ildg-binary-data", 16 * 16, ME),
         TEXT("ildg-format", GROUP("so3gauge"), MB),
         TEXT("scidac-private-record-xml", RECORD_XML(0, SITE), 0),
         DATA("ildg-binary-data", 16 * 8, ME), TEXT("ildg-format", GROUP("su3gauge#half"), MB),
         DATA("ildg-binary-data", 16 * 144, ME), TEXT("ildg-format", GROUP("sp4gauge"), MB),
         DATA("ildg-binary-data", 16 * 100 + 1, ME), /* the length is ambiguous */
     },
     "2: gauge su4gauge 32, 2 2 2 2, sites 16 of 512, format 1\n"
     "4: gauge su4gauge 32, 2 2 2 2, sites 16 of 512, format 3, 1 readings, not summable\n"
     "6: gauge u1phase 32, 2 2 2 2, sites 16 of 16, format 5\n"
     "9: gauge so3gauge 32, 2 2 2 2, sites 16 of 8, format 7, record 8\n"
     "11: gauge su3gauge#half 32, 2 2 2 2, sites 16 of 144, format 10\n"
     "13: gauge sp4gauge 32, 2 2 2 2, sites 16, format 12, not summable\n"
     "field-length at 4 + 8, 8208 instead of 8192\n"},
    {"ILDG 2.0: fields with format and checksum in one message",
     {
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
     },
     "lfn://all by 1\n"
     "3: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 2, lfn 1, sum 4 (1 2)\n"
     "6: gauge u1phase 32, 2 2 2 2, sites 16 of 16, format 5, sum 7 (3 4)\n"
     "9: gauge su3gauge 64, 2 2 2 2, sites 16 of 576, format 8, sum 10 (5 6)\n"},
    {"ILDG 2.0: a message for the format and one for the data",
     {
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB | ME),
         DATA("ildg-binary-data", GAUGE_2222, MB | ME),
         TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), MB | ME),
         DATA("ildg-binary-data", 2 * GAUGE_2222, MB | ME),
         TEXT("ildg-data-lfn", "lfn://all", MB | ME),
     },
     "lfn://all by 5\n"
     "2: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 1\n"
     "4: gauge su3gauge 64, 2 2 2 2, sites 16 of 576, format 3, lfn 5\n"
     "format-late at 1 + 144\n"
     "format-late at 3 + 144\n"},
    {"no ILDG metadata",
     {TEXT("xlf-info", "plaquette = 0.5\n", MB | ME)},
     "nothing described\n"},
    {"LFNs that are blank",
     {
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         TEXT("ildg-data-lfn", "", 0),
         DATA("ildg-binary-data", GAUGE_2222, ME),
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         TEXT("ildg-data-lfn", " ", 0),
         DATA("ildg-binary-data", GAUGE_2222, ME),
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         TEXT("ildg-data-lfn", "\n", 0),
         DATA("ildg-binary-data", GAUGE_2222, ME),
     },
     "3: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 1\n"
     "6: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 4\n"
     "9: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 7\n"},
    {"a format and a checksum whose data a fault has cut off",
     {
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         DATA("ildg-binary-data", GAUGE_2222, ME),
         TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), MB),
         TEXT("scidac-checksum", SUM(1, 2), 0),
         CUT("ildg-binary-data", GAUGE_2222, ME),
     },
     "2: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 1\n"},
    {"no records", {{0}}, "nothing described\n"},
};

TEST(test_samples)
{
    for (size_t i = 0; i < COUNT(samples); i++) {
        size_t count = 0;
        while (samples[i].rows[count].type)
            count++;
        assert_described(samples[i].name, samples[i].rows, count, samples[i].want);
    }
}

/* The flags of the messages do not affect the fields. */
TEST(test_broken_flags)
{
    static const unsigned flags[][4] = {{MB, 0, 0, ME},   {0, 0, 0, 0},  {MB, MB, MB, MB},
                                        {ME, ME, ME, ME}, {MB, 0, 0, 0}, {0, 0, 0, ME},
                                        {MB, ME, 0, ME},  {0, MB, 0, MB}};
    for (size_t i = 0; i < COUNT(flags); i++) {
        const unsigned *f = flags[i];
        char name[40];
        const struct row rows[] = {
            TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), f[0]),
            DATA("ildg-binary-data", GAUGE_2222, f[1]),
            TEXT("scidac-checksum", SUM(1, 2), f[2]),
            TEXT("ildg-data-lfn", "lfn://one", f[3]),
            TEXT("ildg-format", ILDG(64, 2, 2, 2, 2), f[0]),
            DATA("ildg-binary-data", 2 * GAUGE_2222, f[1]),
            TEXT("scidac-checksum", SUM(3, 4), f[2]),
            TEXT("ildg-data-lfn", "lfn://two", f[3]),
        };
        snprintf(name, sizeof name, "flags %x %x %x %x", f[0], f[1], f[2], f[3]);
        assert_described(
            name, rows, COUNT(rows),
            "lfn://one by 4\n"
            "2: gauge su3gauge 32, 2 2 2 2, sites 16 of 288, format 1, lfn 4, sum 3 (1 2)\n"
            "6: gauge su3gauge 64, 2 2 2 2, sites 16 of 576, format 5, lfn 8, sum 7 (3 4)\n");
    }
}

/* With one format and one private record the size of a site is ambiguous. */
TEST(test_disputed)
{
    static const struct {
        const char *record;
        bool descriptions_differ;
    } records[] = {
        {RECORD_XML(0, GAUGE_SITE), false},
        {RECORD_XML(0, "<typesize>144</typesize><datacount>4</datacount>"), true},
        {RECORD_XML(1, GAUGE_SITE), true},
    };
    static const size_t bytes[] = {GAUGE_2222, 2 * GAUGE_2222, GAUGE_2222 / 2};
    for (size_t i = 0; i < COUNT(bytes) * COUNT(records); i++) {
        const char *record = records[i / COUNT(bytes)].record;
        bool descriptions_differ = records[i / COUNT(bytes)].descriptions_differ;
        size_t n = bytes[i % COUNT(bytes)];
        const struct row rows[] = {
            {"scidac-private-record-xml", record, strlen(record), MB, false},
            TEXT("ildg-format", ILDG(32, 2, 2, 2, 2), 0),
            DATA("ildg-binary-data", n, 0),
            TEXT("scidac-checksum", SUM(1, 2), ME),
        };
        struct field_test l;
        struct limefile_field f, as;
        open_field_test(&l, rows, COUNT(rows));
        limefile_fields_get(&l.fields, 0, &f);
        assert_int_equal(f.descriptions_differ, descriptions_differ);
        assert_int_equal(f.site_bytes, 288);
        assert_int_equal(limefile_field_layout(&f, 0, &as),
                         !descriptions_differ || n == GAUGE_2222);
        close_field_test(&l);
    }
}

/* The format describes the field; the first description that differs is named. */
TEST(test_format_differs)
{
    static const struct {
        const char *file, *record;
        uint64_t ordinal;
    } rows[] = {
        {FILE_XML("2 2 2 4"), RECORD_XML(0, GAUGE_SITE), 0},
        {FILE_XML("2 2 4 2"), RECORD_XML(0, GAUGE_SITE), 1},
        {FILE_XML("2 2 8"), RECORD_XML(0, GAUGE_SITE), 1},
        {FILE_XML("2 2 2 4"), RECORD_XML(0, SITE), 2},
        {FILE_XML("2 2 2 4"), RECORD_XML(1, GAUGE_SITE), 2},
        {FILE_XML("2 2 2 4"),
         "<scidacRecord><precision>D</precision>" GAUGE_SITE "</scidacRecord>", 2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row records[] = {
            {"scidac-private-file-xml", rows[i].file, strlen(rows[i].file), MB | ME, false},
            {"scidac-private-record-xml", rows[i].record, strlen(rows[i].record), MB, false},
            TEXT("ildg-format", ILDG(32, 2, 2, 2, 4), 0),
            DATA("ildg-binary-data", 2 * GAUGE_2222, ME),
        };
        struct field_test l;
        struct limefile_field f;
        struct limefile_finding finding = {0};
        open_field_test(&l, records, COUNT(records));
        limefile_fields_get(&l.fields, 0, &f);
        assert_int_equal(f.kind, LIMEFILE_KIND_GAUGE);
        assert_true(limefile_field_is_summable(&f));
        limefile_fields_finding(&l.fields, 0, &finding);
        assert_int_equal(finding.code, rows[i].ordinal ? LIMEFILE_D_FORMAT_DIFFERS : 0);
        assert_int_equal(finding.ordinal, rows[i].ordinal);
        assert_false(limefile_fields_finding(&l.fields, 1, &finding));
        close_field_test(&l);
    }
}

/* Data and sums in one message, in any order: which sum ("1".."9") belongs to which data, and
 * which record, if any, is a lone sum. */
TEST(test_pairs)
{
    static const struct {
        const char *order, *sums;
        uint64_t alone;
    } cases[] = {
        {"d1d2", "12", 0},    {"d1d2d3", "123", 0}, {"dd2", "02", 0},   {"d1d", "10", 0},
        {"1d2d", "12", 0}, /* each before its data */
        {"1d2d3d", "123", 0}, {"1d", "1", 0},       {"1d2d3", "23", 2}, /* a lone record,
                                                                           then in the usual
                                                                           order */
        {"1d2", "2", 2},      {"1dd2", "12", 0},    {"12dd", "20", 2},  {"d12d", "10", 4},
    };
    static const char *const xml[] = {SUM(0, 0), SUM(1, 0), SUM(2, 0), SUM(3, 0), SUM(4, 0)};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct row rows[16] = {TEXT("xlf-info", "x", MB)};
        size_t count = 1;
        struct text want = {.at = ""};
        for (const char *c = cases[i].order, *sum = cases[i].sums; *c; c++, count++) {
            if (*c != 'd') {
                rows[count] =
                    (struct row){"scidac-checksum", xml[*c - '0'], strlen(xml[0]), 0, false};
                continue;
            }
            rows[count] = (struct row)DATA("scidac-binary-data", 8, 0);
            add(&want, "%d: unknown", (int)count + 1);
            if (*sum != '0')
                add(&want, ", sum %d (%c 0)",
                    (int)(strchr(cases[i].order, *sum) - cases[i].order) + 2, *sum);
            add(&want, ", not summable\n");
            sum++;
        }
        if (cases[i].alone)
            add(&want, "checksum-alone at %d + 144\n", (int)cases[i].alone);
        rows[count - 1].flags = ME;
        assert_described(cases[i].order, rows, count, want.at);
    }
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
    assert_int_equal(all, 2); /* each record that it needs, once */
    for (unsigned i = 1; i <= all; i++) {
        faulty.fail_at = faulty.calls + i;
        faulty.fail_for = 1;
        assert_int_equal(limefile_fields_build(&faulty.source, index, &fields), -EIO);
        assert_null(fields.store);
    }
    faulty.memory.size = 150; /* the file is truncated */
    assert_int_equal(limefile_fields_build(&faulty.source, index, &fields), LIMEFILE_E_SHRUNK);
    limefile_index_free(index);
    bytes_free(&b);
}

/* Many records of each kind take one pass, in any order. */
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
    struct field_test l;
    open_field_test(&l, all, TIMES * COUNT(rows));
    assert_int_equal(l.fields.count, 2 * TIMES);
    /* a difference, metadata twice, a lone checksum */
    struct limefile_finding finding;
    assert_true(limefile_fields_finding(&l.fields, 4 * TIMES - 1, &finding));
    assert_false(limefile_fields_finding(&l.fields, 4 * TIMES, &finding));
    struct limefile_field last;
    limefile_fields_get(&l.fields, 2 * TIMES - 2, &last);
    assert_int_equal(last.format_ordinal, (TIMES - 1) * COUNT(rows) + 1);
    close_field_test(&l);
    free(all);
}
