/* cmd_qcdml.c - lime qcdml: fill in a QCDml configuration document from a container */
#define _GNU_SOURCE
#include "qcdml.h"
#include "limeoutput.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime qcdml [OPTION]... --template T.xml FILE\n"
    "Fill in a QCDml configuration document (config2.0) from the container FILE:\n"
    "dataLFN, precision, and for each record (one per ildg-binary-data) field,\n"
    "crcCheckSum and avePlaquette. Everything else is copied from the template, byte\n"
    "for byte.\n"
    "\n"
    "      --template T.xml  the document; elements to fill in may be empty\n"
    "      --out O.xml       write the result to O.xml, not to standard output\n"
    "  -f, --force           replace O.xml if it exists; never if it is an input\n"
    "      --schema X.xsd    validate the result against this schema; if it is not\n"
    "                        valid, print the errors and write nothing\n"
    "      --lfn LFN         the logical file name (default: ildg-data-lfn in FILE,\n"
    "                        otherwise that of the template)\n"
    "      --plaquette P     the average plaquette, or P,P,... for several records\n"
    "                        (default: computed from the links if they are SU(3)\n"
    "                        matrices, otherwise from xlf-info or USQCD's XML)\n"
    "  -j, --threads N       use N processors (default: all)\n"
    "      --help            this text\n"
    "\n"
    "A document type declaration is an error, and nothing is fetched: a schema must\n"
    "be complete in one file. crcCheckSum is the cksum(1) of the data in decimal.\n"
    "FILE may also be the directory of a container in a limefs mount.\n"
    "\n"
    "Examples:\n"
    "  lime qcdml --template conf.xml --out conf.0042.xml conf.0042\n"
    "  lime qcdml --template t.xml --schema QCDmlConfig2.0.0.xsd conf.0042\n"
    "  lime check --qcdml conf.0042.xml conf.0042\n"
    "\n"
    "Exit status: 0 written; 1 FILE lacks a value, the template is not such a\n"
    "document, or the result is not valid; 2 wrong usage, or a file cannot be opened\n"
    "or is not a container.\n";

struct options {
    const char *path, *template, *out, *schema, *lfn, *plaquettes;
    unsigned threads;
    bool force;
};

static int fill_value(const char *path, struct limefile_qcdml_value *value, const char *text)
{
    int err = limefile_qcdml_set_text(value, text);
    return report_error(path, "fill in", err);
}

/* Returns true if the template has the element; else false, after a message. A missing element
 * cannot be inserted, because only the schema defines its place. line: the record's line, or 0
 * for an element outside of records. */
static bool require_element(const struct options *o, const struct limefile_qcdml_value *value,
                            size_t line, const char *name)
{
    if (value->found)
        return true;
    if (line)
        message(o->template, "line %zu: the record has no <%s>; add an empty one", line, name);
    else
        message(o->template, "no <%s>; add an empty one", name);
    return false;
}

static bool template_is_complete(const struct options *o, const struct configs *configs,
                                 const struct limefile_qcdml *d)
{
    if (!require_element(o, &d->lfn, 0, "dataLFN") ||
        !require_element(o, &d->precision, 0, "precision"))
        return false;
    for (size_t i = 0; i < d->count; i++) {
        const struct limefile_qcdml_record *record = &d->record[i];
        if (!require_element(o, &record->field, record->line, "field") ||
            !require_element(o, &record->crc, record->line, "crcCheckSum") ||
            !require_element(o, &record->plaquette, record->line, "avePlaquette"))
            return false;
    }
    if (d->count == configs->count)
        return true;
    message(o->template,
            "%zu markovStep/record for %zu ildg-binary-data in %s; one for each expected",
            d->count, configs->count, o->path);
    return false;
}

/* Returns true if catalogues accept the text as a URI: printable ASCII without blanks, and with
 * a colon. */
static bool is_uri(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    return *text != '\0' && strchr(text, ':');
}

/* Fills in the LFN from --lfn or the container; if neither has one, keeps the template's. */
static int fill_lfn(const struct options *o, const struct configs *configs,
                    struct limefile_qcdml *d)
{
    char common[LIMEFILE_LFN_MAX];
    const char *lfn = o->lfn;
    int found = configs_lfn(configs, NULL, common);
    if (!lfn && found < 0) {
        if (*d->lfn.text)
            return TOOL_GOOD;
        message(o->path, "no ildg-data-lfn; give the logical file name with --lfn");
        return TOOL_BAD;
    }
    if (!lfn && !*common) {
        message(o->path, "several ildg-data-lfn; give the logical file name with --lfn");
        return TOOL_BAD;
    }
    lfn = lfn ? lfn : common;
    if (!is_uri(lfn)) {
        message(o->path, "'%s' is not a logical file name like lfn://grid/group/project/file",
                lfn);
        return TOOL_BAD;
    }
    return fill_value(o->template, &d->lfn, lfn);
}

static int fill_precision(const struct options *o, const struct configs *configs,
                          struct limefile_qcdml *d)
{
    const char *precision = configs_precision(configs);
    if (precision)
        return fill_value(o->template, &d->precision, precision);
    message(o->path, "precision unknown: an ildg-binary-data has no ildg-format");
    return TOOL_BAD;
}

static int fill_record(const struct options *o, struct configs *configs, size_t i,
                       struct limefile_qcdml_record *record)
{
    char crc[16];
    struct limefile_field field;
    const struct config *config = &configs->config[i];
    configs_field(configs, i, &field);
    int status = configs_plaquette(configs, i);
    if (!status && !config->origin) {
        message(o->path, "record %" PRIu32 ": plaquette unknown; give it with --plaquette",
                config->ordinal);
        status = TOOL_BAD;
    }
    if (!status)
        status = configs_cksum(configs, i);
    snprintf(crc, sizeof crc, "%" PRIu32, config->cksum);
    if (!status)
        status = fill_value(o->template, &record->field, field.name);
    if (!status)
        status = fill_value(o->template, &record->crc, crc);
    return status ? status : fill_value(o->template, &record->plaquette, config->plaquette);
}

/* Parses --plaquette "P,P,...", one number for each configuration. */
static int parse_plaquettes(const struct options *o, struct configs *configs)
{
    const char *text = o->plaquettes;
    struct limefile_physics_stated value;
    size_t i = 0;
    for (; text && i < configs->count; i++) {
        struct config *config = &configs->config[i];
        size_t n = strcspn(text, ",");
        if (n < sizeof config->plaquette)
            memcpy(config->plaquette, text, n);
        if (n >= sizeof config->plaquette || !plaquette_parse(config->plaquette, &value))
            return value_error(&cmd_qcdml, "--plaquette", NULL, o->plaquettes,
                               "numbers separated by commas");
        config->origin = "--plaquette";
        text = text[n] ? text + n + 1 : NULL;
    }
    if (o->plaquettes && (text || i != configs->count))
        return usage_error(&cmd_qcdml,
                           "--plaquette %s: %s has %zu ildg-binary-data: one number for each",
                           o->plaquettes, o->path, configs->count);
    return TOOL_GOOD;
}

static int fill_document(const struct options *o, struct configs *configs,
                         struct limefile_qcdml *d)
{
    int status = parse_plaquettes(o, configs);
    if (!status && !template_is_complete(o, configs, d))
        status = TOOL_BAD;
    if (!status)
        status = fill_lfn(o, configs, d);
    if (!status)
        status = fill_precision(o, configs, d);
    progress_begin(&configs->progress, "qcdml", configs->bytes);
    for (size_t i = 0; !status && i < configs->count; i++)
        status = fill_record(o, configs, i, &d->record[i]);
    progress_end(&configs->progress);
    return status;
}

static void report_schema_error(void *context, size_t line, const char *text)
{
    if (line)
        message(context, "line %zu: %s", line, text);
    else
        message(context, "%s", text);
}

static int validate_document(const struct options *o, const char *xml, size_t n)
{
    char *schema;
    size_t schema_n;
    const char *name = o->out ? o->out : o->template;
    int status = document_read(o->schema, &schema, &schema_n);
    if (status)
        return status;
    int valid =
        limefile_qcdml_validate(xml, n, schema, schema_n, report_schema_error, (void *)name);
    if (valid == 0)
        message(name, "not valid by the schema %s; nothing was written", o->schema);
    else if (valid == LIMEFILE_E_XML)
        message(o->schema, "not a usable schema (it must be complete in one file)");
    else if (valid < 0 && valid != -ENOSYS)
        message_code(o->schema, "validate", valid);
    free(schema);
    return valid == 1 ? TOOL_GOOD : TOOL_BAD;
}

/* Opens the output. Also opens the inputs, so that limefile_output_open() can compare the
 * files: the output must not replace an input. */
static int open_document_output(const struct options *o, struct limefile_output *out)
{
    const char *const paths[] = {o->path, o->template, o->schema};
    int inputs[3];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        int fd = paths[i] ? open(paths[i], O_PATH | O_CLOEXEC) : -1;
        if (fd >= 0)
            inputs[count++] = fd;
    }
    int err = limefile_output_open(out, o->out, o->force, inputs, count);
    while (count > 0)
        close(inputs[--count]);
    return report_output_error(o->out, "create", err);
}

static int write_document(const struct options *o, struct limefile_output *out, const char *xml,
                          size_t n)
{
    if (!o->out) {
        fwrite(xml, 1, n, stdout);
        return TOOL_GOOD; /* main() reports a failed write */
    }
    int err = limefile_fd_write(out->fd, xml, n, 0);
    if (!err)
        err = limefile_output_commit(out);
    return report_output_error(o->out, "write", err);
}

static int finish_document(const struct options *o, const struct limefile_qcdml *d,
                           struct limefile_output *out)
{
    char *xml;
    size_t n;
    int err = limefile_qcdml_write(d, &xml, &n);
    if (err)
        return report_error(o->template, "fill in", err);
    int status = o->schema ? validate_document(o, xml, n) : TOOL_GOOD;
    if (!status)
        status = write_document(o, out, xml, n);
    free(xml);
    return status;
}

static int fill_from_container(const struct options *o, struct limefile_qcdml *document,
                               struct limefile_output *out)
{
    struct configs configs;
    int status = configs_open(&configs, o->path, o->threads);
    if (status)
        return status;
    status = fill_document(o, &configs, document);
    configs_close(&configs);
    return status ? status : finish_document(o, document, out);
}

static int make_document(const struct options *o, const char *text, size_t n)
{
    struct limefile_qcdml document;
    struct limefile_output out;
    int status = document_parse(o->template, text, n, &document);
    if (status)
        return status;
    status = o->out ? open_document_output(o, &out) : TOOL_GOOD;
    if (!status) {
        status = fill_from_container(o, &document, &out);
        if (o->out)
            limefile_output_abort(&out);
    }
    limefile_qcdml_release(&document);
    return status;
}

static struct options options;

static const struct option_rule rules[] = {
    TEXT_RULE("template", 0, &options.template),
    TEXT_RULE("out", 0, &options.out),
    TEXT_RULE("schema", 0, &options.schema),
    FLAG_RULE("force", 'f', &options.force),
    TEXT_RULE("lfn", 0, &options.lfn),
    TEXT_RULE("plaquette", 0, &options.plaquettes),
    THREADS_RULE(&options.threads),
    {NULL},
};

static int run_qcdml(int count, char **paths)
{
    char *text;
    size_t n;
    if (!options.template)
        return usage_error(&cmd_qcdml, "--template is required");
    if (count != 1)
        return usage_error(&cmd_qcdml, "one FILE expected");
    options.path = paths[0];
    int status = document_read(options.template, &text, &n);
    if (!status)
        status = make_document(&options, text, n);
    free(text);
    return status;
}

const struct command cmd_qcdml = {
    "qcdml", "fill in a QCDml document", help, run_qcdml, rules, ANY_OPERANDS, NULL};
