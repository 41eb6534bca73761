/* safe_xml.c - parse XML without document types, within limits */
#include "safe_xml.h"
#include "limeqcdml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void safe_xml_stop(struct safe_xml *s, const char *format, ...)
{
    va_list args;
    if (s->stopped)
        return;
    s->stopped = true;
    s->line = XML_GetCurrentLineNumber64(s->parser);
    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args);
    va_end(args);
    XML_StopParser(s->parser, XML_FALSE);
}

bool safe_xml_enter(struct safe_xml *s)
{
    if (++s->depth > SAFE_DEPTH_MAX)
        safe_xml_stop(s, "elements are nested more than %d deep", SAFE_DEPTH_MAX);
    else if (++s->seen > SAFE_ELEMENTS_MAX)
        safe_xml_stop(s, "there are more than %d elements", SAFE_ELEMENTS_MAX);
    return !s->stopped;
}

void safe_xml_leave(struct safe_xml *s)
{
    s->depth--;
}

/* A document type could declare entities and refer to other files. QCDml does not need it. */
static void XMLCALL reject_doctype(void *context, const char *name, const char *system_id,
                                   const char *public_id, int has_internal_subset)
{
    (void)name, (void)system_id, (void)public_id, (void)has_internal_subset;
    safe_xml_stop(context, "a document type declaration (DOCTYPE) is not allowed");
}

/* Rejects encodings that are not in the list: new texts are inserted as ASCII, of which each
 * listed encoding is a superset. */
static void XMLCALL check_encoding(void *context, const char *version, const char *encoding,
                                   int standalone)
{
    static const char *const encodings[] = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1"};
    bool supported = !encoding;
    (void)version, (void)standalone;
    for (size_t i = 0; !supported && i < sizeof encodings / sizeof encodings[0]; i++)
        supported = strcasecmp(encoding, encodings[i]) == 0;
    if (!supported)
        safe_xml_stop(context, "its encoding is not UTF-8, US-ASCII or ISO-8859-1");
}

int safe_xml_begin(struct safe_xml *s)
{
    *s = (struct safe_xml){.parser = XML_ParserCreateNS(NULL, '|')};
    if (!s->parser)
        return -ENOMEM;
    XML_SetUserData(s->parser, s);
    XML_SetStartDoctypeDeclHandler(s->parser, reject_doctype);
    XML_SetXmlDeclHandler(s->parser, check_encoding);
    return 0;
}

/* UTF-16 begins with a byte order mark, or with an ASCII character that has one zero byte. */
static bool is_utf16(const unsigned char *xml, size_t n)
{
    return n >= 2 && (xml[0] >= 0xfe || xml[0] == 0 || xml[1] == 0);
}

int safe_xml_parse(struct safe_xml *s, const void *xml, size_t n)
{
    enum XML_Error error = XML_ERROR_NONE;
    if (n > LIMEFILE_QCDML_BYTES_MAX)
        safe_xml_stop(s, "it is longer than %d bytes", LIMEFILE_QCDML_BYTES_MAX);
    else if (is_utf16(xml, n))
        safe_xml_stop(s, "its encoding is not UTF-8, US-ASCII or ISO-8859-1");
    else if (XML_Parse(s->parser, xml, (int)n, 1) != XML_STATUS_OK)
        error = XML_GetErrorCode(s->parser);
    if (error != XML_ERROR_NONE)
        safe_xml_stop(s, "%s", XML_ErrorString(error));
    XML_ParserFree(s->parser);
    s->parser = NULL;
    if (error == XML_ERROR_NO_MEMORY)
        return -ENOMEM;
    return s->stopped ? LIMEFILE_E_XML : 0;
}
