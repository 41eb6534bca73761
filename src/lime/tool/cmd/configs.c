/* configs.c - the configurations in a container, their plaquettes, and QCDml documents */
#define _GNU_SOURCE
#include "configs.h"
#include "limephysics.h"
#include "mounted.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_data(const struct limefile_field *field)
{
    return strcmp(field->record.type, "ildg-binary-data") == 0;
}

/* ---- the container ---- */

static int list(struct configs *configs)
{
    struct limefile_field field;
    configs->config = calloc(configs->fields.count + 1, sizeof *configs->config);
    if (!configs->config)
        return -ENOMEM;
    for (size_t i = 0; i < configs->fields.count; i++) {
        limefile_fields_get(&configs->fields, i, &field);
        if (!is_data(&field))
            continue;
        configs->config[configs->count++].ordinal = (uint32_t)field.record.ordinal;
        configs->bytes += field.record.bytes;
    }
    return 0;
}

int configs_open(struct configs *configs, const char *path, unsigned threads)
{
    *configs = (struct configs){.threads = threads};
    int status = container_open_shown(&configs->c, path);
    if (status != TOOL_GOOD)
        return status;
    int err = limefile_fields_build(configs->c.source, configs->c.index, &configs->fields);
    if (!err)
        err = list(configs);
    if (err)
        message_code(path, "read", err);
    status = err ? TOOL_BAD : container_fault_message(&configs->c);
    if (!status && configs->count == 0) {
        message(path, "no record is ildg-binary-data: it holds no configuration of ILDG");
        status = TOOL_BAD;
    }
    if (status != TOOL_GOOD)
        configs_close(configs);
    return status;
}

void configs_close(struct configs *configs)
{
    free(configs->config);
    limefile_fields_release(&configs->fields);
    container_close(&configs->c);
}

void configs_field(const struct configs *configs, size_t i, struct limefile_field *out)
{
    limefile_fields_of(&configs->fields, configs->config[i].ordinal, out);
}

int configs_cksum(struct configs *configs, size_t i)
{
    struct limefile_field field;
    configs_field(configs, i, &field);
    int fd = container_open_data(&configs->c, &field.record);
    int err = fd < 0
                  ? fd
                  : limefile_record_cksum(fd, &field.record, configs->threads, progress_count,
                                          &configs->progress, &configs->config[i].cksum);
    if (fd >= 0)
        close(fd);
    if (err)
        message(configs->c.path, "record %" PRIu64 ": read: %s", field.record.ordinal,
                limefile_strerror(err));
    return err ? TOOL_BAD : TOOL_GOOD;
}

/* ---- what it says ---- */

int configs_lfn(const struct configs *configs, const char *lfn, char only[LIMEFILE_LFN_MAX])
{
    char said[LIMEFILE_LFN_MAX], first[LIMEFILE_LFN_MAX] = "";
    struct limefile_record record;
    bool same = true, among = false;
    for (uint64_t i = 1; limefile_index_get(configs->c.index, i, &record) == 0; i++) {
        if (strcasecmp(record.type, "ildg-data-lfn") != 0 ||
            container_read_lfn(configs->c.source, &record, said) != 1)
            continue;
        if (!*first)
            memcpy(first, said, sizeof first);
        same = same && strcmp(first, said) == 0;
        among = among || (lfn && strcmp(lfn, said) == 0);
    }
    if (only)
        memcpy(only, same ? first : "", same ? sizeof first : 1);
    return !*first ? -1 : among;
}

const char *configs_precision(const struct configs *configs)
{
    unsigned all = 0;
    for (size_t i = 0; i < configs->count; i++) {
        struct limefile_field field;
        configs_field(configs, i, &field);
        if (field.precision == 0)
            return NULL;
        all |= field.precision;
    }
    return all == 32 ? "single" : all == 64 ? "double" : "mixed";
}

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
    const struct limefile_physics_options options = {.threads = configs->threads};
    struct limefile_field field;
    struct limefile_fd file;
    struct limefile_sites sites;
    struct limefile_sites_field context;
    struct limefile_physics physics = {.bad_links = 1};
    char text[PLAQUETTE_MAX];
    configs_field(configs, i, &field);
    int fd = container_open_data(&configs->c, &field.record);
    if (fd < 0)
        return fd;
    limefile_fd_init(&file, fd);
    int err = limefile_sites_of_field(&file.source, &field, &context, &sites);
    if (!err)
        err = limefile_physics_measure(&sites, &options, &physics);
    if (fd >= 0)
        close(fd);
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

/* Files that have no size, as those of /proc, too. */
static int read_all(const char *path, int fd, char **text, size_t *n)
{
    *text = malloc(LIMEFILE_QCDML_BYTES_MAX + 1);
    ssize_t got =
        *text ? limefile_fd_read(fd, *text, LIMEFILE_QCDML_BYTES_MAX + 1, 0) : -ENOMEM;
    if (got < 0)
        message_code(path, "read", (int)got);
    else if (got > LIMEFILE_QCDML_BYTES_MAX)
        message(path, "longer than %d bytes: not read", LIMEFILE_QCDML_BYTES_MAX);
    *n = got < 0 ? 0 : (size_t)got;
    if (got >= 0 && got <= LIMEFILE_QCDML_BYTES_MAX)
        return TOOL_GOOD;
    free(*text);
    *text = NULL;
    return TOOL_UNUSABLE;
}

int document_read(const char *path, char **text, size_t *n)
{
    *text = NULL;
    int fd = open_with_message(path, O_RDONLY);
    if (fd < 0)
        return TOOL_UNUSABLE;
    int status = read_all(path, fd, text, n);
    close(fd);
    return status;
}

int document_understand(const char *path, const char *text, size_t n,
                        struct limefile_qcdml *out)
{
    int err = limefile_qcdml_parse(text, n, out);
    if (err == LIMEFILE_E_XML || err == LIMEFILE_E_XML_VALUE)
        message(path, "line %zu: %s", out->line, out->why);
    else if (err)
        message_code(path, "read", err);
    if (err)
        limefile_qcdml_release(out);
    return err ? TOOL_BAD : TOOL_GOOD;
}
