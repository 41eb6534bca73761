/* fuzz_ildg.c - any bytes as metadata, and as a container with fields: their invariants.
 * The first byte selects a container, or a parser and its XML. */
#include "fuzz.h"

#include "limeildg.h"
#include "xmlread.h"

static void check_lattice(const struct limefile_lattice *lattice)
{
    uint64_t sites = limefile_lattice_sites(lattice);
    HOLDS(lattice->dims >= 1 && lattice->dims <= LIMEFILE_DIMS_MAX);
    HOLDS(sites >= 1 && sites <= INT64_MAX);
}

static void check_code(int err)
{
    HOLDS(err == 0 || err == LIMEFILE_E_XML || err == LIMEFILE_E_XML_VALUE);
}

static void as_ildg(const void *data, size_t size)
{
    struct limefile_ildg ildg;
    int err = limefile_ildg_parse(data, size, &ildg);
    check_code(err);
    if (err)
        return;
    check_lattice(&ildg.lattice);
    HOLDS(ildg.precision == 32 || ildg.precision == 64);
    HOLDS(ildg.field[0] && strlen(ildg.field) < sizeof ildg.field && ildg.flavours > 0);
    HOLDS(ildg.flavours <= 1000);
}

static void as_cvc(const void *data, size_t size)
{
    struct limefile_ildg cvc;
    int err = limefile_cvc_parse(data, size, &cvc);
    check_code(err);
    if (err)
        return;
    check_lattice(&cvc.lattice);
    HOLDS(cvc.precision == 32 || cvc.precision == 64);
    HOLDS(cvc.components > 0 && cvc.components <= UINT32_MAX);
}

static void as_file(const void *data, size_t size)
{
    struct limefile_scidac_file file;
    int err = limefile_scidac_file_parse(data, size, &file);
    check_code(err);
    if (!err)
        check_lattice(&file.lattice);
}

static void as_grid(const void *data, size_t size)
{
    struct limefile_lattice lattice;
    int err = limefile_grid_parse(data, size, &lattice);
    check_code(err);
    if (!err)
        check_lattice(&lattice);
}

static void as_record(const void *data, size_t size)
{
    struct limefile_scidac_record r;
    uint64_t bytes;
    int err = limefile_scidac_record_parse(data, size, &r);
    check_code(err);
    if (err)
        return;
    HOLDS(!__builtin_mul_overflow(r.typesize, r.datacount, &bytes));
    HOLDS(bytes > 0 && bytes <= INT64_MAX && r.box_dims <= LIMEFILE_DIMS_MAX);
    HOLDS((r.recordtype == LIMEFILE_HYPERCUBE) == (r.box_dims > 0));
    for (unsigned i = 0; i < r.box_dims; i++)
        HOLDS(r.lower[i] <= r.upper[i]);
}

static void as_checksum(const void *data, size_t size)
{
    struct limefile_checksum sum, back;
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    int err = limefile_checksum_parse(data, size, &sum);
    check_code(err);
    if (err)
        return;
    HOLDS(limefile_checksum_parse(xml, limefile_checksum_xml(&sum, xml), &back) == 0);
    HOLDS(sum.suma == back.suma && sum.sumb == back.sumb);
}

static void as_lfn(const void *data, size_t size)
{
    char lfn[LIMEFILE_LFN_MAX], back[LIMEFILE_LFN_MAX];
    if (limefile_lfn_parse(data, size, lfn) != 0)
        return;
    HOLDS(lfn[0] && strlen(lfn) < sizeof lfn && !strpbrk(lfn, "\n\t\033\177"));
    HOLDS(limefile_lfn_parse(lfn, strlen(lfn), back) == 0 && strcmp(lfn, back) == 0);
}

static void check_fact(void *context, const char *name, size_t depth, const char *text)
{
    size_t *facts = context, n = strlen(text);
    HOLDS(++*facts <= XMLREAD_ELEMENTS_MAX && *name && depth <= XMLREAD_DEPTH_MAX);
    HOLDS(n <= XMLREAD_FACT_MAX);
    HOLDS(n == 0 || ((unsigned char)text[0] > ' ' && (unsigned char)text[n - 1] > ' '));
}

static void as_facts(const void *data, size_t size)
{
    size_t facts = 0;
    int err = xmlread_facts(data, size, check_fact, &facts);
    check_code(err);
    HOLDS(err || facts);
}

/* ---- a container ---- */

struct findings {
    uint64_t offset, records;
    unsigned of_sum;
};

static void check_finding(struct findings *findings, const struct limefile_finding *f)
{
    char text[256];
    HOLDS(f->code >= LIMEFILE_D_XML && f->code < LIMEFILE_D_CHECKSUM);
    HOLDS(!limefile_is_fault(f->code));
    HOLDS(f->offset >= findings->offset && f->ordinal >= 1 && f->ordinal <= findings->records);
    HOLDS(limefile_finding_text(f, text, sizeof text) < (int)sizeof text);
    findings->offset = f->offset;
}

static void check_type(const struct limefile_index *index, uint64_t ordinal, const char *type)
{
    struct limefile_record r;
    if (ordinal)
        HOLDS(limefile_index_get(index, ordinal, &r) == 0 && strcmp(r.type, type) == 0);
}

static void check_field(const struct limefile_index *index, const struct limefile_field *f)
{
    uint64_t bytes;
    check_type(index, f->private_ordinal, "scidac-private-record-xml");
    check_type(index, f->by_file, "scidac-private-file-xml");
    check_type(index, f->checksum_ordinal, "scidac-checksum");
    check_type(index, f->lfn_ordinal, "ildg-data-lfn");
    HOLDS(!f->has_checksum || f->checksum_ordinal);
    HOLDS(strlen(f->name) < sizeof f->name && f->lattice.dims <= LIMEFILE_DIMS_MAX);
    if (f->kind == LIMEFILE_KIND_UNKNOWN)
        HOLDS(f->expected == 0 && f->sites == 0 && f->site_bytes == 0);
    if (limefile_field_is_summable(f)) {
        HOLDS(!__builtin_mul_overflow(f->sites, f->site_bytes, &bytes));
        HOLDS(bytes == f->record.bytes && f->site_bytes > 0);
        HOLDS(f->expected == 0 || f->expected == bytes);
        for (unsigned i = 0; f->is_box && i < f->lattice.dims; i++)
            HOLDS(f->lower[i] <= f->upper[i] && f->upper[i] < f->lattice.extent[i]);
    }
}

/* At most two layouts, both of its length, or a reason why it is not compared. */
static void check_proof(const struct limefile_field *f)
{
    struct limefile_field as;
    const char *bad = limefile_field_why_bad(f), *unverified = limefile_field_why_unverified(f);
    unsigned ways = 0;
    while (limefile_field_layout(f, ways, &as)) {
        HOLDS(limefile_field_is_summable(&as) && as.record.bytes == f->record.bytes);
        HOLDS(++ways <= 2);
    }
    HOLDS(!(bad && unverified) && (!bad || (f->has_checksum && ways == 0)));
    HOLDS(bad || unverified || (f->has_checksum && ways));
    HOLDS(!limefile_field_is_summable(f) || (!bad && ways == 1));
}

static void as_container(const uint8_t *data, size_t size)
{
    struct limefile_memory memory;
    struct limefile_index *index;
    struct limefile_fields fields;
    struct limefile_record r;
    limefile_memory_borrow(&memory, data, size);
    HOLDS(limefile_index_build(&memory.source, &index) == 0);
    struct findings findings = {.records = limefile_index_count(index)};
    HOLDS(limefile_fields_build(&memory.source, index, &fields) == 0);
    struct limefile_finding finding;
    for (size_t i = 0; limefile_fields_finding(&fields, i, &finding); i++)
        check_finding(&findings, &finding);
    uint64_t last = 0, binary = 0;
    for (size_t i = 0; i < fields.count; i++) {
        struct limefile_field f, same;
        limefile_fields_get(&fields, i, &f);
        HOLDS(f.record.ordinal > last);
        last = f.record.ordinal;
        HOLDS(limefile_fields_find(&fields, last, &same) && same.record.ordinal == last);
        check_field(index, &f);
        check_proof(&f);
    }
    for (uint64_t i = 1; limefile_index_get(index, i, &r) == 0; i++)
        binary += strcmp(r.type, "ildg-binary-data") == 0 ||
                  strcmp(r.type, "scidac-binary-data") == 0;
    HOLDS(binary == fields.count);
    HOLDS(!fields.lfn_ordinal == !fields.lfn[0]);
    limefile_fields_release(&fields);
    HOLDS(fields.store == NULL && fields.count == 0);
    limefile_index_free(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(const void *, size_t) = {
        as_ildg, as_file, as_record, as_checksum, as_lfn, as_facts, as_cvc, as_grid};
    enum { PARSERS = sizeof parsers / sizeof parsers[0] };
    if (size == 0)
        return 0;
    if (data[0] >= '0' && data[0] < '0' + PARSERS)
        parsers[data[0] - '0'](data + 1, size - 1);
    else
        as_container(data, size); /* the first byte of a container is not a digit */
    return 0;
}
