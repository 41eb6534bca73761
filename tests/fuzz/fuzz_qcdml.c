/* fuzz_qcdml.c - any bytes as a QCDml document: replacing a value changes nothing else */
#include "fuzz.h"

#include "limeqcdml.h"

#include <stdlib.h>

static void check_value(const struct limefile_qcdml *d, const struct limefile_qcdml_value *v)
{
    if (!v->found)
        return;
    HOLDS(v->begin <= v->end && v->end <= d->bytes && v->line > 0);
    HOLDS(v->text && strlen(v->text) < LIMEFILE_QCDML_TEXT_MAX);
    HOLDS(!v->empty || (v->end == v->begin + 2 && memcmp(d->xml + v->begin, "/>", 2) == 0));
}

static void set(struct limefile_qcdml_value *v, const char *text)
{
    if (v->found)
        HOLDS(limefile_qcdml_set_text(v, text) == 0);
}

static void check_set(const struct limefile_qcdml_value *before,
                      const struct limefile_qcdml_value *after, const char *text)
{
    HOLDS(before->found == after->found);
    HOLDS(!after->found || strcmp(after->text, text) == 0);
}

static void refill(struct limefile_qcdml *d)
{
    struct limefile_qcdml back;
    char *xml;
    size_t n;
    set(&d->lfn, "lfn://a<b>&c");
    set(&d->precision, "double");
    for (size_t i = 0; i < d->count; i++) {
        set(&d->record[i].field, "su3gauge");
        set(&d->record[i].crc, "930766865");
        set(&d->record[i].plaquette, "5.8e-1");
    }
    HOLDS(limefile_qcdml_write(d, &xml, &n) == 0);
    if (n <= LIMEFILE_QCDML_BYTES_MAX) {
        HOLDS(limefile_qcdml_parse(xml, n, &back) == 0 && back.count == d->count);
        check_set(&d->lfn, &back.lfn, "lfn://a<b>&c");
        check_set(&d->precision, &back.precision, "double");
        for (size_t i = 0; i < d->count; i++) {
            check_set(&d->record[i].field, &back.record[i].field, "su3gauge");
            check_set(&d->record[i].crc, &back.record[i].crc, "930766865");
            check_set(&d->record[i].plaquette, &back.record[i].plaquette, "5.8e-1");
        }
        limefile_qcdml_release(&back);
    }
    free(xml);
}

static void check_document(const struct limefile_qcdml *d)
{
    char *xml;
    size_t n;
    uint32_t decimal, hex;
    check_value(d, &d->lfn);
    check_value(d, &d->precision);
    for (size_t i = 0; i < d->count; i++) {
        check_value(d, &d->record[i].field);
        check_value(d, &d->record[i].crc);
        check_value(d, &d->record[i].plaquette);
        if (d->record[i].crc.found)
            HOLDS(limefile_qcdml_parse_crc(d->record[i].crc.text, &decimal, &hex) <= 2);
    }
    HOLDS(limefile_qcdml_write(d, &xml, &n) == 0);
    HOLDS(n == d->bytes && memcmp(xml, d->xml, n) == 0);
    free(xml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct limefile_qcdml d;
    int err = limefile_qcdml_parse(data, size, &d);
    HOLDS(err == 0 || err == LIMEFILE_E_XML || err == LIMEFILE_E_XML_VALUE);
    HOLDS(err == 0 || d.why[0]);
    if (err == 0) {
        check_document(&d);
        refill(&d);
    }
    limefile_qcdml_release(&d);
    return 0;
}
