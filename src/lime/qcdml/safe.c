/* safe.c - parse XML without document types, within limits */
#include "safe.h"
#include "limeqcdml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void safe_refuse(struct safe *s, const char *format, ...)
{
    va_list args;
    if (s->refused)
        return;
    s->refused = true;
    s->line = XML_GetCurrentLineNumber64(s->parser);
    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args);
    va_end(args);
    XML_StopParser(s->parser, XML_FALSE);
}

bool safe_enter(struct safe *s)
{
    if (++s->depth > SAFE_DEPTH_MAX)
        safe_refuse(s, "elements are nested more than %d deep", SAFE_DEPTH_MAX);
    else if (++s->seen > SAFE_ELEMENTS_MAX)
        safe_refuse(s, "there are more than %d elements", SAFE_ELEMENTS_MAX);
    return !s->refused;
}

void safe_leave(struct safe *s)
{
    s->depth--;
}

/* QCDml needs no document type, and one could declare entities and refer to other files. */
static void XMLCALL start_doctype(void *context, const char *name, const char *system_id,
                                  const char *public_id, int has_internal_subset)
{
    (void)name, (void)system_id, (void)public_id, (void)has_internal_subset;
    safe_refuse(context, "a document type declaration (DOCTYPE) is not allowed");
}

/* Rejects documents in other encodings, because values are replaced as bytes. */
static void XMLCALL declaration(void *context, const char *version, const char *encoding,
                                int standalone)
{
    static const char *const known[] = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1"};
    bool good = !encoding;
    (void)version, (void)standalone;
    for (size_t i = 0; !good && i < sizeof known / sizeof known[0]; i++)
        good = strcasecmp(encoding, known[i]) == 0;
    if (!good)
        safe_refuse(context, "its encoding is not UTF-8, US-ASCII or ISO-8859-1");
}

int safe_begin(struct safe *s)
{
    *s = (struct safe){.parser = XML_ParserCreateNS(NULL, '|')};
    if (!s->parser)
        return -ENOMEM;
    XML_SetUserData(s->parser, s);
    XML_SetStartDoctypeDeclHandler(s->parser, start_doctype);
    XML_SetXmlDeclHandler(s->parser, declaration);
    return 0;
}

/* UTF-16 begins with a byte order mark, or with an ASCII character, one byte of which is 0. */
static bool is_wide(const unsigned char *xml, size_t n)
{
    return n >= 2 && (xml[0] >= 0xfe || xml[0] == 0 || xml[1] == 0);
}

int safe_parse(struct safe *s, const void *xml, size_t n)
{
    enum XML_Error why = XML_ERROR_NONE;
    if (n > LIMEFILE_QCDML_BYTES_MAX)
        safe_refuse(s, "it is longer than %d bytes", LIMEFILE_QCDML_BYTES_MAX);
    else if (is_wide(xml, n))
        safe_refuse(s, "its encoding is not UTF-8, US-ASCII or ISO-8859-1");
    else if (XML_Parse(s->parser, xml, (int)n, 1) != XML_STATUS_OK)
        why = XML_GetErrorCode(s->parser);
    if (why != XML_ERROR_NONE)
        safe_refuse(s, "%s", XML_ErrorString(why));
    XML_ParserFree(s->parser);
    s->parser = NULL;
    if (why == XML_ERROR_NO_MEMORY)
        return -ENOMEM;
    return s->refused ? LIMEFILE_E_XML : 0;
}
