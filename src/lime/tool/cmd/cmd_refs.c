/*
 * cmd_refs.c - lime refs: describe many configurations as one array, by reference
 *
 * Examines all files first, so that it writes nothing if one of them does not fit. The result
 * is the Zarr export of the first file with an additional first dimension, "config", and with
 * the offset of each chunk in each file.
 */
#define _GNU_SOURCE
#include "container.h"
#include "files.h"
#include "limeexport.h"
#include "limeoutput.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct refs_options {
    const char *record; /* NULL: the only field */
    bool as_type;
    const char *prefix; /* NULL: absolute paths */
};

struct refs_file {
    char *url;
    uint64_t data_offset;
};

/* Set options and zero the rest before use. */
struct refs {
    const struct refs_options *options;
    struct refs_file *file;
    size_t count, capacity;
    char *first; /* the path of the first file */
    struct limefile_array array;
    struct limefile_export *export; /* the Zarr export of the first file */
    bool has_braces;                /* some URL contains a delimiter of jinja2 templates */
};

enum {
    LISTED_MAX = 20,
    SHAPE_MAX = 24 * LIMEFILE_ARRAY_DIMS_MAX + 16,
};

/* Finds the only field whose data are an array. Returns false after a message. */
static bool find_only_field(const char *path, const struct limefile_fields *fields,
                            struct limefile_field *out)
{
    char list[LISTED_MAX * 22 + 8] = "";
    struct limefile_field field;
    struct limefile_array array;
    size_t used = 0;
    uint64_t found = 0;
    for (size_t i = 0; i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        if (limefile_array_from_field(&field, &array) != 0)
            continue;
        if (found++ == 0)
            *out = field;
        if (found <= LISTED_MAX)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%" PRIu64,
                                     found > 1 ? ", " : "", field.record.ordinal);
    }
    if (found == 0)
        message(path, "no field with a known site size");
    else if (found > 1)
        message(path, "%" PRIu64 " records are fields; choose one with --record: %s%s", found,
                list, found > LISTED_MAX ? ", ..." : "");
    return found == 1;
}

static bool find_chosen_field(const struct refs *refs, const struct container *c,
                              const struct limefile_fields *fields, struct limefile_field *out)
{
    struct limefile_record record;
    struct limefile_array array;
    if (!refs->options->record)
        return find_only_field(c->path, fields, out);
    if (!select_record(c, refs->options->record, refs->options->as_type, &record))
        return false;
    if (limefile_fields_find(fields, record.ordinal, out) &&
        limefile_array_from_field(out, &array) == 0)
        return true;
    message(c->path, "record %" PRIu64 ": not a field with a known site size", record.ordinal);
    return false;
}

/* Returns the URL of a file, or NULL. The caller frees the URL. */
static char *make_url(const struct refs_options *options, const char *path)
{
    char *url = NULL;
    if (!options->prefix)
        return realpath(path, NULL);
    return asprintf(&url, "%s%s", options->prefix, path) < 0 ? NULL : url;
}

/* True if jinja2 would parse a part of the URL as a template. */
static bool has_braces(const char *url)
{
    for (const char *c = strchr(url, '{'); c; c = strchr(c + 1, '{'))
        if (c[1] && strchr("{%#", c[1]))
            return true;
    return false;
}

static bool add_refs_file(struct refs *refs, const char *path, uint64_t data_offset)
{
    if (!limefile_reserve(&refs->file, &refs->capacity, refs->count + 1, sizeof *refs->file)) {
        message_code(path, "list", -ENOMEM);
        return false;
    }
    errno = ENOMEM;
    char *url = make_url(refs->options, path);
    if (!url) {
        message_code(path, "resolve", -errno);
        return false;
    }
    if (!jsonout_is_utf8(url)) {
        message(path, "the name is not UTF-8; JSON cannot hold it");
        free(url);
        return false;
    }
    refs->file[refs->count++] = (struct refs_file){url, data_offset};
    refs->has_braces = refs->has_braces || has_braces(url);
    return true;
}

static const char *format_shape(const struct limefile_array *a, char out[SHAPE_MAX])
{
    int n = snprintf(out, SHAPE_MAX, "(");
    for (unsigned i = 0; i < a->dims; i++)
        n += snprintf(out + n, SHAPE_MAX - (size_t)n, "%s%" PRIu64, i ? ", " : "", a->shape[i]);
    snprintf(out + n, SHAPE_MAX - (size_t)n, ") of %s%s",
             a->precision == 64   ? "double"
             : a->precision == 32 ? "single"
                                  : "bytes",
             a->complex ? " complex" : "");
    return out;
}

static bool is_same_array(const struct limefile_array *a, const struct limefile_array *b)
{
    return a->dims == b->dims && a->lattice == b->lattice && a->precision == b->precision &&
           a->complex == b->complex &&
           memcmp(a->shape, b->shape, a->dims * sizeof *a->shape) == 0;
}

static void refs_release(struct refs *refs)
{
    for (size_t i = 0; i < refs->count; i++)
        free(refs->file[i].url);
    free(refs->file);
    free(refs->first);
    limefile_export_close(refs->export);
    *refs = (struct refs){.options = refs->options};
}

/* Adds the field of a file. The first field defines the array that all others must have. */
static bool add_refs_field(struct refs *refs, const char *path, struct limefile_field *field)
{
    const struct limefile_export_spec zarr = {.kind = LIMEFILE_EXPORT_ZARR};
    struct limefile_array array;
    char text[SHAPE_MAX], first_text[SHAPE_MAX];
    int err = limefile_array_from_field(field, &array);
    if (!err && refs->count == 0) {
        refs_release(refs); /* what is left of a file that was left out */
        refs->array = array;
        refs->first = strdup(path);
        err = refs->first ? limefile_export_open(field, &zarr, &refs->export) : -ENOMEM;
    }
    if (err) {
        message_code(path, "read", err);
        return false;
    }
    if (!is_same_array(&array, &refs->array)) {
        message(path, "its array is %s, that of %s is %s", format_shape(&array, text),
                refs->first, format_shape(&refs->array, first_text));
        return false;
    }
    return add_refs_file(refs, path, field->record.data_offset);
}

/* In a mount, the data of a record are a file. */
static bool add_mounted_field(struct refs *refs, const char *path, struct limefile_field *field)
{
    char name[LIMEFILE_NAME_MAX + 1], *file;
    limefile_name_format(&field->record, name);
    field->record.data_offset = 0;
    if (asprintf(&file, "%s/%s", path, name) < 0) {
        message_code(path, "list", -ENOMEM);
        return false;
    }
    bool good = add_refs_field(refs, file, field);
    free(file);
    return good;
}

static int refs_add(struct refs *refs, const char *path)
{
    struct container c;
    struct limefile_fields fields;
    struct limefile_field field;
    int status = container_open_or_mounted(&c, path);
    if (status != TOOL_GOOD)
        return status;
    if (c.adapter) {
        message(path,
                "a %s file, whose data are not in the order of an array; "
                "use 'lime convert --to ildg' first",
                c.format);
        container_close(&c);
        return TOOL_BAD;
    }
    status = container_report_fault(&c);
    if (!status)
        status = report_error(path, "read", limefile_fields_build(c.source, c.index, &fields));
    if (!status) {
        bool good = find_chosen_field(refs, &c, &fields, &field) &&
                    (c.mounted ? add_mounted_field : add_refs_field)(refs, path, &field);
        limefile_fields_release(&fields);
        status = good ? TOOL_GOOD : TOOL_BAD;
    }
    container_close(&c);
    return status;
}

/* Parses a JSON file in the first file's Zarr export. dir: the directory of that file in the
 * export; NULL: the top. Returns NULL if memory is exhausted. */
static json_t *read_export_text(const struct refs *refs, const char *dir, const char *name)
{
    struct limefile_export_entry entry;
    struct limefile_export_range piece;
    uint64_t number, parent = 0;
    if (dir && limefile_export_find(refs->export, 0, dir, &number))
        parent = number + 1;
    if (!limefile_export_find(refs->export, parent, name, &number))
        return NULL;
    limefile_export_entry(refs->export, number, &entry);
    limefile_export_range(refs->export, number, 0, &piece); /* one piece, in memory */
    return json_loadb((const char *)piece.own, (size_t)entry.bytes, 0, NULL);
}

/* Prints a member whose value is a string with the JSON text of `value`. Releases `value`.
 * Returns false if `value` is NULL or memory is exhausted. */
static bool print_text_member(const char *key, json_t *value, const char *after)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    if (text)
        jsonout_members("", json_pack("{s:o}", key, jsonout_string(text)), after);
    free(text);
    json_decref(value);
    return text != NULL;
}

static bool print_metadata(const struct refs *refs)
{
    json_t *array = read_export_text(refs, "field", ".zarray");
    json_t *names = read_export_text(refs, "field", ".zattrs");
    json_t *about = read_export_text(refs, NULL, ".zattrs");
    bool good =
        array && names && about &&
        json_array_insert_new(json_object_get(array, "shape"), 0,
                              json_integer((json_int_t)refs->count)) == 0 &&
        json_array_insert_new(json_object_get(array, "chunks"), 0, json_integer(1)) == 0 &&
        json_array_insert_new(json_object_get(names, "_ARRAY_DIMENSIONS"), 0,
                              json_string("config")) == 0;
    if (!good) {
        json_decref(array);
        json_decref(names);
        json_decref(about);
        return false;
    }
    json_object_del(about, "record"); /* true only for the first file */
    json_object_del(about, "scidac_checksum");
    good = print_text_member(".zgroup", read_export_text(refs, NULL, ".zgroup"), ",\n");
    good = print_text_member(".zattrs", about, ",\n") && good;
    good = print_text_member("field/.zarray", array, ",\n") && good;
    return print_text_member("field/.zattrs", names, "") && good;
}

/* Copies the URL; in a document with templates, writes { as {{b}} and } as {{e}}, which the
 * reader expands to braces. The caller frees the result. NULL: out of memory. */
static char *escape_braces(const char *url, bool in_templates)
{
    size_t n = strlen(url), filled = 0;
    char *out = malloc(5 * n + 1);
    for (size_t i = 0; out && i <= n; i++) {
        if (in_templates && (url[i] == '{' || url[i] == '}'))
            filled += (size_t)sprintf(out + filled, url[i] == '{' ? "{{b}}" : "{{e}}");
        else
            out[filled++] = url[i];
    }
    return out;
}

/* Prints a reference [URL, offset, length] for each chunk of file i. */
static bool print_chunks(const struct refs *refs, size_t i)
{
    const struct refs_file *file = &refs->file[i];
    struct limefile_export_entry entry;
    struct limefile_export_range piece;
    char *url = escape_braces(file->url, refs->has_braces);
    uint64_t entries = limefile_export_entry_count(refs->export);
    for (uint64_t k = 0; url && k < entries && !ferror(stdout); k++) {
        limefile_export_range(refs->export, k, 0, &piece);
        if (piece.source != LIMEFILE_EXPORT_STORED)
            continue;
        limefile_export_entry(refs->export, k, &entry);
        printf(",\n\"field/%zu.%s\": ", i, entry.name);
        jsonout_print(stdout, json_pack("[o, o, o]", jsonout_string(url),
                                        jsonout_integer(file->data_offset + piece.at),
                                        jsonout_integer(piece.bytes)));
    }
    free(url);
    return url != NULL;
}

static int refs_print(const struct refs *refs)
{
    fputs("{\"version\": 1,\n", stdout);
    if (refs->has_braces)
        fputs("\"templates\": {\"b\": \"{\", \"e\": \"}\"},\n", stdout);
    fputs("\"refs\": {\n", stdout);
    bool good = print_metadata(refs);
    for (size_t i = 0; i < refs->count && good; i++)
        good = print_chunks(refs, i);
    fputs("\n}}\n", stdout);
    if (!good)
        message(NULL, "refs: out of memory");
    return good ? TOOL_GOOD : TOOL_BAD;
}

static const char help[] =
    "Usage: lime refs [OPTION]... FILE...\n"
    "       lime refs [OPTION]... -r DIR...\n"
    "       lime refs [OPTION]... --files-from LIST [-0]\n"
    "Print references (kerchunk, version 1) that present the same field of many\n"
    "containers as one Zarr array, without a copy: for fsspec, zarr, xarray,\n"
    "kerchunk and VirtualiZarr.\n"
    "\n"
    "      --record RECORD    the record of each file: an ordinal, message.record, a\n"
    "                         type that occurs once (default: the only field)\n"
    "  -t, --type TYPE        select the record by its type\n"
    "      --url-prefix TEXT  the URL of a file is TEXT followed by FILE as given\n"
    "                         (s3://bucket/); by default it is the absolute path\n"
    "      --skip-bad         write references also if files do not fit or are\n"
    "                         damaged, without them; the exit status is 1 or 2\n"
    "  -o, --output FILE      write them to FILE, not to standard output\n"
    "  -f, --force            replace FILE\n" FILES_HELP "\n"
    "All must have the same lattice, precision and components. The array is called\n"
    "'field', its first dimension 'config' in the order of the files; a chunk is a\n"
    "time slice of one configuration. A bad file does not stop the others, but\n"
    "without --skip-bad nothing is then written.\n"
    "\n"
    "Examples:\n"
    "  lime refs -o confs.json -r run1\n"
    "  lime refs --url-prefix https://host/run1/ conf.* > confs.json\n"
    "  python3 -c 'import xarray; print(xarray.open_dataset(\"reference://\",\n"
    "      engine=\"zarr\", backend_kwargs={\"consolidated\": False,\n"
    "      \"storage_options\": {\"fo\": \"confs.json\"}}))'\n"
    "\n"
    "Exit status: 0 done; 1 a file does not fit the others, has no such field, or is\n"
    "damaged; 2 wrong usage, or a file cannot be opened or is not a container.\n";

struct options {
    struct refs_options refs;
    const char *output; /* the file for the document; NULL: stdout */
    bool skip_bad, force;
};

static struct options options;
static struct files_options files;
static struct refs refs = {.options = &options.refs};
static struct limefile_output output;
static bool output_is_input;
static int output_status; /* of writing the document */

/* Opens the output before the first file is read. */
static int open_refs_output(const struct pathlist *list)
{
    (void)list;
    if (!options.output)
        return TOOL_GOOD;
    const char *name = files.paths.list;
    int names =
        name ? open(strcmp(name, "-") == 0 ? "/dev/stdin" : name, O_PATH | O_CLOEXEC) : -1;
    int err = limefile_output_open(&output, options.output, options.force, &names, names >= 0);
    if (names >= 0)
        close(names);
    return report_output_error(options.output, "create", err);
}

static bool is_refs_output(const char *path)
{
    int fd = options.output ? open(path, O_PATH | O_CLOEXEC) : -1;
    bool is_output = fd >= 0 && limefile_output_is_target(&output, fd);
    if (fd >= 0)
        close(fd);
    return is_output;
}

static int refs_task(struct file_task *task)
{
    if (is_refs_output(task->path)) {
        output_is_input = true;
        message(task->path, "both an input and the output");
        return TOOL_BAD;
    }
    int status = refs_add(&refs, task->path);
    if (status == TOOL_GOOD && task->json) {
        const struct refs_file *file = &refs.file[refs.count - 1];
        task->members = json_pack("{s:o, s:o}", "url", jsonout_string(file->url), "offset",
                                  jsonout_integer(file->data_offset));
    }
    return status;
}

/* Writes the document to the file --output. */
static int write_refs_file(void)
{
    FILE *saved = stdout, *file = fdopen(dup(output.fd), "w");
    if (!file)
        return report_error(options.output, "write", -errno);
    stdout = file;
    int status = refs_print(&refs);
    stdout = saved;
    bool has_failed = ferror(file) != 0;
    if (fclose(file) != 0 || has_failed)
        return report_error(options.output, "write", errno ? -errno : -EIO);
    return status
               ? status
               : report_output_error(options.output, "write", limefile_output_commit(&output));
}

/* Writes the document, unless a file does not fit and --skip-bad was not given. */
static void finish_refs(const struct files_results *results, json_t *summary,
                        char text[SUMMARY_MAX])
{
    size_t bad = results->verdicts[LIMEFILE_BAD] + results->verdicts[LIMEFILE_UNREADABLE];
    (void)summary;
    (void)text;
    bool complete = refs.count > 0 && !output_is_input && (options.skip_bad || !bad);
    output_status = results->list->count > 0 ? TOOL_BAD : TOOL_GOOD;
    if (complete && bad)
        message("refs", "%zu of %zu files left out", bad, refs.count + bad);
    if (complete)
        output_status = options.output ? write_refs_file() : refs_print(&refs);
    else
        message("refs", "nothing was written%s",
                output_is_input         ? ""
                : !results->list->count ? ": no files"
                : refs.count == 0       ? ": no file has such a field"
                                        : "; with --skip-bad, bad files are left out");
    if (options.output)
        limefile_output_abort(&output);
}

static int parse_record_option(const void *command, char *record)
{
    (void)command;
    options.refs.record = record;
    options.refs.as_type = false;
    return TOOL_GOOD;
}

static int parse_type_option(const void *command, char *type)
{
    (void)command;
    options.refs.record = type;
    options.refs.as_type = true;
    return TOOL_GOOD;
}

static const struct option_rule rules[] = {
    {"record", 0, OPTION_CALL_TEXT, .handle = parse_record_option},
    {"type", 't', OPTION_CALL_TEXT, .handle = parse_type_option},
    TEXT_RULE("url-prefix", 0, &options.refs.prefix),
    FLAG_RULE("skip-bad", 0, &options.skip_bad),
    TEXT_RULE("output", 'o', &options.output),
    FLAG_RULE("force", 'f', &options.force),
    FILES_RULES(files),
    {NULL},
};

static int run_refs(int count, char **paths)
{
    const struct files_command command = {.command = &cmd_refs,
                                          .skips_others = true,
                                          .reads_formats = true,
                                          .in_process = true,
                                          .prints_table = !options.output,
                                          .prepare = open_refs_output,
                                          .examine = refs_task,
                                          .conclude = finish_refs};
    if (files.json && !options.output)
        return usage_error(&cmd_refs, "--json requires --output");
    int status = files_command(&command, &files, count, paths);
    refs_release(&refs);
    return worse_status(status, output_status);
}

const struct command cmd_refs = {
    "refs", "print references for Zarr", help, run_refs, rules, ANY_OPERANDS, NULL};
