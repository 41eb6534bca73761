/* headermake.c - a header that is written */
#define _GNU_SOURCE
#include "header.h"
#include "line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two places get another text. */
static char *replace(const char *text, const struct checkpoint_header *h, const char *time,
                     const char *molecules)
{
    size_t between = h->time_at + h->time_bytes, after = h->molecules_at + h->molecules_bytes;
    char *out;
    int n = asprintf(&out, "%.*s%s%.*s%s%.*s", (int)h->time_at, text, time,
                     (int)(h->molecules_at - between), text + between, molecules,
                     (int)(h->bytes - after), text + after);
    return n < 0 ? NULL : out;
}

char *checkpoint_header_renew(const char *text, const struct checkpoint_header *h, double time,
                              int64_t molecules)
{
    char as_text[CHECKPOINT_REAL_BYTES], now[CHECKPOINT_REAL_BYTES + 16], count[32];
    bool has_time = h->time_bytes > 0;
    if (memcmp(&h->time, &time, sizeof time) == 0) {
        snprintf(now, sizeof now, "%.*s", has_time ? (int)h->time_bytes : 0, text + h->time_at);
        if (h->time_bytes >= sizeof now) /* much longer than need be */
            snprintf(now, sizeof now, "%s", checkpoint_real_text(time, as_text));
    } else {
        snprintf(now, sizeof now, "%s%s", has_time ? "" : "\ncurrentTime ",
                 checkpoint_real_text(time, as_text));
    }
    snprintf(count, sizeof count, "%lld", (long long)molecules);
    return replace(text, h, now, count);
}

char *checkpoint_header_make(const LemonDomain *domain, double temperature, int64_t components,
                             int64_t molecules, enum checkpoint_format format)
{
    char real[5][CHECKPOINT_REAL_BYTES], *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    fprintf(to, "mardyn trunk 20090731\ncurrentTime\t%s\nTemperature\t%s\nLength\t%s %s %s\n",
            checkpoint_real_text(domain->time, real[0]),
            checkpoint_real_text(temperature, real[1]),
            checkpoint_real_text(domain->length[0], real[2]),
            checkpoint_real_text(domain->length[1], real[3]),
            checkpoint_real_text(domain->length[2], real[4]));
    fprintf(to, "NumberOfComponents\t%lld\n", (long long)components);
    for (int64_t i = 0; i < components; i++)
        fputs("1 0 0 0 0\n0 0 0 1 1 1 0 0\n0 0 0\n", to);
    for (int64_t i = 0; i < components * (components - 1) / 2; i++)
        fputs("1 1\n", to);
    fprintf(to, "1e+10\nNumberOfMolecules\t%lld\nMoleculeFormat\t%s\n", (long long)molecules,
            checkpoint_format_names[format]);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}
