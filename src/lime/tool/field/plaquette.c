/*
 * plaquette.c - the plaquette of a configuration: computed from its links, if all are SU(3)
 * matrices, or as its metadata have it
 *
 * Which metadata these are, limephysics.h tells.
 */
#define _GNU_SOURCE
#include "configs.h"
#include "limegauge.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void set(struct config *config, const char *text, size_t n, const char *from)
{
    double value;
    if (n == 0 || n >= sizeof config->plaquette)
        return;
    memcpy(config->plaquette, text, n);
    config->plaquette[n] = '\0';
    if (plaquette_parse(config->plaquette, &value))
        config->from = from;
    else
        config->plaquette[0] = '\0';
}

/* ---- metadata ---- */

static int look_around(struct configs *configs, size_t i)
{
    struct limefile_physics_stated stated;
    struct limefile_field field;
    configs_field(configs, i, &field);
    int found =
        limefile_physics_stated_plaquette(configs->c.source, configs->c.index, &field, &stated);
    if (found == 1)
        set(&configs->config[i], stated.text, strlen(stated.text),
            strcmp(stated.where, "xlf-info") == 0 ? "as xlf-info says"
                                                  : "as its XML record says");
    return found < 0 ? found : 0;
}

/* ---- links ---- */

/* Of data that are no SU(3) configuration of four dimensions it stays unknown. */
static int measure(struct configs *configs, size_t i)
{
    struct limefile_field field;
    struct limefile_fd file;
    struct limefile_sites sites;
    struct limefile_sites_field context;
    struct limefile_gauge_totals totals = {.physics = {.bad_links = 1}};
    char text[PLAQUETTE_MAX];
    configs_field(configs, i, &field);
    int fd = configs_data(configs, &field.record);
    if (fd < 0)
        return fd;
    limefile_fd_init(&file, fd);
    int err = limefile_sites_of_field(&file.source, &field, &context, &sites);
    const struct limefile_gauge_pass pass = {
        .sites = &sites, .threads = configs->threads, .memory = LIMEFILE_GAUGE_CHECK_BYTES};
    if (!err)
        err = limefile_gauge_run(&pass, &totals);
    configs_done(configs, fd);
    if (!err && totals.physics.bad_links == 0) {
        int n = snprintf(text, sizeof text, "%.*f", field.precision == 64 ? 12 : 8,
                         totals.physics.plaquette);
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
