/* jsonout.c - print JSON: values by jansson, or as a stream */
#include "jsonout.h"
#include "text.h"

#include <inttypes.h>
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

json_t *jsonout_string(const char *text, size_t len)
{
    if (jsonout_is_utf8(text, len))
        return json_stringn(text, len);
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
    json_t *value = json_stringn(mended, filled);
    free(mended);
    return value;
}

json_t *jsonout_string_or_null(const char *text)
{
    return text && *text ? jsonout_string(text, strlen(text)) : json_null();
}

void jsonout_print(FILE *out, json_t *value)
{
    size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15);
    char *line = value ? json_dumps(value, flags) : NULL;
    const char *c = line ? line : "null";
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
    jsonout_print(out, jsonout_string(text, len));
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
    jsonout_print(stdout, jsonout_string_or_null(text));
}

void jsonout_number(const char *name, uint64_t value)
{
    if (value)
        printf(", \"%s\": %" PRIu64, name, value);
    else
        printf(", \"%s\": null", name);
}
