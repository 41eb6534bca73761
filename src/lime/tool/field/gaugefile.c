/* gaugefile.c - opening a configuration, whatever its format */
#include "gaugefile.h"
#include "container.h"
#include "select.h"
#include "tool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* The record's ordinal. */
static int select_ordinal(const struct gaugefile *f, const char *word, uint64_t *ordinal)
{
    struct container c = {.path = f->path};
    struct limefile_record record;
    int err = limefile_index_build(f->source, &c.index);
    if (err) {
        message_code(f->path, "index", err);
        return TOOL_BAD;
    }
    bool found = select_record(&c, word, false, &record);
    if (found)
        *ordinal = record.ordinal;
    limefile_index_free(c.index);
    return found ? TOOL_GOOD : TOOL_BAD;
}

enum { NAMED_MAX = 8 };

/* Names the first fields that can be configurations but cannot be read as one: record
 * `ordinal`, or any for 0. Returns false if there are none. */
static bool name_unknown(const struct gaugefile *f, uint64_t ordinal)
{
    struct limefile_index *index;
    struct limefile_fields fields;
    unsigned named = 0;
    if (limefile_index_build(f->source, &index) != 0)
        return false;
    if (limefile_fields_build(f->source, index, &fields) == 0) {
        for (size_t i = 0; i < fields.count && named < NAMED_MAX; i++) {
            struct limefile_field field;
            const char *why;
            limefile_fields_get(&fields, i, &field);
            if ((ordinal && field.record.ordinal != ordinal) ||
                limefile_field_configuration(&field, &why) != LIMEFILE_CONFIGURATION_UNKNOWN)
                continue;
            message(f->path, "record %" PRIu64 ": no SU(3) gauge configuration: %s",
                    field.record.ordinal, why);
            named++;
        }
        limefile_fields_release(&fields);
    }
    limefile_index_free(index);
    return named > 0;
}

/* why: "", or what is wrong with the header. */
static void open_message(const struct gaugefile *f, uint64_t ordinal, int err, const char *why)
{
    if (err == LIMEFILE_E_GAUGE_SEVERAL)
        message(f->path,
                "several configurations; choose one with --record ('lime info' lists them)");
    else if (*why)
        message(f->path, "open: %s", why);
    else if (err != LIMEFILE_E_GAUGE_NONE || !name_unknown(f, ordinal))
        message_code(f->path, "open", err);
}

/* A volume stands for its set; a configuration is a record of the whole lattice. */
static int open_source(struct gaugefile *f)
{
    static const struct limefile_volumes_options whole = {.skips_parts = true};
    if (setfile_is(f->path)) {
        int status = setfile_open(&f->set, f->path, &whole);
        if (status == TOOL_GOOD)
            f->source = limefile_volumes_source(f->set.volumes);
        return status;
    }
    f->fd = open_with_message(f->path, O_RDONLY);
    if (f->fd < 0)
        return TOOL_UNUSABLE;
    limefile_fd_init(&f->file, f->fd);
    f->source = &f->file.source;
    return TOOL_GOOD;
}

static void close_source(struct gaugefile *f)
{
    if (f->set.volumes)
        setfile_close(&f->set);
    else
        close(f->fd);
}

int gaugefile_open(struct gaugefile *f, const char *path, const char *record)
{
    char why[LIMEFILE_GAUGE_WHY_MAX];
    uint64_t ordinal = 0;
    *f = (struct gaugefile){.path = path, .fd = -1};
    int status = open_source(f);
    if (status != TOOL_GOOD)
        return status;
    if (record)
        status = select_ordinal(f, record, &ordinal);
    int err = status ? 0 : limefile_gauge_open_explained(f->source, ordinal, &f->gauge, why);
    if (err) {
        open_message(f, ordinal, err, why);
        status = TOOL_UNUSABLE;
    }
    if (status != TOOL_GOOD)
        close_source(f);
    return status;
}

void gaugefile_close(struct gaugefile *f)
{
    limefile_gauge_close(f->gauge);
    close_source(f);
}

const int *gaugefile_inputs(const struct gaugefile *f, size_t *count)
{
    *count = f->set.volumes ? f->set.count : 1;
    return f->set.volumes ? f->set.fds : &f->fd;
}
