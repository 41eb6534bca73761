/* qcdml_parse.c - parse a QCDml configuration document and find the byte ranges of its values
 *
 * Values are found by their path. expat reports the byte at which each tag begins, so a value
 * can be replaced as a range of bytes, and all other bytes remain as they were written. */
#define _GNU_SOURCE
#include "array.h"
#include "limeqcdml.h"
#include "safe_xml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMESPACE "http://www.lqcd.org/ildg/QCDml/config2.0"

/* The path of a record element, from the root. */
static const char *const record_path[] = {"gaugeConfiguration", "markovSequence", "markovStep",
                                          "record"};
enum { RECORD_DEPTH = 4 };

struct parser {
    struct safe_xml xml;
    struct limefile_qcdml *out;
    size_t capacity;  /* capacity of out->record */
    unsigned on_path; /* number of open elements that are on record_path */
    int code; /* if this file has stopped the parser: the error to return; otherwise 0 */

    struct limefile_qcdml_value *current; /* the value whose text is being read, or NULL */
    unsigned current_depth;               /* depth of this value's element; the root has 1 */
    char text[LIMEFILE_QCDML_TEXT_MAX];   /* the text so far, without leading white space */
    size_t text_bytes;
};

static void fail_value(struct parser *r, const char *name, const char *what)
{
    r->code = LIMEFILE_E_XML_VALUE;
    safe_xml_stop(&r->xml, "<%.80s> %s", name, what);
}

static void fail_memory(struct parser *r)
{
    r->code = -ENOMEM;
    safe_xml_stop(&r->xml, "out of memory");
}

/* Returns the local name of an element in QCDml's namespace; NULL for other elements. */
static const char *local_name(const char *qualified)
{
    size_t n = strlen(NAMESPACE);
    return strncmp(qualified, NAMESPACE "|", n + 1) == 0 ? qualified + n + 1 : NULL;
}

static void add_record_element(struct parser *r)
{
    struct limefile_qcdml *out = r->out;
    if (!limefile_reserve(&out->record, &r->capacity, out->count + 1, sizeof *out->record)) {
        fail_memory(r);
        return;
    }
    out->record[out->count++] =
        (struct limefile_qcdml_record){.line = XML_GetCurrentLineNumber64(r->xml.parser)};
}

/* Returns the value that the element `name`, which has just begun, fills in, or NULL. */
static struct limefile_qcdml_value *find_value(const struct parser *r, const char *name)
{
    struct limefile_qcdml *out = r->out;
    unsigned depth = r->xml.depth - 1; /* depth of the parent */
    if (depth != r->on_path)
        return NULL;
    if (depth == 1)
        return strcmp(name, "dataLFN") == 0     ? &out->lfn
               : strcmp(name, "precision") == 0 ? &out->precision
                                                : NULL;
    if (depth != RECORD_DEPTH)
        return NULL;
    struct limefile_qcdml_record *record = &out->record[out->count - 1];
    return strcmp(name, "field") == 0          ? &record->field
           : strcmp(name, "crcCheckSum") == 0  ? &record->crc
           : strcmp(name, "avePlaquette") == 0 ? &record->plaquette
                                               : NULL;
}

/* Handles the start tag of a value's element; expat has just parsed this tag. */
static void begin_value(struct parser *r, struct limefile_qcdml_value *value, const char *name)
{
    if (value->found) {
        fail_value(r, name, "occurs twice");
        return;
    }
    XML_Parser parser = r->xml.parser;
    size_t begin = (size_t)XML_GetCurrentByteIndex64(parser);
    size_t end = begin + (size_t)XML_GetCurrentByteCount64(parser);
    value->found = true;
    value->line = XML_GetCurrentLineNumber64(parser);
    value->empty = end >= 2 && r->out->xml[end - 2] == '/';
    value->begin = value->empty ? end - 2 : end;
    value->end = end; /* end_value() changes it unless the element is empty */
    r->current = value;
    r->current_depth = r->xml.depth;
    r->text_bytes = 0;
}

/* ---- handlers for expat ---- */

static void XMLCALL start_element(void *context, const char *qualified, const char **attributes)
{
    struct parser *r = context;
    const char *name = local_name(qualified);
    (void)attributes;
    if (!safe_xml_enter(&r->xml))
        return;
    if (r->xml.depth == 1 && (!name || strcmp(name, record_path[0]) != 0)) {
        r->code = LIMEFILE_E_XML_VALUE;
        safe_xml_stop(&r->xml, "the root element is not gaugeConfiguration of " NAMESPACE);
        return;
    }
    if (r->current) {
        fail_value(r, name ? name : qualified, "is in an element that may contain only text");
        return;
    }
    if (!name)
        return;
    struct limefile_qcdml_value *value = find_value(r, name);
    if (value) {
        begin_value(r, value, name);
    } else if (r->on_path == r->xml.depth - 1 && r->on_path < RECORD_DEPTH &&
               strcmp(name, record_path[r->on_path]) == 0) {
        if (++r->on_path == RECORD_DEPTH)
            add_record_element(r);
    }
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void end_value(struct parser *r)
{
    struct limefile_qcdml_value *value = r->current;
    while (r->text_bytes && is_space(r->text[r->text_bytes - 1]))
        r->text_bytes--;
    if (!value->empty)
        value->end = (size_t)XML_GetCurrentByteIndex64(r->xml.parser);
    value->text = strndup(r->text, r->text_bytes);
    r->current = NULL;
    if (!value->text)
        fail_memory(r);
}

static void XMLCALL end_element(void *context, const char *name)
{
    struct parser *r = context;
    (void)name;
    if (r->xml.stopped)
        return;
    if (r->current && r->current_depth == r->xml.depth)
        end_value(r);
    if (r->on_path == r->xml.depth)
        r->on_path--;
    safe_xml_leave(&r->xml);
}

static void XMLCALL character_data(void *context, const char *text, int n)
{
    struct parser *r = context;
    for (int i = 0; r->current && i < n; i++) {
        if (r->text_bytes == 0 && is_space(text[i]))
            continue;
        if (r->text_bytes == sizeof r->text - 1) {
            r->code = LIMEFILE_E_XML_VALUE;
            safe_xml_stop(&r->xml, "a value exceeds %d bytes", LIMEFILE_QCDML_TEXT_MAX - 1);
            return;
        }
        r->text[r->text_bytes++] = text[i];
    }
}

int limefile_qcdml_parse(const void *xml, size_t n, struct limefile_qcdml *out)
{
    struct parser r = {.out = out};
    *out = (struct limefile_qcdml){.xml = xml, .bytes = n};
    int err = safe_xml_begin(&r.xml);
    if (err)
        return err;
    XML_SetElementHandler(r.xml.parser, start_element, end_element);
    XML_SetCharacterDataHandler(r.xml.parser, character_data);
    err = safe_xml_parse(&r.xml, xml, n);
    out->line = r.xml.line;
    memcpy(out->why, r.xml.why, sizeof out->why);
    return err && r.code ? r.code : err;
}

static void release_value(struct limefile_qcdml_value *value)
{
    free(value->text);
    free(value->new_text);
}

void limefile_qcdml_release(struct limefile_qcdml *document)
{
    release_value(&document->lfn);
    release_value(&document->precision);
    for (size_t i = 0; i < document->count; i++) {
        release_value(&document->record[i].field);
        release_value(&document->record[i].crc);
        release_value(&document->record[i].plaquette);
    }
    free(document->record);
    *document = (struct limefile_qcdml){.count = 0};
}
