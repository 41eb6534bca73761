/* configs.c - the configurations in a container */
#define _GNU_SOURCE
#include "configs.h"
#include "mounted.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
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
    container_close_shown(&configs->c);
}

void configs_field(const struct configs *configs, size_t i, struct limefile_field *out)
{
    limefile_fields_of(&configs->fields, configs->config[i].ordinal, out);
}

int configs_data(const struct configs *configs, struct limefile_record *record)
{
    if (!configs->c.mounted)
        return configs->c.fd;
    int fd = mounted_data(configs->c.mounted, record->ordinal);
    record->data_offset = 0;
    return fd;
}

void configs_done(const struct configs *configs, int fd)
{
    if (configs->c.mounted && fd >= 0)
        close(fd);
}

static bool count_bytes(void *context, uint64_t more)
{
    progress_add(context, more);
    return true;
}

int configs_cksum(struct configs *configs, size_t i)
{
    struct limefile_field field;
    configs_field(configs, i, &field);
    int fd = configs_data(configs, &field.record);
    int err = fd < 0 ? fd
                     : limefile_record_cksum(fd, &field.record, configs->threads, count_bytes,
                                             &configs->progress, &configs->config[i].cksum);
    configs_done(configs, fd);
    if (err)
        message(configs->c.path, "record %" PRIu64 ": read: %s", field.record.ordinal,
                limefile_strerror(err));
    return err ? TOOL_BAD : TOOL_GOOD;
}

/* ---- what it says ---- */

/* False: it says none. */
static bool read_lfn(const struct configs *configs, const struct limefile_record *record,
                     char out[LIMEFILE_LFN_MAX])
{
    char text[LIMEFILE_LFN_MAX + 64]; /* white space may surround it */
    if (record->bytes > sizeof text)
        return false;
    size_t n = (size_t)record->bytes;
    return limefile_read_full(configs->c.source, text, n, record->data_offset) == (ssize_t)n &&
           limefile_lfn_parse(text, n, out) == 0;
}

int configs_lfn(const struct configs *configs, const char *lfn, char only[LIMEFILE_LFN_MAX])
{
    char said[LIMEFILE_LFN_MAX], first[LIMEFILE_LFN_MAX] = "";
    struct limefile_record record;
    bool same = true, among = false;
    for (uint64_t i = 1; limefile_index_get(configs->c.index, i, &record) == 0; i++) {
        if (strcasecmp(record.type, "ildg-data-lfn") != 0 || !read_lfn(configs, &record, said))
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
