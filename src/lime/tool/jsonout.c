/* jsonout.c - JSON as a stream; jansson does the quoting */
#include "jsonout.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The length of the UTF-8 sequence that `text` begins with; 0 if it is none. */
static size_t sequence(const unsigned char *text, size_t len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80)
        return 1;
    size_t n = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc0 || text[0] > 0xf7 || n > len)
        return 0;
    uint32_t value = text[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3fu);
    }
    bool surrogate = value >= 0xd800 && value < 0xe000;
    return value < least[n] || value > 0x10ffff || surrogate ? 0 : n;
}

bool jsonout_is_utf8(const char *text, size_t len)
{
    while (len) {
        size_t n = sequence((const unsigned char *)text, len);
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
    if (value)
        json_dumpf(value, out, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    else
        fputs("null", out); /* out of memory: text is UTF-8 */
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
    for (size_t i = 0; mended && i < len;) {
        size_t n = sequence((const unsigned char *)text + i, len - i);
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
    char text[256];
    if (!f) {
        fputs("null", out);
        return;
    }
    fprintf(out,
            "{\"code\": \"%s\", \"offset\": %" PRIu64 ", \"ordinal\": %" PRIu64
            ", \"have\": %" PRIu64 ", \"want\": %" PRIu64 ", \"message\": ",
            limefile_error_word(f->code), f->offset, f->ordinal, f->have, f->want);
    limefile_finding_text(f, text, sizeof text);
    jsonout_text(out, text, strlen(text));
    putc('}', out);
}
