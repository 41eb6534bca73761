/* record_name.c - convert records to file names and back */
#include "limefile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_literal(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '/' && c != '%';
}

size_t limefile_name_encode(const char *type, size_t type_len, char *out, size_t cap)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    if (cap == 0)
        return 0;
    for (size_t i = 0; i < type_len; i++) {
        unsigned char c = (unsigned char)type[i];
        size_t need = is_literal(c) ? 1 : 3;
        if (n + need > cap - 1)
            break;
        if (need == 1) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    out[n] = '\0';
    return n;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

size_t limefile_name_decode(const char *name, size_t name_len, char *out, size_t cap)
{
    size_t n = 0;
    if (cap == 0)
        return 0;
    for (size_t i = 0; i < name_len && n < cap - 1; i++) {
        int high = -1, low = -1;
        if (name[i] == '%' && name_len - i > 2) {
            high = hex_digit(name[i + 1]);
            low = hex_digit(name[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            out[n++] = (char)(high << 4 | low);
            i += 2;
        } else {
            out[n++] = name[i];
        }
    }
    out[n] = '\0';
    return n;
}

size_t limefile_name_format(const struct limefile_record *record,
                            char out[LIMEFILE_NAME_MAX + 1])
{
    size_t n = (size_t)snprintf(out, LIMEFILE_NAME_MAX + 1, "%03" PRIu64 "-", record->ordinal);
    return n + limefile_name_encode(record->type, record->type_len, out + n,
                                    LIMEFILE_NAME_MAX + 1 - n);
}

static int find_by_ordinal(const struct limefile_index *index, const char *name,
                           struct limefile_record *out)
{
    char *end, expected[LIMEFILE_NAME_MAX + 1];
    if (name[0] < '0' || name[0] > '9')
        return LIMEFILE_E_NO_RECORD;
    uint64_t ordinal = strtoull(name, &end, 10);
    if (*end != '-')
        return LIMEFILE_E_NO_RECORD;
    int err = limefile_index_get(index, ordinal, out);
    if (err)
        return err;
    limefile_name_format(out, expected);
    return strcmp(name, expected) == 0 ? 0 : LIMEFILE_E_NO_RECORD;
}

int limefile_name_find(const struct limefile_index *index, const char *name,
                       struct limefile_record *out)
{
    if (find_by_ordinal(index, name, out) == 0)
        return 0;
    char type[LIMEFILE_TYPE_BYTES + 2]; /* one more than the limit, to detect longer types */
    uint64_t count;
    size_t len = limefile_name_decode(name, strlen(name), type, sizeof type);
    if (len == 0)
        return LIMEFILE_E_NO_RECORD;
    int err = limefile_index_by_type(index, type, len, out, &count);
    if (err)
        return err;
    return count == 1 ? 0 : LIMEFILE_E_NO_RECORD;
}
