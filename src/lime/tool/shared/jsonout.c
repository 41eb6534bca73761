/* jsonout.c - print JSON that jansson has built */
#define _GNU_SOURCE
#include "jsonout.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool jsonout_is_utf8(const char *text)
{
    uint32_t code;
    size_t n = 1;
    for (size_t len = strlen(text); n && len; text += n, len -= n)
        n = limefile_utf8_decode(text, len, &code);
    return n != 0;
}

json_t *jsonout_string(const char *text)
{
    if (!text || jsonout_is_utf8(text))
        return json_string(text);
    size_t len = strlen(text), filled = 0;
    char *escaped = malloc(3 * len + 1);
    uint32_t code;
    for (size_t i = 0; escaped && i < len;) {
        size_t n = limefile_utf8_decode(text + i, len - i, &code);
        if (n == 0)
            filled += (size_t)sprintf(escaped + filled, "%%%02X", (unsigned char)text[i]);
        else
            memcpy(escaped + filled, text + i, n);
        filled += n;
        i += n ? n : 1;
    }
    json_t *value = json_stringn(escaped, filled);
    free(escaped);
    return value;
}

json_t *jsonout_string_or_null(const char *text)
{
    return text && *text ? jsonout_string(text) : json_null();
}

json_t *jsonout_integer(uint64_t value)
{
    return value > INT64_MAX ? json_real((double)value) : json_integer((json_int_t)value);
}

json_t *jsonout_integer_or_null(uint64_t value)
{
    return value ? jsonout_integer(value) : json_null();
}

json_t *jsonout_integers(const uint64_t *values, unsigned count)
{
    json_t *list = count ? json_array() : json_null();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, jsonout_integer(values[i]));
    return list;
}

json_t *jsonout_hex(uint32_t value)
{
    return json_sprintf("%08" PRIx32, value);
}

static json_t *finding_value_json(const struct limefile_finding *f, uint64_t value)
{
    if (f->code == LIMEFILE_D_CHECKSUM) /* the value has two sums, of 32 bits each */
        return json_sprintf("%08" PRIx32 " %08" PRIx32, (uint32_t)(value >> 32),
                            (uint32_t)value);
    return jsonout_integer(value);
}

json_t *jsonout_finding(const struct limefile_finding *f)
{
    char text[512];
    if (!f)
        return json_null();
    limefile_finding_text(f, text, sizeof text);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:b, s:o}", "code", limefile_error_word(f->code), "offset",
        jsonout_integer(f->offset), "ordinal", jsonout_integer(f->ordinal), "have",
        finding_value_json(f, f->have), "want", finding_value_json(f, f->want), "harmless",
        limefile_is_harmless(f->code), "message", jsonout_string(text));
}

static void print_json_value(FILE *out, json_t *value, size_t flags)
{
    flags |= JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17);
    char *line = value ? json_dumps(value, flags) : NULL;
    const char *c = line ? line : "null";
    while (*c) {
        size_t plain = strcspn(c, "\x7f");
        fwrite(c, 1, plain, out);
        for (c += plain; *c == 0x7f; c++) /* jansson does not escape DEL */
            fputs("\\u007f", out);
    }
    free(line);
    json_decref(value);
}

void jsonout_print(FILE *out, json_t *value)
{
    print_json_value(out, value, 0);
}

void jsonout_element(size_t i, json_t *value)
{
    fputs(i ? ", " : "", stdout);
    jsonout_print(stdout, value);
}

void jsonout_members(const char *before, json_t *members, const char *after)
{
    fputs(before, stdout);
    print_json_value(stdout, members, JSON_EMBED);
    fputs(after, stdout);
}

/* ---- lists that are printed later ---- */

int jsonout_list_create(FILE **list)
{
    int fd = memfd_create("lime-json", MFD_CLOEXEC);
    *list = fd < 0 ? NULL : fdopen(fd, "w+");
    int err = *list ? 0 : -errno;
    if (err && fd >= 0)
        close(fd);
    return err;
}

void jsonout_list_release(FILE *list)
{
    if (list)
        fclose(list);
}

void jsonout_list_add(FILE *list, json_t *value)
{
    fputs(", ", list);
    jsonout_print(list, value);
}

void jsonout_list_print(const char *name, FILE *list)
{
    char text[BUFSIZ];
    printf(", \"%s\": [", name);
    if (list)
        fseek(list, 2, SEEK_SET); /* skip the comma before the first element */
    for (size_t n; list && (n = fread(text, 1, sizeof text, list)) > 0;)
        fwrite(text, 1, n, stdout);
    putchar(']');
}
