/* text.c - decode UTF-8, make text safe for terminals, and format and compare text */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

size_t limefile_utf8_decode(const char *text, size_t len, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)text;
    *code = byte[0];
    if (byte[0] < 0x80)
        return 1;
    size_t n = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
    if (byte[0] < 0xc0 || byte[0] > 0xf7 || n > len)
        return 0;
    *code &= 0x7fu >> n;
    for (size_t i = 1; i < n; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (byte[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < least[n] || *code > 0x10ffff || surrogate ? 0 : n;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* Bidirectional controls can make a line look different from its contents. */
static bool changes_direction(uint32_t code)
{
    return code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static bool ends_line(uint32_t code)
{
    return code == 0x2028 || code == 0x2029;
}

static bool is_harmful(uint32_t code, const char *allowed)
{
    if (code < 0x80 && strchr(allowed, (int)code))
        return false;
    return is_control(code) || changes_direction(code) || ends_line(code);
}

bool limefile_text_is_harmless(const char *text, size_t len, const char *allowed)
{
    for (size_t n; len; text += n, len -= n) {
        uint32_t code;
        n = limefile_utf8_decode(text, len, &code);
        if (n == 0 || code == 0 || is_harmful(code, allowed))
            return false;
    }
    return true;
}

void limefile_text_sanitize(char *text, const char *allowed)
{
    for (size_t left = strlen(text); left;) {
        uint32_t code;
        size_t n = limefile_utf8_decode(text, left, &code);
        if (n == 0 || is_harmful(code, allowed)) {
            n = n ? n : 1;
            memset(text, '?', n);
        }
        text += n;
        left -= n;
    }
}

void limefile_text_print(const char *program, const char *format, va_list args)
{
    char line[5 * 1024];
    vsnprintf(line, sizeof line, format, args);
    limefile_text_sanitize(line, "");
    fprintf(stderr, "%s: %s\n", program, line);
}

bool limefile_sizes_are_exact;

const char *limefile_format_size(uint64_t bytes, char text[LIMEFILE_SIZE_CHARS])
{
    static const char units[] = " KMGTPE";
    double scaled = (double)bytes;
    int unit = 0;
    for (; scaled >= (unit ? 999.5 : 1024); unit++) /* 999.5 would be printed as 1000 */
        scaled /= 1024;
    if (unit == 0 || limefile_sizes_are_exact)
        snprintf(text, LIMEFILE_SIZE_CHARS, "%" PRIu64, bytes);
    else
        snprintf(text, LIMEFILE_SIZE_CHARS, "%.*f%c", scaled < 9.95, scaled, units[unit]);
    return text;
}

const char *limefile_format_bytes(uint64_t bytes, char text[LIMEFILE_SIZE_CHARS])
{
    size_t n = strlen(limefile_format_size(bytes, text));
    if (bytes < 1024 || limefile_sizes_are_exact)
        snprintf(text + n, LIMEFILE_SIZE_CHARS - n, " byte%s", bytes == 1 ? "" : "s");
    return text;
}

void limefile_text_trim(const char **text, size_t *len)
{
    while (*len && (unsigned char)**text <= ' ')
        ++*text, --*len;
    while (*len && (unsigned char)(*text)[*len - 1] <= ' ')
        --*len;
}

bool limefile_parse_number(const char *text, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value))
            return false;
    }
    *out = value;
    return len > 0;
}

static const char digits[] = "0123456789";

/* Compares the numbers, of any length, at the start of *a and *b, and skips the numbers. */
static int compare_numbers(const char **a, const char **b)
{
    *a += strspn(*a, "0");
    *b += strspn(*b, "0");
    size_t n = strspn(*a, digits), m = strspn(*b, digits);
    int order = n != m ? (n < m ? -1 : 1) : memcmp(*a, *b, n);
    *a += n;
    *b += m;
    return order;
}

int limefile_natural_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;
    int order = 0;
    while (order == 0 && (*x || *y)) {
        if (strspn(x, digits) && strspn(y, digits)) {
            order = compare_numbers(&x, &y);
        } else {
            order = (int)(unsigned char)*x - (int)(unsigned char)*y;
            x++, y++;
        }
    }
    return order ? order : strcmp(a, b);
}
