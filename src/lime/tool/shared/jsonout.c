/* jsonout.c - print JSON: values by jansson, or as a stream */
#define _GNU_SOURCE
#include "jsonout.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
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

static void print_list(FILE *out, const uint64_t *numbers, unsigned count)
{
    if (!count)
        fputs("null", out);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, "%s%" PRIu64 "%s", i ? ", " : "[", numbers[i], i + 1 == count ? "]" : "");
}

/* A number, or null. */
__attribute__((format(printf, 3, 4))) static void print_known(FILE *out, bool is_known,
                                                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (is_known)
        vfprintf(out, format, args);
    else
        fputs("null", out);
    va_end(args);
}

static void print_finding(FILE *out, const struct limefile_finding *f)
{
    char text[512];
    if (!f) {
        fputs("null", out);
        return;
    }
    limefile_finding_text(f, text, sizeof text);
    jsonout(out, "{code:s offset:u ordinal:u have:u want:u harmless:b message:s}",
            limefile_error_word(f->code), f->offset, f->ordinal, f->have, f->want,
            limefile_is_harmless(f->code), text);
}

static void print_kept(FILE *out, struct jsonout_list *list)
{
    char text[BUFSIZ];
    putc('[', out);
    if (list->file)
        rewind(list->file);
    for (size_t n; list->file && (n = fread(text, 1, sizeof text, list->file)) > 0;)
        fwrite(text, 1, n, out);
    putc(']', out);
}

static void print_value(FILE *out, char type, va_list *args)
{
    uint64_t number;
    const uint64_t *numbers;
    const char *text;
    double real;
    switch (type) {
    case 'u':
    case 'n':
        number = va_arg(*args, uint64_t);
        print_known(out, number || type == 'u', "%" PRIu64, number);
        break;
    case 'w':
        fprintf(out, "%u", va_arg(*args, unsigned));
        break;
    case 'i':
        fprintf(out, "%" PRId64, va_arg(*args, int64_t));
        break;
    case 'x':
        fprintf(out, "\"%08" PRIx32 "\"", va_arg(*args, uint32_t));
        break;
    case 'd':
        real = va_arg(*args, double);
        print_known(out, isfinite(real), "%.17g", real);
        break;
    case 'b':
        fputs(va_arg(*args, int) ? "true" : "false", out);
        break;
    case 'l':
        numbers = va_arg(*args, const uint64_t *);
        print_list(out, numbers, va_arg(*args, unsigned));
        break;
    case 'f':
        print_finding(out, va_arg(*args, const struct limefile_finding *));
        break;
    case 'j':
        print_kept(out, va_arg(*args, struct jsonout_list *));
        break;
    case 'r':
        fputs(va_arg(*args, const char *), out);
        break;
    case 's':
        text = va_arg(*args, const char *);
        jsonout_text(out, text, strlen(text));
        break;
    default:
        jsonout_print(out, jsonout_string_or_null(va_arg(*args, const char *)));
    }
}

void jsonout(FILE *out, const char *format, ...)
{
    va_list args;
    bool is_first = false;
    va_start(args, format);
    while (*format) {
        size_t name = strcspn(format, ":{}[] ");
        if (format[name] == ':') {
            fprintf(out, "%s\"%.*s\": ", is_first ? "" : ", ", (int)name, format);
            format += name + 1;
            is_first = false;
        } else if (name == 1) {
            print_value(out, *format++, &args);
        } else if (*format++ != ' ') {
            putc(format[-1], out);
            is_first = format[-1] == '{' || format[-1] == '[';
        }
    }
    va_end(args);
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

void jsonout_list_close(struct jsonout_list *list)
{
    if (list->file)
        fclose(list->file);
    list->file = NULL;
}
