/* scidac_checksum.c - format and parse the text of a scidac-checksum record */
#define _GNU_SOURCE
#include "scidac_checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int lemon_scidac_format(const struct limefile_checksum *sum, char *text)
{
    return snprintf(text, LEMON_SCIDAC_TEXT_MAX,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<scidacChecksum>\n"
                    "  <version>1.0</version>\n"
                    "  <suma>%" PRIx32 "</suma>\n"
                    "  <sumb>%" PRIx32 "</sumb>\n"
                    "</scidacChecksum>",
                    sum->suma, sum->sumb);
}

static bool is_xml_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses the number at `at`. The '<' of a tag must follow it. */
static bool parse_hex(const char *at, const char *end, uint32_t *value)
{
    int digits = 0;
    while (at < end && is_xml_space(*at))
        at++;
    if (end - at >= 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
        at += 2;
    for (*value = 0; at < end && hex_digit(*at) >= 0 && digits <= 8; at++, digits++)
        *value = *value << 4 | (uint32_t)hex_digit(*at);
    while (at < end && is_xml_space(*at))
        at++;
    return digits >= 1 && digits <= 8 && at < end && *at == '<';
}

/* Returns the name, without its namespace, of the element whose '<' is just before `at`. */
static const char *element_name(const char *at, const char *end, size_t *length)
{
    const char *name = at;
    while (at < end && !is_xml_space(*at) && *at != '>' && *at != '/') {
        if (*at == ':')
            name = at + 1;
        at++;
    }
    *length = (size_t)(at - name);
    return name;
}

static const char *skip_past(const char *at, const char *end, const char *mark)
{
    const char *found = at < end ? memmem(at, (size_t)(end - at), mark, strlen(mark)) : NULL;
    return found ? found + strlen(mark) : end;
}

int lemon_scidac_parse(const char *text, size_t n, struct limefile_checksum *sum)
{
    const char *end = text + n, *at = text;
    bool have_a = false, have_b = false;
    while ((at = skip_past(at, end, "<")) < end) {
        size_t length;
        if (end - at >= 3 && memcmp(at, "!--", 3) == 0) {
            at = skip_past(at, end, "-->");
            continue;
        }
        const char *name = element_name(at, end, &length);
        at = skip_past(at, end, ">");
        if (length != 4 || memcmp(name, "sum", 3) != 0 || at[-2] == '/')
            continue;
        if (name[3] == 'a' && !have_a)
            have_a = parse_hex(at, end, &sum->suma);
        else if (name[3] == 'b' && !have_b)
            have_b = parse_hex(at, end, &sum->sumb);
    }
    return have_a && have_b ? 0 : -1;
}
