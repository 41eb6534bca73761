/* size.c - numbers of the command line */
#include "size.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse(const char *text, const char *units, int64_t least, int64_t most,
                  int64_t *value)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    int64_t result = number;
    if (errno)
        return false;
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit && end[1] == '\0') {
        int shift = 10 * (1 + (int)(unit - units) / 2);
        if (__builtin_mul_overflow(result, INT64_C(1) << shift, &result))
            return false;
    } else if (*end) {
        return false;
    }
    *value = result;
    return result >= least && result <= most;
}

bool bench_size_parse(const char *text, int64_t least, int64_t most, int64_t *value)
{
    return parse(text, "kKmMgGtT", least, most, value);
}

bool bench_number_parse(const char *text, int64_t least, int64_t most, int64_t *value)
{
    return parse(text, "", least, most, value);
}

bool bench_seconds_parse(const char *text, double *value)
{
    char *end;
    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value) && *value >= 0 && *value <= 86400;
}

bool bench_extents_parse(const char *text, int n, int *extents)
{
    for (int i = 0; i < n; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        errno = 0;
        long value = strtol(text, &end, 10);
        if (errno || value < 1 || value > INT_MAX || *end != (i == n - 1 ? '\0' : 'x'))
            return false;
        extents[i] = (int)value;
        text = end + 1;
    }
    return true;
}

const char *bench_size_text(double bytes, char text[BENCH_SIZE_TEXT])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0, last = (int)(sizeof units / sizeof *units) - 1;
    while (bytes >= 999.5 && unit < last) {
        bytes /= 1000;
        unit++;
    }
    int digits = unit == 0 || bytes >= 99.95 ? 0 : 1;
    snprintf(text, BENCH_SIZE_TEXT, "%.*f %s", digits, bytes, units[unit]);
    return text;
}
