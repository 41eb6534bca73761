/* jsonout.c - JSON as a stream; jansson does the quoting */
#include "jsonout.h"
#include "text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

bool jsonout_is_utf8(const char *text, size_t len)
{
    uint32_t code;
    while (len) {
        size_t n = limefile_text_sequence(text, len, &code);
        if (n == 0)
            return false;
        text += n;
        len -= n;
    }
    return true;
}

static void quoted(FILE *out, const char *text, size_t len)
{
    json_t *value = json_stringn(text, len);
    char *line = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    const char *c = line ? line : "null"; /* out of memory: text is UTF-8 */
    while (*c) {
        size_t plain = strcspn(c, "\x7f");
        fwrite(c, 1, plain, out);
        for (c += plain; *c == 0x7f; c++) /* to jansson an ordinary character */
            fputs("\\u007f", out);
    }
    free(line);
    json_decref(value);
}

void jsonout_text(FILE *out, const char *text, size_t len)
{
    if (jsonout_is_utf8(text, len)) {
        quoted(out, text, len);
        return;
    }
    char *mended = malloc(3 * len + 1);
    size_t filled = 0;
    uint32_t code;
    for (size_t i = 0; mended && i < len;) {
        size_t n = limefile_text_sequence(text + i, len - i, &code);
        if (n == 0)
            filled += (size_t)sprintf(mended + filled, "%%%02X", (unsigned char)text[i]);
        else
            memcpy(mended + filled, text + i, n);
        filled += n;
        i += n ? n : 1;
    }
    quoted(out, mended, filled);
    free(mended);
}

void jsonout_hex(FILE *out, const char *bytes, size_t len)
{
    putc('"', out);
    for (size_t i = 0; i < len; i++)
        fprintf(out, "%02x", (unsigned char)bytes[i]);
    putc('"', out);
}

void jsonout_finding(FILE *out, const struct limefile_finding *f)
{
    char text[512];
    if (!f) {
        fputs("null", out);
        return;
    }
    fprintf(out,
            "{\"code\": \"%s\", \"offset\": %" PRIu64 ", \"ordinal\": %" PRIu64
            ", \"have\": %" PRIu64 ", \"want\": %" PRIu64 ", \"harmless\": %s, \"message\": ",
            limefile_error_word(f->code), f->offset, f->ordinal, f->have, f->want,
            limefile_is_harmless(f->code) ? "true" : "false");
    limefile_finding_text(f, text, sizeof text);
    jsonout_text(out, text, strlen(text));
    putc('}', out);
}

void jsonout_word(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    if (text && *text)
        jsonout_text(stdout, text, strlen(text));
    else
        fputs("null", stdout);
}

void jsonout_number(const char *name, uint64_t value)
{
    if (value)
        printf(", \"%s\": %" PRIu64, name, value);
    else
        printf(", \"%s\": null", name);
}
