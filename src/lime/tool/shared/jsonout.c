/* jsonout.c - print JSON: values by jansson, or as a stream */
#define _GNU_SOURCE
#include "jsonout.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

void jsonout_begin_file(const char *path)
{
    fputs("{\"file\": ", stdout);
    jsonout_text(stdout, path, strlen(path));
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

void jsonout_word(FILE *out, const char *name, const char *text)
{
    fprintf(out, ", \"%s\": ", name);
    jsonout_print(out, jsonout_string_or_null(text));
}

void jsonout_number(FILE *out, const char *name, uint64_t value)
{
    if (value)
        fprintf(out, ", \"%s\": %" PRIu64, name, value);
    else
        fprintf(out, ", \"%s\": null", name);
}

/* ---- lists that are printed later ---- */

int jsonout_list_open(struct jsonout_list *list)
{
    int fd = memfd_create("lime-json", MFD_CLOEXEC);
    list->file = fd < 0 ? NULL : fdopen(fd, "w+");
    int err = list->file ? 0 : -errno;
    if (err && fd >= 0)
        close(fd);
    return err;
}

FILE *jsonout_list_next(struct jsonout_list *list)
{
    if (list->any)
        fputs(", ", list->file);
    list->any = true;
    return list->file;
}

void jsonout_list_print(struct jsonout_list *list)
{
    char text[BUFSIZ];
    putchar('[');
    if (list->file)
        rewind(list->file);
    for (size_t n; list->file && (n = fread(text, 1, sizeof text, list->file)) > 0;)
        fwrite(text, 1, n, stdout);
    putchar(']');
}

void jsonout_list_close(struct jsonout_list *list)
{
    if (list->file)
        fclose(list->file);
    list->file = NULL;
}
