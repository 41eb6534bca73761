/*
 * plaquette.c - the plaquette of a configuration: computed from its links, if all are SU(3)
 * matrices, or as its metadata have it
 *
 * A metadata record belongs to the data that come next: an xlf-info before them, or behind them
 * in their message; a scidac-record-xml with USQCD's <plaq> before them.
 */
#define _GNU_SOURCE
#include "configs.h"
#include "limephysics.h"
#include "tool.h"
#include "xmlread.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METADATA_MAX = 64 * 1024 };

/* ---- numbers ---- */

static size_t number_length(const char *text)
{
    return strspn(text, "0123456789+-.eE");
}

bool plaquette_parse(const char *text, double *out)
{
    char *end;
    if (!*text || text[number_length(text)])
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

double plaquette_half_digit(const char *text)
{
    char unit[24];
    size_t digits = strcspn(text, ".eE"), n = strcspn(text, "eE");
    long decimals = text[digits] == '.' ? (long)(n - digits) - 1 : 0;
    long exponent = text[n] ? strtol(text + n + 1, NULL, 10) : 0;
    snprintf(unit, sizeof unit, "1e%ld", exponent > 0 ? 0 : exponent - decimals);
    return strtod(unit, NULL) / 2;
}

static bool set(struct config *config, const char *text, size_t n, const char *from)
{
    double value;
    if (n == 0 || n >= sizeof config->plaquette)
        return false;
    memcpy(config->plaquette, text, n);
    config->plaquette[n] = '\0';
    bool good = plaquette_parse(config->plaquette, &value);
    if (good)
        config->from = from;
    else
        config->plaquette[0] = '\0';
    return good;
}

/* ---- metadata ---- */

/* "plaquette = 0.58" at the beginning of a line, or behind a comma. */
static bool set_from_text(struct config *config, const char *text)
{
    static const char name[] = "plaquette";
    for (const char *at = text; (at = strstr(at, name)); at++) {
        const char *before = at, *value = at + strlen(name);
        while (before > text && (before[-1] == ' ' || before[-1] == '\t'))
            before--;
        value += strspn(value, " \t");
        if ((before > text && !strchr("\n\r,", before[-1])) || *value != '=')
            continue;
        value += 1 + strspn(value + 1, " \t");
        size_t n = strcspn(value, " \t\r\n,");
        if (n == number_length(value) && set(config, value, n, "as xlf-info says"))
            return true;
    }
    return false;
}

static bool set_from_xml(struct config *config, const char *text, size_t n)
{
    static const char *const elements[] = {"usqcdInfo", NULL};
    struct xmlread_value value = {.name = "plaq"};
    return xmlread_values(text, n, elements, &value, 1) == 0 && value.found && !value.bad &&
           set(config, value.text, strlen(value.text), "as scidac-record-xml says");
}

static int read_record(struct configs *configs, struct config *config,
                       const struct limefile_record *record)
{
    bool is_text = strcmp(record->type, "xlf-info") == 0;
    if ((!is_text && strcmp(record->type, "scidac-record-xml") != 0) ||
        record->bytes > METADATA_MAX)
        return 0;
    size_t n = (size_t)record->bytes;
    char *text = malloc(n + 1);
    if (!text)
        return -ENOMEM;
    ssize_t got = limefile_read_full(configs->c.source, text, n, record->data_offset);
    text[got > 0 ? got : 0] = '\0';
    if (got == (ssize_t)n && is_text)
        set_from_text(config, text);
    else if (got == (ssize_t)n)
        set_from_xml(config, text, n);
    free(text);
    return got < 0 ? (int)got : (size_t)got < n ? LIMEFILE_E_SHRUNK : 0;
}

/* Records are looked at up to the data before and behind. */
static int look_around(struct configs *configs, size_t i)
{
    struct config *config = &configs->config[i];
    struct limefile_record record, data;
    struct limefile_field other;
    int err = limefile_index_get(configs->c.index, config->ordinal, &data);
    for (uint64_t at = data.ordinal - 1; !err && !config->from && at; at--) {
        if (limefile_fields_of(&configs->fields, at, &other))
            break;
        err = limefile_index_get(configs->c.index, at, &record);
        if (!err)
            err = read_record(configs, config, &record);
    }
    for (uint64_t at = data.ordinal + 1; !err && !config->from; at++) {
        if (limefile_fields_of(&configs->fields, at, &other) ||
            limefile_index_get(configs->c.index, at, &record) != 0 ||
            record.message != data.message)
            break;
        err = read_record(configs, config, &record);
    }
    return err;
}

/* ---- links ---- */

/* Of data that are no SU(3) configuration of four dimensions it stays unknown. */
static int measure(struct configs *configs, size_t i)
{
    const struct limefile_physics_options options = {.threads = configs->threads};
    struct limefile_field field;
    struct limefile_fd file;
    struct limefile_sites sites;
    struct limefile_sites_field context;
    struct limefile_physics physics = {.bad_links = 1};
    char text[PLAQUETTE_MAX];
    configs_field(configs, i, &field);
    int fd = configs_data(configs, &field.record);
    if (fd < 0)
        return fd;
    limefile_fd_init(&file, fd);
    int err = limefile_sites_of_field(&file.source, &field, &context, &sites);
    if (!err)
        err = limefile_physics_measure(&sites, &options, &physics);
    configs_done(configs, fd);
    if (!err && physics.bad_links == 0) {
        int n = snprintf(text, sizeof text, "%.*f", field.precision == 64 ? 12 : 8,
                         physics.plaquette);
        set(&configs->config[i], text, (size_t)n, "as its links have it");
    }
    return err == LIMEFILE_E_STATE ? 0 : err;
}

int configs_plaquette(struct configs *configs, size_t i)
{
    int err = configs->config[i].from ? 0 : measure(configs, i);
    if (!err && !configs->config[i].from)
        err = look_around(configs, i);
    if (err)
        message(configs->c.path, "record %" PRIu32 ": read: %s", configs->config[i].ordinal,
                limefile_strerror(err));
    return err ? TOOL_BAD : TOOL_GOOD;
}
