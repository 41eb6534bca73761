/* qcdml_validate.c - validate a document with an XML schema
 *
 * libxml2 is loaded by dlopen(3), because linking it would double the start time of all other
 * `lime` commands. Before libxml2 parses the document or the schema, safe_xml.c has parsed it
 * within limits, so it has no entities. load_nothing() keeps libxml2 from loading the files
 * that a schema includes, or that a document names as its schema. */
#define _GNU_SOURCE
#include "limeqcdml.h"
#include "safe_xml.h"

#include <dlfcn.h>
#include <errno.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <libxml/xmlschemas.h>
#include <stdio.h>
#include <string.h>

#if LIBXML_VERSION >= 21200
typedef const xmlError *libxml_error_ptr;
#else
typedef xmlErrorPtr libxml_error_ptr;
#endif

enum { TEXT_MAX = 512 };

/* The functions of libxml2 that this file calls. */
#define FUNCTIONS(f)                                                                           \
    f(xmlReadMemory) f(xmlFreeDoc) f(xmlSetExternalEntityLoader) f(xmlGetExternalEntityLoader) \
        f(xmlSetStructuredErrorFunc) f(xmlSchemaNewDocParserCtxt) f(xmlSchemaFreeParserCtxt)   \
            f(xmlSchemaParse) f(xmlSchemaFree) f(xmlSchemaNewValidCtxt)                        \
                f(xmlSchemaFreeValidCtxt) f(xmlSchemaSetParserStructuredErrors)                \
                    f(xmlSchemaSetValidStructuredErrors) f(xmlSchemaValidateDoc)

struct libxml {
    void *handle;
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
};

struct reporter {
    limefile_qcdml_fault_fn *fault;
    void *context;
    const char *prefix; /* "" or "schema: " */
    unsigned reported;
};

static void report_fault(const struct reporter *t, size_t line, const char *text)
{
    char message[TEXT_MAX + 32];
    snprintf(message, sizeof message, "%s%.*s", t->prefix, (int)strcspn(text, "\n"), text);
    t->fault(t->context, line, message);
}

/* Returns 0, or -ENOSYS after reporting what is missing. The library remains loaded. */
static int load_libxml2(struct libxml *x, const struct reporter *t)
{
    char text[TEXT_MAX];
    x->handle = dlopen(QCDML_LIBXML2, RTLD_NOW | RTLD_LOCAL);
    const char *missing = x->handle ? NULL : QCDML_LIBXML2;
#define LOAD(name)                                                   \
    if (!missing && !(*(void **)&x->name = dlsym(x->handle, #name))) \
        missing = #name;
    FUNCTIONS(LOAD)
    if (!missing)
        return 0;
    snprintf(text, sizeof text, "cannot load %s, which the comparison with a schema needs (%s)",
             missing, dlerror());
    report_fault(t, 0, text);
    return -ENOSYS;
}

/* ---- callbacks for libxml2 ---- */

static xmlParserInputPtr load_nothing(const char *url, const char *id, xmlParserCtxtPtr context)
{
    (void)url, (void)id, (void)context;
    return NULL;
}

/* Reports warnings, too: for libxml2, an import that load_nothing() prevents is a warning. */
static void report_schema_error(void *context, libxml_error_ptr error)
{
    struct reporter *t = context;
    if (!error || !error->message)
        return;
    t->reported++;
    report_fault(t, error->line > 0 ? (size_t)error->line : 0, error->message);
}

static void report_error(void *context, libxml_error_ptr error)
{
    if (error && error->level >= XML_ERR_ERROR)
        report_schema_error(context, error);
}

static void ignore_error(void *context, libxml_error_ptr error)
{
    (void)context, (void)error;
}

static void XMLCALL enter_element(void *context, const char *name, const char **attributes)
{
    (void)name, (void)attributes;
    safe_xml_enter(context);
}

static void XMLCALL leave_element(void *context, const char *name)
{
    (void)name;
    safe_xml_leave(context);
}

/* Returns the document. NULL: *err is -ENOMEM, or LIMEFILE_E_XML after reporting the fault. */
static xmlDocPtr read_safely(const struct libxml *x, const void *xml, size_t n,
                             const struct reporter *t, int *err)
{
    struct safe_xml limited;
    *err = safe_xml_begin(&limited);
    if (*err)
        return NULL;
    XML_SetElementHandler(limited.parser, enter_element, leave_element);
    *err = safe_xml_parse(&limited, xml, n);
    if (*err == LIMEFILE_E_XML)
        report_fault(t, limited.line, limited.why);
    if (*err)
        return NULL;
    xmlDocPtr doc = x->xmlReadMemory(xml, (int)n, NULL, NULL,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                                         XML_PARSE_BIG_LINES);
    *err = doc ? 0 : LIMEFILE_E_XML;
    if (!doc)
        report_fault(t, 0, "libxml2 cannot parse it");
    return doc;
}

/* Returns 1 if the document is valid, 0 after reporting its faults, or -ENOMEM. */
static int validate_document(const struct libxml *x, xmlDocPtr document, xmlSchemaPtr schema,
                             struct reporter *t)
{
    xmlSchemaValidCtxtPtr context = x->xmlSchemaNewValidCtxt(schema);
    if (!context)
        return -ENOMEM;
    x->xmlSchemaSetValidStructuredErrors(context, report_error, t);
    int result = x->xmlSchemaValidateDoc(context, document);
    x->xmlSchemaFreeValidCtxt(context);
    if (result != 0 && t->reported == 0)
        report_fault(t, 0, "libxml2 could not validate it");
    return result == 0 ? 1 : 0;
}

/* Returns the schema, or NULL: after reporting its faults, or out of memory. */
static xmlSchemaPtr parse_schema(const struct libxml *x, xmlDocPtr source, struct reporter *t)
{
    xmlSchemaParserCtxtPtr parser = x->xmlSchemaNewDocParserCtxt(source);
    if (!parser)
        return NULL;
    x->xmlSchemaSetParserStructuredErrors(parser, report_schema_error, t);
    xmlSchemaPtr schema = x->xmlSchemaParse(parser);
    x->xmlSchemaFreeParserCtxt(parser);
    if (schema && t->reported) {
        x->xmlSchemaFree(schema);
        schema = NULL;
    } else if (!schema && t->reported == 0) {
        report_fault(t, 0, "libxml2 cannot use it");
    }
    return schema;
}

static int validate_with(const struct libxml *x, xmlDocPtr document, xmlDocPtr source,
                         limefile_qcdml_fault_fn *fault, void *context)
{
    struct reporter in_schema = {fault, context, "schema: ", 0}, t = {fault, context, "", 0};
    xmlSchemaPtr schema = parse_schema(x, source, &in_schema);
    if (!schema)
        return LIMEFILE_E_XML;
    int result = validate_document(x, document, schema, &t);
    x->xmlSchemaFree(schema);
    return result;
}

int limefile_qcdml_validate(const void *xml, size_t n, const void *schema, size_t schema_n,
                            limefile_qcdml_fault_fn *fault, void *context)
{
    struct reporter in_schema = {fault, context, "schema: ", 0}, t = {fault, context, "", 0};
    struct libxml x;
    int err = load_libxml2(&x, &t);
    if (err)
        return err;
    xmlExternalEntityLoader old_loader = x.xmlGetExternalEntityLoader();
    x.xmlSetExternalEntityLoader(load_nothing);
    /* Without this handler libxml2 would print the errors that no other handler receives. */
    x.xmlSetStructuredErrorFunc(NULL, ignore_error);
    xmlDocPtr document = read_safely(&x, xml, n, &t, &err);
    int result = !document && err == LIMEFILE_E_XML ? 0 : err;
    xmlDocPtr source = document ? read_safely(&x, schema, schema_n, &in_schema, &err) : NULL;
    if (document)
        result = source ? validate_with(&x, document, source, fault, context) : err;
    if (source)
        x.xmlFreeDoc(source);
    if (document)
        x.xmlFreeDoc(document);
    x.xmlSetStructuredErrorFunc(NULL, NULL);
    x.xmlSetExternalEntityLoader(old_loader);
    return result;
}
