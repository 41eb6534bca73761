/* cmd_qcdml.c - lime qcdml: fill in a QCDml configuration document from a container */
#define _GNU_SOURCE
#include "qcdml.h"
#include "files.h"
#include "limeoutput.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime qcdml [OPTION]... --template T.xml FILE\n"
    "       lime qcdml [OPTION]... --template T.xml --suffix .xml FILE...\n"
    "       lime qcdml [OPTION]... FILE...\n"
    "Fill in a QCDml configuration document (config2.0) from the container FILE:\n"
    "dataLFN, precision, and for each record (one per ildg-binary-data) field,\n"
    "crcCheckSum and avePlaquette. Everything else is copied from the template, byte\n"
    "for byte.\n"
    "\n"
    "      --template T.xml   the document; elements to fill in may be empty\n"
    "      --out O.xml        write the result to O.xml, not to standard output\n"
    "      --suffix TEXT      write the result for FILE to FILE followed by TEXT\n"
    "  -f, --force            replace O.xml if it exists; never if it is an input\n"
    "      --schema X.xsd     validate the result against this schema; if it is not\n"
    "                         valid, print the errors and write nothing\n"
    "      --lfn LFN          the logical file name (default: ildg-data-lfn in FILE,\n"
    "                         otherwise that of the template)\n"
    "      --plaquette P      the average plaquette, or P,P,... for several records\n"
    "                         (default: computed from the links if they are SU(3)\n"
    "                         matrices, otherwise from xlf-info or USQCD's XML)\n" FILES_HELP
    "\n"
    "Without --template, it prints the values that it would fill in.\n"
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
    const char *template, *out, *suffix, *schema, *lfn, *plaquettes;
    bool force;
    const char *text; /* of the template, `text_n` bytes */
    size_t text_n;
    const char *path; /* the file; like `task`, set for each file */
    struct file_task *task;
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
    struct stat st;
    if (o->suffix && o->force && stat(o->out, &st) == 0 && st.st_size &&
        !file_is_other(o->out, true)) {
        message(o->out, "a container or configuration; choose another name");
        return TOOL_BAD;
    }
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

/* Sets the members of the file's JSON object. */
static void set_members(const struct options *o, const struct configs *configs)
{
    char lfn[LIMEFILE_LFN_MAX];
    bool has_lfn = configs_lfn(configs, NULL, lfn) >= 0;
    json_t *records = json_array();
    for (size_t i = 0; i < configs->count; i++) {
        const struct config *config = &configs->config[i];
        struct limefile_field field;
        configs_field(configs, i, &field);
        json_array_append_new(
            records, json_pack("{s:i, s:o, s:o, s:o}", "ordinal", (int)config->ordinal, "field",
                               jsonout_string_or_null(field.name), "crcCheckSum",
                               jsonout_integer(config->cksum), "avePlaquette",
                               jsonout_string_or_null(config->plaquette)));
    }
    o->task->members =
        json_pack("{s:o, s:o, s:o, s:o}", "dataLFN",
                  jsonout_string_or_null(o->lfn    ? o->lfn
                                         : has_lfn ? lfn
                                                   : NULL),
                  "precision", jsonout_string_or_null(configs_precision(configs)), "records",
                  records, "document", jsonout_string_or_null(o->out));
}

static const char *text_or_dash(const char *text)
{
    return text && *text ? text : "-";
}

/* Prints a line for each configuration. */
static void print_values(const struct options *o, const struct configs *configs)
{
    char lfn[LIMEFILE_LFN_MAX] = "";
    configs_lfn(configs, NULL, lfn);
    for (size_t i = 0; i < configs->count; i++) {
        const struct config *config = &configs->config[i];
        print_line(o->path,
                   "record %" PRIu32 ": crcCheckSum %" PRIu32
                   ", avePlaquette %s, precision %s, dataLFN %s",
                   config->ordinal, config->cksum, text_or_dash(config->plaquette),
                   text_or_dash(configs_precision(configs)),
                   text_or_dash(o->lfn ? o->lfn : lfn));
    }
}

/* Computes the values of all configurations, without a template. */
static int compute_values(const struct options *o, struct configs *configs)
{
    int status = parse_plaquettes(o, configs);
    progress_begin(&configs->progress, "qcdml", configs->bytes);
    for (size_t i = 0; !status && i < configs->count; i++) {
        status = configs_plaquette(configs, i);
        if (!status)
            status = configs_cksum(configs, i);
    }
    progress_end(&configs->progress);
    return status;
}

/* document: the template, or NULL. */
static int fill_from_container(const struct options *o, struct limefile_qcdml *document,
                               struct limefile_output *out)
{
    struct configs configs;
    int status = configs_open(&configs, o->path, o->task->threads);
    if (status)
        return status;
    status = document ? fill_document(o, &configs, document) : compute_values(o, &configs);
    if (!status && o->task->json)
        set_members(o, &configs);
    else if (!status && !document)
        print_values(o, &configs);
    configs_close(&configs);
    return status || !document ? status : finish_document(o, document, out);
}

static int make_document(const struct options *o)
{
    struct limefile_qcdml document;
    struct limefile_output out;
    int status = document_parse(o->template, o->text, o->text_n, &document);
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
static struct files_options files;

static const struct option_rule rules[] = {
    TEXT_RULE("template", 0, &options.template),
    TEXT_RULE("out", 0, &options.out),
    TEXT_RULE("suffix", 0, &options.suffix),
    TEXT_RULE("schema", 0, &options.schema),
    FLAG_RULE("force", 'f', &options.force),
    TEXT_RULE("lfn", 0, &options.lfn),
    TEXT_RULE("plaquette", 0, &options.plaquettes),
    FILES_RULES(files),
    {NULL},
};

static int qcdml_task(struct file_task *task)
{
    struct options one = options;
    char *out = NULL;
    one.path = task->path;
    one.task = task;
    if (one.suffix && asprintf(&out, "%s%s", task->path, one.suffix) < 0)
        return report_error(task->path, "qcdml", -ENOMEM);
    one.out = out ? out : one.out;
    int status = one.template ? make_document(&one) : fill_from_container(&one, NULL, NULL);
    free(out);
    return status;
}

/* Returns TOOL_GOOD, or the result of usage_error() for options that contradict each other. */
static int check_usage(int count)
{
    const struct options *o = &options;
    bool many = count != 1 || files.paths.recursive || files.paths.list;
    if (!o->template && (o->out || o->suffix || o->schema))
        return usage_error(&cmd_qcdml, "--out, --suffix and --schema require --template");
    if (o->out && o->suffix)
        return usage_error(&cmd_qcdml, "--out and --suffix cannot be combined");
    if (o->template && !o->suffix && many)
        return usage_error(&cmd_qcdml, "one FILE expected without --suffix");
    if (o->template && !o->out && !o->suffix && files.json)
        return usage_error(&cmd_qcdml, "--json with --template requires --out or --suffix");
    return TOOL_GOOD;
}

static int run_qcdml(int count, char **paths)
{
    const struct files_command command = {
        .command = &cmd_qcdml, .skips_others = true, .examine = qcdml_task};
    char *text = NULL;
    int status = check_usage(count);
    if (!status && options.template)
        status = document_read(options.template, &text, &options.text_n);
    options.text = text;
    if (!status)
        status = files_command(&command, &files, count, paths);
    free(text);
    return status;
}

const struct command cmd_qcdml = {
    "qcdml", "fill in a QCDml document", help, run_qcdml, rules, ANY_OPERANDS, NULL};
