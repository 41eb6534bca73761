/*
 * qcdml.c - read a container's configurations and QCDml documents, and compare a document with
 * its container (lime check --qcdml)
 *
 * A crcCheckSum that differs from the data's cksum(1) may be another kind of sum: HotQCD's
 * documents have the checksum of NERSC's format. If the crcCheckSum is the NERSC checksum of
 * the data, or if the data match their SciDAC checksum, the difference is only a warning.
 */
#define _GNU_SOURCE
#include "qcdml.h"
#include "jsonout.h"
#include "limegauge.h"
#include "limeildg.h"
#include "limephysics.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_config_field(const struct limefile_field *field)
{
    return strcmp(field->record.type, "ildg-binary-data") == 0;
}

static int list_configs(struct configs *configs)
{
    struct limefile_field field;
    configs->config = calloc(configs->fields.count + 1, sizeof *configs->config);
    if (!configs->config)
        return -ENOMEM;
    for (size_t i = 0; i < configs->fields.count; i++) {
        limefile_fields_get(&configs->fields, i, &field);
        if (!is_config_field(&field))
            continue;
        configs->config[configs->count++].ordinal = (uint32_t)field.record.ordinal;
        configs->bytes += field.record.bytes;
    }
    return 0;
}

int configs_open(struct configs *configs, const char *path, unsigned threads)
{
    *configs = (struct configs){.threads = threads};
    int status = container_open_or_mounted(&configs->c, path);
    if (status != TOOL_GOOD)
        return status;
    int err = limefile_fields_build(configs->c.source, configs->c.index, &configs->fields);
    if (!err)
        err = list_configs(configs);
    if (err)
        message_code(path, "read", err);
    status = err ? TOOL_BAD : container_report_fault(&configs->c);
    if (!status && configs->count == 0) {
        message(path, "no ILDG configuration (no record of type ildg-binary-data)");
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
    limefile_fields_find(&configs->fields, configs->config[i].ordinal, out);
}

int configs_cksum(struct configs *configs, size_t i)
{
    struct limefile_field field;
    struct container_data data;
    configs_field(configs, i, &field);
    int err = container_open_data(&configs->c, &field.record, &data);
    if (!err)
        err =
            limefile_record_cksum(data.source, &field.record, configs->threads, progress_count,
                                  &configs->progress, &configs->config[i].cksum);
    container_close_data(&data);
    if (err)
        message_record(configs->c.path, field.record.ordinal, err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

int configs_lfn(const struct configs *configs, const char *lfn, char common[LIMEFILE_LFN_MAX])
{
    char stated[LIMEFILE_LFN_MAX], first[LIMEFILE_LFN_MAX] = "";
    struct limefile_record record;
    bool same = true, has_equal = false;
    for (uint64_t i = 1; limefile_index_get(configs->c.index, i, &record) == 0; i++) {
        if (strcasecmp(record.type, "ildg-data-lfn") != 0 ||
            limefile_record_lfn(configs->c.source, &record, stated) != 1)
            continue;
        if (!*first)
            memcpy(first, stated, sizeof first);
        same = same && strcmp(first, stated) == 0;
        has_equal = has_equal || (lfn && strcmp(lfn, stated) == 0);
    }
    if (common)
        memcpy(common, same ? first : "", same ? sizeof first : 1);
    return !*first ? -1 : has_equal;
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

bool plaquette_parse(const char *text, struct limefile_physics_stated *out)
{
    limefile_physics_parse(out, LIMEFILE_PHYSICS_PLAQUETTE, 1, "", text, strlen(text));
    return out->is_number && text[strspn(text, "0123456789+-.eE")] == '\0';
}

/* Sets plaquette and origin if the n bytes of text are a number that fits. */
static void set_plaquette(struct config *config, const char *text, size_t n, const char *from)
{
    struct limefile_physics_stated value;
    if (n == 0 || n >= sizeof config->plaquette)
        return;
    memcpy(config->plaquette, text, n);
    config->plaquette[n] = '\0';
    if (plaquette_parse(config->plaquette, &value))
        config->origin = from;
    else
        config->plaquette[0] = '\0';
}

static int read_stated_plaquette(struct configs *configs, size_t i)
{
    struct limefile_physics_stated stated;
    struct limefile_field field;
    configs_field(configs, i, &field);
    int found =
        limefile_physics_read_plaquette(configs->c.source, configs->c.index, &field, &stated);
    if (found == 1)
        set_plaquette(&configs->config[i], stated.text, strlen(stated.text),
                      strcmp(stated.source, "xlf-info") == 0 ? "as in xlf-info"
                                                             : "as in its XML record");
    return found < 0 ? found : 0;
}

/* Computes the plaquette. It stays unknown unless the links are SU(3) matrices on a lattice of
 * four dimensions. Returns 0 or an error. */
static int compute_plaquette(struct configs *configs, size_t i)
{
    struct limefile_field field;
    struct container_data data;
    struct limefile_sites sites;
    struct limefile_sites_field context;
    struct limefile_gauge_totals totals = {.physics = {.bad_links = 1}};
    char text[PLAQUETTE_MAX];
    configs_field(configs, i, &field);
    int err = container_open_data(&configs->c, &field.record, &data);
    if (!err)
        err = limefile_sites_from_field(data.source, &field, &context, &sites);
    const struct limefile_gauge_pass pass = {
        .sites = &sites, .threads = configs->threads, .memory = LIMEFILE_GAUGE_CHECK_BYTES};
    if (!err)
        err = limefile_gauge_pass_run(&pass, &totals);
    container_close_data(&data);
    if (!err && totals.physics.bad_links == 0) {
        int n = snprintf(text, sizeof text, "%.*f", field.precision == 64 ? 12 : 8,
                         totals.physics.plaquette);
        set_plaquette(&configs->config[i], text, (size_t)n, "as computed from the links");
    }
    return err == LIMEFILE_E_STATE ? 0 : err;
}

int configs_plaquette(struct configs *configs, size_t i)
{
    int err = configs->config[i].origin ? 0 : compute_plaquette(configs, i);
    if (!err && !configs->config[i].origin)
        err = read_stated_plaquette(configs, i);
    if (err)
        message_record(configs->c.path, configs->config[i].ordinal, err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

/* Reads to the end of the file, because some files, such as those in /proc, report no size. */
static int read_document_fd(const char *path, int fd, char **text, size_t *n)
{
    *text = malloc(LIMEFILE_QCDML_BYTES_MAX + 1);
    ssize_t got =
        *text ? limefile_fd_read(fd, *text, LIMEFILE_QCDML_BYTES_MAX + 1, 0) : -ENOMEM;
    if (got < 0)
        message_code(path, "read", (int)got);
    else if (got > LIMEFILE_QCDML_BYTES_MAX)
        message(path, "larger than %d bytes", LIMEFILE_QCDML_BYTES_MAX);
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
    int fd = open_or_report(path, O_RDONLY);
    if (fd < 0)
        return TOOL_UNUSABLE;
    int status = read_document_fd(path, fd, text, n);
    close(fd);
    return status;
}

int document_parse(const char *path, const char *text, size_t n, struct limefile_qcdml *out)
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

/* NERSC's checksum of a configuration, the sum of its 32-bit words: with all rows of each link,
 * and with only the first two. */
struct nersc_sums {
    bool known;
    uint32_t all, two_rows;
};

enum { BLOCK_SITES = 4096 };

static int sum_nersc_blocks(const struct limefile_sites *sites, unsigned char *block,
                            struct nersc_sums *out)
{
    uint64_t all = limefile_sites_count(sites), n;
    int err = 0;
    for (uint64_t first = 0; !err && first < all; first += n) {
        n = all - first < BLOCK_SITES ? all - first : BLOCK_SITES;
        err = sites->read(sites->context, first, n, block);
        if (err)
            break;
        out->all += limefile_gauge_nersc_sum(block, n, sites->precision, 3);
        out->two_rows += limefile_gauge_nersc_sum(block, n, sites->precision, 2);
    }
    return err;
}

/* Sets out->known only for an SU(3) configuration. Returns 0 or an error. */
static int nersc_sum_data(struct limefile_source *source, const struct limefile_field *field,
                          struct nersc_sums *out)
{
    struct limefile_gauge *gauge;
    *out = (struct nersc_sums){.known = false};
    int err = limefile_gauge_open_field(source, field, &gauge);
    if (err)
        return err == LIMEFILE_E_GAUGE_NONE ? 0 : err;
    unsigned char *block = malloc(BLOCK_SITES * limefile_sites_bytes(&gauge->sites));
    err = block ? sum_nersc_blocks(&gauge->sites, block, out) : -ENOMEM;
    free(block);
    limefile_gauge_close(gauge);
    out->known = !err;
    return err;
}

enum { DIFFERENCES_MAX = 1000 };

struct difference {
    bool warning;
    size_t line;                      /* 0: unknown */
    uint64_t ordinal;                 /* 0: not about a record */
    const char *what;                 /* an element's name */
    const char *document, *container; /* the two values, "" if missing */
    const char *why;
};

static void print_difference(const struct qcdml_check *check, const struct difference *d)
{
    char place[64] = "", values[64 + 2 * 1100] = "";
    size_t n = 0;
    if (d->line)
        n = (size_t)snprintf(place, sizeof place, "line %zu: ", d->line);
    if (d->ordinal)
        snprintf(place + n, sizeof place - n, "record %" PRIu64 ": ", d->ordinal);
    if (*d->document && *d->container)
        snprintf(values, sizeof values, " %s, not %s", d->document, d->container);
    else if (*d->document)
        snprintf(values, sizeof values, " %s", d->document);
    message(check->document, "%s%s%s%s: %s", place, d->warning ? "warning: " : "", d->what,
            values, d->why);
}

static void store_difference(struct qcdml_check *check, const struct difference *d)
{
    if (json_array_size(check->found) < DIFFERENCES_MAX)
        json_array_append_new(
            check->found,
            json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "warning", d->warning, "what",
                      jsonout_string(d->what), "document", jsonout_string_or_null(d->document),
                      "container", jsonout_string_or_null(d->container), "why",
                      jsonout_string_or_null(d->why), "line", jsonout_integer_or_null(d->line),
                      "ordinal", jsonout_integer_or_null(d->ordinal)));
}

/* Counts the difference, prints it unless silent, and stores it for JSON. */
static void report_difference(struct qcdml_check *check, const struct difference *d)
{
    if (d->warning)
        check->warnings++;
    else
        check->differences++;
    if (!check->silent)
        print_difference(check, d);
    store_difference(check, d);
}

static void print_differences_summary(const struct qcdml_check *check)
{
    char warnings[48] = "";
    if (check->warnings)
        snprintf(warnings, sizeof warnings, "%s%zu warning%s", check->differences ? ", " : "; ",
                 check->warnings, plural(check->warnings));
    if (check->differences)
        print_line(check->document, "%zu difference%s from %s%s", check->differences,
                   plural(check->differences), check->path, warnings);
    else
        print_line(check->document, "agrees with %s: %zu record%s%s", check->path,
                   check->records, plural(check->records), warnings);
}

json_t *qcdml_check_json(const struct qcdml_check *check)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:O, s:s}", "file", jsonout_string(check->document),
                     "records", jsonout_integer(check->records), "differences",
                     jsonout_integer(check->differences), "warnings",
                     jsonout_integer(check->warnings), "found", check->found, "status",
                     !check->compared     ? "unreadable"
                     : check->differences ? "bad"
                                          : "good");
}

static const double program_tolerance = 1e-5; /* for plaquettes, as in Grid and QDP++ */

/* The state of one comparison. */
struct comparison {
    struct qcdml_check *check;
    const struct limefile_qcdml *document;
    struct configs configs;
    uint64_t ordinal; /* of the record being compared; 0: the file as a whole */
};

static void report_mismatch(const struct comparison *c, size_t line, const char *what,
                            const char *document, const char *container, const char *why)
{
    report_difference(c->check, &(struct difference){false, line, c->ordinal, what, document,
                                                     container, why});
}

/* Returns true if the document has the value; otherwise reports that it is missing. line: where
 * it should be, or 0; container: the value in the container, or "". */
static bool require_value(const struct comparison *c, const struct limefile_qcdml_value *value,
                          size_t line, const char *name, const char *container)
{
    if (!value->found)
        report_mismatch(c, line, name, "", container, "missing");
    return value->found;
}

static void compare_file_values(const struct comparison *c)
{
    char common[LIMEFILE_LFN_MAX], document[24], container[24];
    const struct limefile_qcdml_value *lfn = &c->document->lfn, *bits = &c->document->precision;
    int found = configs_lfn(&c->configs, lfn->found ? lfn->text : "", common);
    const char *data = configs_precision(&c->configs);
    if (require_value(c, lfn, 0, "dataLFN", common) && found == 0)
        report_mismatch(c, lfn->line, "dataLFN", lfn->text, common,
                        "the container has another name");
    if (require_value(c, bits, 0, "precision", data ? data : "") && data &&
        strcmp(bits->text, data) != 0)
        report_mismatch(c, bits->line, "precision", bits->text, data,
                        "the data have another precision");
    snprintf(document, sizeof document, "%zu", c->document->count);
    snprintf(container, sizeof container, "%zu", c->configs.count);
    if (c->document->count != c->configs.count)
        report_mismatch(c, 0, "records", document, container,
                        "the container has another number of ildg-binary-data");
}

/* Sets *why to the reason why a different crcCheckSum does not mean wrong data, or to NULL.
 * stated, stated_hex: the values that its text can mean. Returns 0 or an error. */
static int explain_crc_mismatch(struct comparison *c, const struct limefile_field *f,
                                uint32_t stated, uint32_t stated_hex, const char **why)
{
    struct nersc_sums nersc;
    struct limefile_field local = *f, fit;
    struct limefile_checksum sum;
    struct container_data data;
    int err = container_open_data(&c->configs.c, &local.record, &data);
    *why = NULL;
    if (!err)
        err = nersc_sum_data(data.source, &local, &nersc);
    if (!err && nersc.known &&
        (nersc.all == stated || nersc.all == stated_hex || nersc.two_rows == stated ||
         nersc.two_rows == stated_hex))
        *why = "the checksum of NERSC's format, not the data's cksum";
    if (!err && !*why && f->has_checksum) {
        int right = limefile_field_verify(data.source, &local, c->configs.threads, NULL, NULL,
                                          &fit, &sum);
        err = right < 0 && right != LIMEFILE_E_STATE ? right : 0;
        if (right == 1)
            *why = "not the data's cksum, but the data match their SciDAC checksum";
    }
    container_close_data(&data);
    return err;
}

/* Compares a crcCheckSum and reports a difference. Fails only if the data cannot be read, like
 * compare_plaquette() and compare_record(); all return an exit status. */
static int compare_crc(struct comparison *c, size_t i, const struct limefile_field *f,
                       const struct limefile_qcdml_value *value)
{
    char data[16];
    const char *why = NULL;
    uint32_t stated = 0, hex = 0, sum;
    int status = configs_cksum(&c->configs, i);
    if (status)
        return status;
    sum = c->configs.config[i].cksum;
    snprintf(data, sizeof data, "%" PRIu32, sum);
    unsigned forms = limefile_qcdml_parse_crc(value->text, &stated, &hex);
    if (forms && (stated == sum || (forms == 2 && hex == sum)))
        return TOOL_GOOD;
    int err = forms ? explain_crc_mismatch(c, f, stated, forms == 2 ? hex : stated, &why) : 0;
    if (err) {
        message_record(c->check->path, f->record.ordinal, err);
        return TOOL_BAD;
    }
    report_difference(c->check, &(struct difference){
                                    why && !c->check->strict, value->line, f->record.ordinal,
                                    "crcCheckSum", value->text, data,
                                    why     ? why
                                    : forms ? "the data differ from those of the document"
                                            : "not a 32-bit number, decimal or hexadecimal"});
    return TOOL_GOOD;
}

static int compare_plaquette(struct comparison *c, size_t i,
                             const struct limefile_qcdml_value *value)
{
    static const char name[] = "avePlaquette";
    struct limefile_physics_stated stated, data;
    const struct config *config = &c->configs.config[i];
    int status = configs_plaquette(&c->configs, i);
    if (status)
        return status;
    if (!plaquette_parse(value->text, &stated))
        report_mismatch(c, value->line, name, value->text, config->plaquette, "not a number");
    else if (config->origin && plaquette_parse(config->plaquette, &data) &&
             fabs(stated.value - data.value) >
                 program_tolerance + (stated.digit + data.digit) / 2)
        report_mismatch(c, value->line, name, value->text, config->plaquette, config->origin);
    return TOOL_GOOD;
}

static int compare_record(struct comparison *c, size_t i)
{
    const struct limefile_qcdml_record *record = &c->document->record[i];
    struct limefile_field f;
    int status = TOOL_GOOD;
    configs_field(&c->configs, i, &f);
    c->ordinal = f.record.ordinal;
    if (require_value(c, &record->field, record->line, "field", "") && *f.name &&
        strcasecmp(record->field.text, f.name) != 0)
        report_mismatch(c, record->field.line, "field", record->field.text, f.name,
                        "the container has another field");
    if (require_value(c, &record->crc, record->line, "crcCheckSum", ""))
        status = compare_crc(c, i, &f, &record->crc);
    if (!status && require_value(c, &record->plaquette, record->line, "avePlaquette", ""))
        status = compare_plaquette(c, i, &record->plaquette);
    return status;
}

static int compare_values(struct comparison *c)
{
    int status = TOOL_GOOD;
    size_t both = c->document->count < c->configs.count ? c->document->count : c->configs.count;
    compare_file_values(c);
    progress_begin(&c->configs.progress, "check", c->configs.bytes);
    for (size_t i = 0; !status && i < both; i++)
        status = compare_record(c, i);
    progress_end(&c->configs.progress);
    c->check->compared = status == TOOL_GOOD;
    return status;
}

static int compare_with_container(struct qcdml_check *check, const char *text, size_t n)
{
    struct limefile_qcdml document;
    struct comparison c = {.check = check, .document = &document};
    int status = document_parse(check->document, text, n, &document);
    if (status)
        return status;
    check->records = document.count;
    status = configs_open(&c.configs, check->path, check->threads);
    if (!status) {
        status = compare_values(&c);
        configs_close(&c.configs);
    }
    limefile_qcdml_release(&document);
    return status;
}

void qcdml_check(struct qcdml_check *check)
{
    char *text;
    size_t n;
    int status = document_read(check->document, &text, &n);
    if (!status)
        status = compare_with_container(check, text, n);
    free(text);
    if (!status && !check->silent)
        print_differences_summary(check);
    check->status = status ? status : check->differences ? TOOL_BAD : TOOL_GOOD;
}
