/* gaugefile.c - open the gauge configuration in a file of any format, or in a QIO volume set */
#define _GNU_SOURCE
#include "gaugefile.h"
#include "limedetect.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Finds the record that `word` selects (container.h). Returns an exit status. */
static int select_ordinal(const struct gaugefile *f, const char *word, uint64_t *ordinal)
{
    struct container c = {.path = f->path};
    struct limefile_record record;
    int err = limefile_index_build(f->source, &c.index);
    if (err)
        return report_error(f->path, "index", err);
    bool found = select_record(&c, word, false, &record);
    if (found)
        *ordinal = record.ordinal;
    limefile_index_free(c.index);
    return found ? TOOL_GOOD : TOOL_BAD;
}

enum { NAMED_MAX = 8, FINDING_MAX = 512 };

/* Counts the fields, at most NAMED_MAX, that may be configurations but cannot be read. If
 * ordinal is not 0, examines only that record. path: reports the fields and why; NULL: does
 * not. */
static unsigned count_unreadable_fields(struct limefile_source *source, const char *path,
                                        uint64_t ordinal)
{
    struct limefile_index *index;
    struct limefile_fields fields;
    unsigned named = 0;
    if (limefile_index_build(source, &index) != 0)
        return 0;
    if (limefile_fields_build(source, index, &fields) == 0) {
        for (size_t i = 0; i < fields.count && named < NAMED_MAX; i++) {
            struct limefile_field field;
            const char *why;
            limefile_fields_get(&fields, i, &field);
            if ((ordinal && field.record.ordinal != ordinal) ||
                limefile_field_configuration(&field, &why) != LIMEFILE_CONFIGURATION_UNKNOWN)
                continue;
            if (path)
                message(path, "record %" PRIu64 ": not an SU(3) gauge configuration: %s",
                        field.record.ordinal, why);
            named++;
        }
        limefile_fields_release(&fields);
    }
    limefile_index_free(index);
    return named;
}

/* Returns true if the file is a damaged container. path: reports the damage; NULL: does not. */
static bool is_damaged_container(struct limefile_source *source, const char *path)
{
    struct limefile_finding finding;
    char text[FINDING_MAX];
    limefile_detect_container(source, &finding);
    if (finding.code && path) {
        limefile_finding_text(&finding, text, sizeof text);
        message(path, "%s", text);
    }
    return finding.code != 0;
}

/* Prints where the list of records ends early. Returns false if it does not. */
static bool report_fault(const struct gaugefile *f)
{
    char text[FINDING_MAX];
    struct limefile_index *index;
    if (limefile_index_build(f->source, &index) != 0)
        return false;
    const struct limefile_finding *fault = limefile_index_fault(index);
    if (fault) {
        limefile_finding_text(fault, text, sizeof text);
        message(f->path, "%s", text);
    }
    limefile_index_free(index);
    return fault != NULL;
}

/* Prints why limefile_gauge_open() failed. why: what is wrong with the header, or "". */
static void explain_open(const struct gaugefile *f, uint64_t ordinal, int err, const char *why)
{
    if (err == LIMEFILE_E_GAUGE_SEVERAL)
        message(f->path,
                "several configurations; choose one with --record ('lime info' lists them)");
    else if (*why)
        message(f->path, "open: %s", why);
    else if (err != LIMEFILE_E_GAUGE_NONE ||
             !count_unreadable_fields(f->source, f->path, ordinal))
        message_code(f->path, "open", err);
}

/* Opens the file or, if its name is a volume's, the volume's set. Omits records that have only
 * a part of the lattice: they are not configurations. Returns an exit status. */
static int open_input_source(struct gaugefile *f)
{
    static const struct limefile_volumes_options whole = {.skips_parts = true};
    if (volume_set_is_name(f->path)) {
        int status = volume_set_open(&f->set, f->path, &whole);
        if (status == TOOL_GOOD)
            f->source = limefile_volumes_source(f->set.volumes);
        return status;
    }
    int err = container_open_source(&f->c, f->path);
    if (err)
        container_close(&f->c);
    f->source = f->c.source;
    return err ? TOOL_UNUSABLE : TOOL_GOOD;
}

static void close_input_source(struct gaugefile *f)
{
    if (f->set.volumes)
        volume_set_close(&f->set);
    else
        container_close(&f->c);
}

int gaugefile_open(struct gaugefile *f, const char *path, const char *record)
{
    char why[LIMEFILE_GAUGE_WHY_MAX];
    uint64_t ordinal = 0;
    *f = (struct gaugefile){.path = path};
    int status = open_input_source(f);
    if (status != TOOL_GOOD)
        return status;
    if (record)
        status = select_ordinal(f, record, &ordinal);
    int err = status ? 0 : limefile_gauge_open(f->source, ordinal, &f->gauge, why);
    if (err) {
        bool is_fault = err >= LIMEFILE_E_MAGIC && err <= LIMEFILE_E_BEGINNING;
        bool is_reported = is_fault && !f->set.volumes && report_fault(f);
        if (err == LIMEFILE_E_GAUGE_UNKNOWN && !f->set.volumes)
            is_reported = is_fault = is_damaged_container(f->source, path);
        if (!is_reported)
            explain_open(f, ordinal, err, why);
        status = is_fault || limefile_gauge_error_is_damage(err) ? TOOL_BAD : TOOL_UNUSABLE;
    }
    if (status != TOOL_GOOD)
        close_input_source(f);
    return status;
}

void gaugefile_close(struct gaugefile *f)
{
    limefile_gauge_close(f->gauge);
    close_input_source(f);
}

const int *gaugefile_inputs(const struct gaugefile *f, size_t *count)
{
    *count = f->set.volumes ? f->set.count : 1;
    return f->set.volumes ? f->set.fds : &f->c.fd;
}

bool gaugefile_probe(const char *path, bool *has_number, uint64_t *number)
{
    struct container c;
    struct limefile_gauge *g;
    *has_number = false;
    if (volume_set_is_name(path))
        return volume_set_is_first(path);
    if (access(path, R_OK) != 0)
        return true;
    int err = container_open_source(&c, path);
    bool found = true;
    if (!err) {
        err = limefile_gauge_open(c.source, 0, &g, NULL);
        found =
            (err != LIMEFILE_E_GAUGE_UNKNOWN || is_damaged_container(c.source, NULL)) &&
            (err != LIMEFILE_E_GAUGE_NONE || count_unreadable_fields(c.source, NULL, 0) > 0);
        *has_number = !err && g->has_sequence;
        *number = *has_number ? g->sequence : 0;
        if (!err)
            limefile_gauge_close(g);
    }
    container_close(&c);
    return found;
}
