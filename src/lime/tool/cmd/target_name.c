/* target_name.c - form the names of converted files from those of their sources */
#define _GNU_SOURCE
#include "target_name.h"
#include "limegauge.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

/* Returns the suffix's dot, or the end of the name if it has no suffix. */
static const char *find_suffix(const char *name)
{
    const char *dot = strrchr(name, '.'), *at = dot ? dot + 1 : name;
    bool is_suffix = dot && dot > name && isalpha((unsigned char)*at);
    while (isalnum((unsigned char)*at))
        at++;
    return is_suffix && !*at ? dot : name + strlen(name);
}

/* Returns the number that ends at `end`; `end` if no number ends there. */
static const char *find_number(const char *name, const char *end)
{
    while (end > name && strchr(digits, end[-1]))
        end--;
    return end;
}

/* Prints the value of the part `part`. Returns false if it is not known. */
static bool print_part(FILE *out, const char *part, size_t n, const char *name,
                       const uint64_t *trajectory)
{
    const char *suffix = find_suffix(name), *number = find_number(name, suffix);
    const char *stem = number;
    if (number < suffix && stem > name + 1 && strchr("._-", stem[-1]))
        stem--;
    if (n == 1 && number < suffix) /* {n} */
        fwrite(number, 1, (size_t)(suffix - number), out);
    else if (n == 1 && trajectory)
        fprintf(out, "%" PRIu64, *trajectory);
    else if (strncmp(part, "name", n) == 0)
        fputs(name, out);
    else if (strncmp(part, "stem", n) == 0)
        fwrite(name, 1, (size_t)(stem - name), out);
    else
        fputs(*suffix ? suffix + 1 : "", out);
    return n > 1 || number < suffix || trajectory;
}

const char *target_name_check(const char *pattern)
{
    static const char *const parts[] = {"{name}", "{stem}", "{n}", "{ext}"};
    if (!*pattern || strchr(pattern, '/'))
        return "a file name without '/'";
    for (const char *at = pattern; (at = strpbrk(at, "{}"));) {
        size_t n = 0;
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            if (strncmp(at, parts[i], strlen(parts[i])) == 0)
                n = strlen(parts[i]);
        if (n == 0)
            return "a name with {stem}, {n}, {ext}, {name}";
        at += n;
    }
    return NULL;
}

bool target_name_needs_trajectory(const char *pattern, const char *name)
{
    const char *suffix = find_suffix(name);
    return strstr(pattern, "{n}") && find_number(name, suffix) == suffix;
}

char *target_name_form(const char *pattern, const char *name, const uint64_t *trajectory)
{
    char *text = NULL;
    size_t bytes;
    bool is_known = true;
    FILE *out = open_memstream(&text, &bytes);
    for (const char *at = pattern; out && *at;) {
        size_t n = strcspn(at, "{");
        fwrite(at, 1, n, out);
        at += n;
        if (!*at)
            break;
        n = strcspn(at, "}");
        is_known = print_part(out, at + 1, n - 1, name, trajectory) && is_known;
        at += n + 1;
    }
    if (!out || fclose(out) != 0 || is_known)
        return text;
    free(text);
    errno = ENODATA;
    return NULL;
}

char *target_name_default(const char *name, const char *format)
{
    const char *suffix = find_suffix(name);
    bool is_format =
        strcmp(suffix, ".lime") == 0 || (*suffix && limefile_gauge_format_by_name(suffix + 1));
    char *text;
    int n = (int)(is_format ? (size_t)(suffix - name) : strlen(name));
    return asprintf(&text, "%.*s.%s", n, name, format) < 0 ? NULL : text;
}
