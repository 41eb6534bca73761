/* xmlread.c - read values from a small XML document, with expat and limits */
#define _GNU_SOURCE
#include "xmlread.h"
#include "limeildg.h"

#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct xml_reader {
    XML_Parser parser;
    const char *const *elements;
    struct xmlread_value *values;
    size_t count;
    unsigned depth, element_count;
    unsigned parent_depth; /* depth of the element whose children are read; 0: none now */
    bool is_requested;     /* the element at parent_depth is one of `elements`; children of
                            * later elements are not read */
    bool is_rejected;
    struct xmlread_value *current; /* value whose text is being read, or NULL */
    unsigned current_depth;
    char text[XMLREAD_TEXT_MAX];
    size_t filled;
    bool is_cut;

    xmlread_fact_fn *fact; /* NULL: xmlread_values() */
    void *context;
    char *long_text; /* XMLREAD_FACT_MAX + 1 bytes */
    bool is_leaf;    /* the current element has had no child so far */
};

static bool is_space(char c)
{
    return (unsigned char)c <= 0x20 || c == 0x7f;
}

static const char *local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon && colon[1] ? colon + 1 : name;
}

static void reject_document(struct xml_reader *r)
{
    r->is_rejected = true;
    XML_StopParser(r->parser, XML_FALSE);
}

/* ---- one value ---- */

/* Appends text. Replaces a run of white space and control bytes by a space, or by nothing at
 * the beginning. */
static void append_text(struct xml_reader *r, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool space = is_space(text[i]);
        if (space && (r->filled == 0 || r->text[r->filled - 1] == ' '))
            continue;
        if (r->filled == sizeof r->text - 1) {
            r->is_cut = true;
            return;
        }
        r->text[r->filled++] = space ? ' ' : text[i];
    }
}

static void begin_value(struct xml_reader *r, struct xmlread_value *value, unsigned depth)
{
    r->current = value;
    r->current_depth = depth;
    r->filled = 0;
    r->is_cut = false;
}

static void end_value(struct xml_reader *r)
{
    struct xmlread_value *value = r->current;
    r->current = NULL;
    if (r->filled && r->text[r->filled - 1] == ' ')
        r->filled--;
    r->text[r->filled] = '\0';
    value->bad |= r->is_cut || (value->found && strcmp(value->text, r->text) != 0);
    value->found = true;
    memcpy(value->text, r->text, r->filled + 1);
}

static struct xmlread_value *find_value(const struct xml_reader *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcasecmp(r->values[i].name, name) == 0)
            return &r->values[i];
    return NULL;
}

static bool is_named(const struct xml_reader *r, const char *name)
{
    for (const char *const *element = r->elements; *element; element++)
        if (strcasecmp(*element, name) == 0)
            return true;
    return false;
}

static bool exceeds_limits(struct xml_reader *r)
{
    bool exceeded = ++r->depth > XMLREAD_DEPTH_MAX || ++r->element_count > XMLREAD_ELEMENTS_MAX;
    if (exceeded)
        reject_document(r);
    return exceeded;
}

/* ---- callbacks of expat ---- */

/* Starts to read the children of an element. Discards the values of an earlier element. */
static void begin_children(struct xml_reader *r)
{
    for (size_t i = 0; i < r->count; i++) {
        r->values[i].found = r->values[i].bad = false;
        r->values[i].text[0] = '\0';
    }
    r->parent_depth = r->depth;
    r->current = NULL;
}

static void XMLCALL start_element(void *context, const char *qualified, const char **attributes)
{
    struct xml_reader *r = context;
    const char *name = local_name(qualified);
    (void)attributes;
    if (exceeds_limits(r))
        return;
    if (!r->is_requested && (is_named(r, name) || r->depth == 1)) {
        r->is_requested = is_named(r, name);
        begin_children(r);
        return;
    }
    struct xmlread_value *value =
        r->parent_depth && r->depth == r->parent_depth + 1 ? find_value(r, name) : NULL;
    if (value)
        begin_value(r, value, r->depth);
    else if (r->current)
        append_text(r, " ", 1);
}

static void XMLCALL end_element(void *context, const char *name)
{
    struct xml_reader *r = context;
    (void)name;
    if (r->current && r->depth == r->current_depth)
        end_value(r);
    else if (r->current)
        append_text(r, " ", 1);
    if (r->depth == r->parent_depth)
        r->parent_depth = 0;
    r->depth--;
}

static void XMLCALL character_data(void *context, const char *text, int n)
{
    struct xml_reader *r = context;
    if (r->current)
        append_text(r, text, (size_t)n);
}

static void XMLCALL start_fact(void *context, const char *qualified, const char **attributes)
{
    struct xml_reader *r = context;
    (void)qualified, (void)attributes;
    if (exceeds_limits(r))
        return;
    r->is_leaf = true;
    r->filled = 0;
}

static void XMLCALL end_fact(void *context, const char *qualified)
{
    struct xml_reader *r = context;
    while (r->filled && is_space(r->long_text[r->filled - 1]))
        r->filled--;
    r->long_text[r->filled] = '\0';
    if (r->is_leaf && !r->is_rejected)
        r->fact(r->context, local_name(qualified), r->depth, r->long_text);
    r->is_leaf = false;
    r->depth--;
}

static void XMLCALL fact_text(void *context, const char *text, int n)
{
    struct xml_reader *r = context;
    for (int i = 0; r->is_leaf && i < n && r->filled < XMLREAD_FACT_MAX; i++)
        if (r->filled || !is_space(text[i]))
            r->long_text[r->filled++] = text[i];
}

static void XMLCALL start_doctype(void *context, const char *name, const char *system_id,
                                  const char *public_id, int has_internal_subset)
{
    (void)name, (void)system_id, (void)public_id;
    if (has_internal_subset)
        reject_document(context);
}

static void XMLCALL entity_declaration(void *context, const char *name, int is_parameter,
                                       const char *value, int n, const char *base,
                                       const char *system_id, const char *public_id,
                                       const char *notation)
{
    (void)name, (void)is_parameter, (void)value, (void)n, (void)base, (void)system_id;
    (void)public_id, (void)notation;
    reject_document(context);
}

/* Reads unknown encodings as ISO-8859-1: digits and names of elements are ASCII in most of
 * them. */
static int XMLCALL unknown_encoding(void *context, const char *name, XML_Encoding *info)
{
    (void)context, (void)name;
    for (int i = 0; i < 256; i++)
        info->map[i] = i;
    info->convert = NULL;
    info->release = NULL;
    info->data = NULL;
    return XML_STATUS_OK;
}

/* ---- the document ---- */

/* Trims the bytes around the document: some writers store a final NUL or the whole buffer. */
static void trim_document(const char **xml, size_t *n)
{
    static const char bom[] = "\xef\xbb\xbf";
    while (*n && is_space(**xml))
        ++*xml, --*n;
    if (*n >= 3 && memcmp(*xml, bom, 3) == 0) {
        *xml += 3;
        *n -= 3;
    }
    while (*n && is_space(**xml))
        ++*xml, --*n;
    *n = strnlen(*xml, *n);
    while (*n && is_space((*xml)[*n - 1]))
        --*n;
}

static int parse_document(struct xml_reader *r, const char *xml, size_t n, const char *encoding,
                          enum XML_Error *why)
{
    r->parser = XML_ParserCreate(encoding);
    if (!r->parser)
        return -ENOMEM;
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, r->fact ? start_fact : start_element,
                          r->fact ? end_fact : end_element);
    XML_SetCharacterDataHandler(r->parser, r->fact ? fact_text : character_data);
    XML_SetStartDoctypeDeclHandler(r->parser, start_doctype);
    XML_SetEntityDeclHandler(r->parser, entity_declaration);
    XML_SetUnknownEncodingHandler(r->parser, unknown_encoding, NULL);
    enum XML_Status status = XML_Parse(r->parser, xml, (int)n, 1);
    *why = status == XML_STATUS_OK ? XML_ERROR_NONE : XML_GetErrorCode(r->parser);
    XML_ParserFree(r->parser);
    if (*why == XML_ERROR_NO_MEMORY)
        return -ENOMEM;
    return *why != XML_ERROR_NONE || r->is_rejected ? LIMEFILE_E_XML : 0;
}

/* Parses the document, perhaps twice, each time from a copy of `initial`. */
static int read_document(const void *xml, size_t n, const struct xml_reader *initial)
{
    const char *text = xml;
    enum XML_Error why;
    if (n > LIMEFILE_XML_BYTES_MAX)
        return LIMEFILE_E_XML;
    if (n)
        trim_document(&text, &n);
    if (n == 0)
        return LIMEFILE_E_XML;
    struct xml_reader r = *initial;
    int err = parse_document(&r, text, n, NULL, &why);
    if (err == LIMEFILE_E_XML && why == XML_ERROR_INVALID_TOKEN && !initial->fact) {
        r = *initial;
        err = parse_document(&r, text, n, "ISO-8859-1", &why);
    }
    return err;
}

int xmlread_values(const void *xml, size_t n, const char *const *elements,
                   struct xmlread_value *values, size_t count)
{
    const struct xml_reader initial = {.elements = elements, .values = values, .count = count};
    return read_document(xml, n, &initial);
}

int xmlread_facts(const void *xml, size_t n, xmlread_fact_fn *fact, void *context)
{
    const struct xml_reader initial = {
        .fact = fact,
        .context = context,
        .long_text = malloc(XMLREAD_FACT_MAX + 1),
    };
    int err = initial.long_text ? read_document(xml, n, &initial) : -ENOMEM;
    free(initial.long_text);
    return err;
}
