/* number.c - numbers as people write them */
#include "tool.h"

#include <inttypes.h>
#include <string.h>

bool number_parse(const char *text, size_t len, uint64_t *out)
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

bool number_parse_size(const char *text, size_t len, uint64_t *out)
{
    static const char units[] = "kmgtKMGT";
    unsigned power = 0;
    const char *unit = len ? memchr(units, text[len - 1], sizeof units - 1) : NULL;
    if (unit) {
        power = (unsigned)(unit - units) % 4 + 1;
        len--;
    }
    return number_parse(text, len, out) &&
           !__builtin_mul_overflow(*out, UINT64_C(1) << (10 * power), out);
}

const char *number_human(uint64_t value, char out[NUMBER_HUMAN_MAX])
{
    static const char units[] = "KMGTPE";
    if (value < 1024) {
        snprintf(out, NUMBER_HUMAN_MAX, "%" PRIu64, value);
        return out;
    }
    double scaled = (double)value / 1024;
    size_t unit = 0;
    for (; scaled >= 999.5 && unit < sizeof units - 2; unit++)
        scaled /= 1024;
    snprintf(out, NUMBER_HUMAN_MAX, scaled < 9.95 ? "%.1f%c" : "%.0f%c", scaled, units[unit]);
    return out;
}
