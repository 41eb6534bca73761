/* qcdml_write.c - write a document with new values, and parse the checksum in a document */
#define _GNU_SOURCE
#include "limeqcdml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int limefile_qcdml_set_text(struct limefile_qcdml_value *value, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(value->new_text);
    value->new_text = copy;
    return 0;
}

static void write_escaped(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", to);
        else if (*text == '<')
            fputs("&lt;", to);
        else if (*text == '>')
            fputs("&gt;", to);
        else
            putc(*text, to);
    }
}

/* Writes the end tag for the empty element "<name attributes/>", with the same name and prefix.
 * slash: the index in xml of "/>". XML allows no '<' in attributes, so the tag begins at the
 * last '<' before the slash. */
static void write_end_tag(FILE *to, const char *xml, size_t slash)
{
    size_t tag = slash;
    while (tag && xml[tag - 1] != '<')
        tag--;
    fprintf(to, "</%.*s>", (int)strcspn(xml + tag, " \t\r\n/"), xml + tag);
}

/* Writes the new text. An empty element "<name/>" becomes "<name>text</name>". */
static void write_value(FILE *to, const char *xml, const struct limefile_qcdml_value *value)
{
    if (value->empty)
        putc('>', to);
    write_escaped(to, value->new_text);
    if (value->empty)
        write_end_tag(to, xml, value->begin);
}

static int compare_begin(const void *a, const void *b)
{
    const struct limefile_qcdml_value *const *x = a, *const *y = b;
    return ((*x)->begin > (*y)->begin) - ((*x)->begin < (*y)->begin);
}

/* Writes the document with the new texts of `values`, which must be sorted by position. */
static void write_with_values(FILE *to, const struct limefile_qcdml *d,
                              const struct limefile_qcdml_value *const *values, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct limefile_qcdml_value *value = values[i];
        fwrite(d->xml + at, 1, value->begin - at, to);
        write_value(to, d->xml, value);
        at = value->end;
    }
    fwrite(d->xml + at, 1, d->bytes - at, to);
}

/* Collects the values that have a new text, in the order of the document. Returns their number.
 * The array must have space for all values of the document. */
static size_t collect_new_values(const struct limefile_qcdml *d,
                                 const struct limefile_qcdml_value **values)
{
    size_t all = 0, count = 0;
    values[all++] = &d->lfn;
    values[all++] = &d->precision;
    for (size_t i = 0; i < d->count; i++) {
        values[all++] = &d->record[i].field;
        values[all++] = &d->record[i].crc;
        values[all++] = &d->record[i].plaquette;
    }
    for (size_t i = 0; i < all; i++)
        if (values[i]->found && values[i]->new_text)
            values[count++] = values[i];
    qsort(values, count, sizeof *values, compare_begin);
    return count;
}

int limefile_qcdml_write(const struct limefile_qcdml *d, char **out, size_t *n)
{
    const struct limefile_qcdml_value **values =
        reallocarray(NULL, 3 * d->count + 2, sizeof *values);
    *out = NULL;
    FILE *to = values ? open_memstream(out, n) : NULL;
    if (to)
        write_with_values(to, d, values, collect_new_values(d, values));
    bool good = to && !ferror(to);
    if (to && fclose(to) != 0)
        good = false;
    free(values);
    if (good)
        return 0;
    free(*out);
    *out = NULL;
    return -ENOMEM;
}

/* Parses a text of 1 to 10 digits. base: 10 or 16. False: another text, or a larger number. */
static bool parse_uint32(const char *text, int base, uint32_t *out)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    size_t n = strspn(text, base == 10 ? "0123456789" : digits);
    if (n == 0 || n > 10 || text[n] != '\0')
        return false;
    unsigned long long value = strtoull(text, NULL, base);
    *out = (uint32_t)value;
    return value <= UINT32_MAX;
}

unsigned limefile_qcdml_parse_crc(const char *text, uint32_t *decimal, uint32_t *hex)
{
    bool prefix = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    bool is_hex = parse_uint32(prefix ? text + 2 : text, 16, hex);
    if (!prefix && parse_uint32(text, 10, decimal))
        return is_hex ? 2 : 1;
    if (is_hex)
        *decimal = *hex;
    return is_hex ? 1 : 0;
}
