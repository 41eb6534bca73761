/* cmd_cat.c - lime cat: write the data of records, as stored or exported, to standard output */
#define _GNU_SOURCE
#include "container.h"
#include "record_input.h"
#include "limeexport.h"
#include "text.h"
#include "tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An open file in an export of a record, such as "3.npy" or "3.t/000" (limeexport.h). */
struct export_file {
    const struct container *c;
    struct limefile_record record; /* data_offset: in data.source */
    struct container_data data;
    struct limefile_export *export;
    uint64_t number; /* of the file in the export */
    uint64_t bytes;
    size_t site_bytes; /* of the record */
};

enum {
    BUFFER_BYTES = 256 * 1024,
    EXAMINED_BYTES = 4096, /* of a record, before it is written to a terminal */
};

/* A parsed operand. */
struct export_operand {
    struct limefile_export_spec spec;
    char *record;     /* owned */
    const char *rest; /* the path in the export's directory; NULL: the export itself */
};

/* Splits an operand like "3.npy" or "3.t/000". Returns false if it does not name an export;
 * otherwise the caller frees out->record. */
static bool parse_export_operand(const char *word, struct export_operand *out)
{
    size_t stem, len = strlen(word);
    for (const char *end = strchrnul(word, '/');; end = strchrnul(end + 1, '/')) {
        char *export = strndup(word, (size_t)(end - word));
        bool good = export && limefile_export_parse(export, &out->spec, &stem) &&
                    (*end == '\0' || limefile_export_is_directory(&out->spec));
        if (good) {
            export[stem] = '\0';
            out->record = export;
            out->rest = *end ? end + 1 : NULL;
            return true;
        }
        free(export);
        if (end == word + len)
            return false;
    }
}

/* Returns true if the word is a record's type, or its name in a mount. */
static bool names_record(const struct container *c, const char *word)
{
    struct limefile_record record;
    uint64_t count;
    return limefile_index_by_type(c->index, word, strlen(word), &record, &count) == 0 ||
           limefile_name_find(c->index, word, &record) == 0;
}

/* Gets the field in a record. If the record is not a field, only out->record is set. */
static int find_field(const struct container *c, const struct limefile_record *record,
                      struct limefile_field *out)
{
    struct limefile_fields fields;
    int err = limefile_fields_build(c->source, c->index, &fields);
    if (err)
        return err;
    if (!limefile_fields_find(&fields, record->ordinal, out))
        *out = (struct limefile_field){.record = *record};
    limefile_fields_release(&fields);
    return 0;
}

/* Finds a file by its path in the export: NAME or DIRECTORY/NAME. */
static bool find_path(const struct limefile_export *export, const char *path, uint64_t *number)
{
    uint64_t parent = 0;
    const char *slash;
    while ((slash = strchr(path, '/'))) {
        char *dir = strndup(path, (size_t)(slash - path));
        bool found = dir && limefile_export_find(export, parent, dir, number);
        free(dir);
        if (!found)
            return false;
        parent = *number + 1;
        path = slash + 1;
    }
    return limefile_export_find(export, parent, path, number);
}

static int read_record_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct export_file *f = context;
    size_t n = (size_t)count * f->site_bytes;
    return limefile_read_exact(f->data.source, out, n,
                               f->record.data_offset + first * f->site_bytes);
}

/* If the export's header contains values computed from all data, such as a checksum, reads the
 * whole record to compute them. Returns false after a message. */
static bool make_export_readable(struct export_file *f)
{
    int err = limefile_export_is_ready(f->export)
                  ? 0
                  : limefile_export_prepare(f->export, 0, read_record_sites, NULL, f);
    if (err)
        message_code(f->c->path, "read", err);
    return err == 0;
}

/* word: the operand as text, for messages. Returns false after a message. */
static bool open_export(struct export_file *out, const struct export_operand *operand,
                        const char *word)
{
    struct limefile_export_entry entry;
    struct limefile_field field;
    if (!select_record(out->c, operand->record, false, &out->record))
        return false;
    int err = find_field(out->c, &out->record, &field);
    if (!err)
        err = limefile_export_open(&field, &operand->spec, &out->export);
    if (err == LIMEFILE_E_STATE)
        message(out->c->path, "record %" PRIu64 ": no export '%s': %s", out->record.ordinal,
                word + strlen(operand->record),
                limefile_export_why_unsupported(&field, &operand->spec));
    else if (err)
        message_code(out->c->path, "read", err);
    if (err)
        return false;
    if (limefile_export_is_directory(&operand->spec) && !operand->rest) {
        message(out->c->path, "'%s' is a directory: name a file in it, as %s/%s", word, word,
                operand->spec.kind == LIMEFILE_EXPORT_ZARR ? ".zmetadata" : "000");
        return false;
    }
    if (!find_path(out->export, operand->rest ? operand->rest : "", &out->number)) {
        message(out->c->path, "'%s': no such file in this export", word);
        return false;
    }
    limefile_export_entry(out->export, out->number, &entry);
    if (entry.is_dir)
        message(out->c->path, "'%s' is a directory", word);
    out->bytes = entry.bytes;
    out->site_bytes = (size_t)field.site_bytes;
    if (entry.is_dir)
        return false;
    err = container_open_data(out->c, &out->record, &out->data);
    if (err)
        message_record(out->c->path, out->record.ordinal, err);
    return !err && make_export_readable(out);
}

/* Opens a file in an export: "ildg-binary-data.npy", "3.t/000". The part before the suffix
 * names a record as in select_record(). Returns 1 if it is open; 0 if `word` names no export,
 * or is a record's type or name; < 0 after a message. Call export_file_close() in any case. */
static int export_file_open(const struct container *c, const char *word,
                            struct export_file *out)
{
    struct export_operand operand;
    *out = (struct export_file){.c = c, .data.file.fd = -1};
    if (names_record(c, word) || !parse_export_operand(word, &operand))
        return 0;
    bool good = open_export(out, &operand, word);
    free(operand.record);
    return good ? 1 : -1;
}

static void export_file_close(struct export_file *f)
{
    container_close_data(&f->data);
    limefile_export_close(f->export);
    f->export = NULL;
}

static ssize_t read_record_bytes(void *context, void *buf, size_t n, uint64_t offset,
                                 const void **data)
{
    const struct export_file *f = context;
    *data = buf;
    return limefile_read_full(f->data.source, buf, n, f->record.data_offset + offset);
}

/* Computes copy->left bytes of the export, from `offset` on, and writes them. */
static int copy_computed(const struct export_file *f, struct limefile_copy *copy,
                         uint64_t offset)
{
    static _Alignas(4096) char buffer[BUFFER_BYTES];
    int err = 0;
    while (copy->left && !err) {
        size_t n = copy->left < sizeof buffer ? (size_t)copy->left : sizeof buffer;
        ssize_t got = limefile_export_read(f->export, f->number, buffer, n, offset,
                                           read_record_bytes, (void *)f);
        err = got < 0 ? (int)got : limefile_copy_write(copy, buffer, (size_t)got);
        offset += (uint64_t)(got > 0 ? got : 0);
    }
    return err;
}

/* Writes n bytes of the file to stdout, from `offset` on. Returns false after a message. */
static bool export_file_write(const struct export_file *f, uint64_t offset, uint64_t n,
                              struct progress *progress)
{
    struct limefile_export_range piece;
    struct limefile_copy copy = {.source = f->data.source,
                                 .out = STDOUT_FILENO,
                                 .out_offset = LIMEFILE_AT_POSITION,
                                 .progress = progress_add,
                                 .context = progress};
    int err = 0;
    for (; n && !err; n -= piece.bytes, offset += piece.bytes) {
        limefile_export_range(f->export, f->number, offset, &piece);
        if (piece.bytes > n)
            piece.bytes = n;
        copy.left = piece.bytes;
        copy.in_offset = f->record.data_offset + piece.at;
        err = piece.source == LIMEFILE_EXPORT_STORED ? limefile_copy(&copy)
                                                     : copy_computed(f, &copy, offset);
    }
    if (err) {
        progress_hide();
        message_copy(&copy, f->c->path, "standard output", err);
    }
    return !err;
}

static const char help[] =
    "Usage: lime cat [-f] [--range OFF:LEN] FILE {RECORD | -t TYPE}...\n"
    "Write the data of records to standard output, byte for byte.\n"
    "\n"
    "  -t, --type TYPE      select a record by its type, even if that is a number\n"
    "  -f, --force          write binary data to a terminal, too\n"
    "      --range OFF:LEN  only LEN bytes from byte OFF of the data (the first is\n"
    "                       0); 'OFF:' goes on to the end; k, M, G, T mean powers\n"
    "                       of 1024\n"
    "  -h, --help           this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "If RECORD is a field, RECORD.npy exports it for numpy (RECORD.le.npy in this\n"
    "machine's byte order), RECORD.h5 as HDF5, and RECORD.t/000 its first time\n"
    "slice; lime(1) lists all exports. FILE may also be a container in a limefs\n"
    "mount, or a NERSC, MILC or openQCD file ('lime ls' shows its records).\n"
    "\n"
    "Examples:\n"
    "  lime cat conf.0042 ildg-format\n"
    "  lime cat conf.0042 2.2 > links.bin\n"
    "  lime cat --range 1M:4k conf.0042 ildg-binary-data | xxd\n"
    "  lime cat conf.0042 ildg-binary-data.f4.le.npy > links.npy\n"
    "\n"
    "Exit status: 0 done; 1 no such record, or reading or writing failed; 2 wrong\n"
    "usage, or FILE cannot be opened or is not a container.\n";

struct range {
    bool is_set, to_end;
    uint64_t offset, bytes;
};

static bool is_forced;

/* A record or export to write. */
struct choice {
    const char *word;
    bool as_type;
};

static bool parse_range(const char *text, struct range *r)
{
    const char *colon = strchr(text, ':');
    r->is_set = true;
    if (!colon || !number_parse_size(text, (size_t)(colon - text), &r->offset))
        return false;
    r->to_end = colon[1] == '\0';
    return r->to_end || number_parse_size(colon + 1, strlen(colon + 1), &r->bytes);
}

/* Restricts the copy to the range; returns false after a message. */
static bool apply_range(const struct container *c, const struct limefile_record *record,
                        const struct range *r, struct limefile_copy *copy)
{
    if (!r->is_set)
        return true;
    if (r->offset > record->bytes || (!r->to_end && r->bytes > record->bytes - r->offset)) {
        message(c->path, "record %" PRIu64 ": --range: the record has %" PRIu64 " bytes only",
                record->ordinal, record->bytes);
        return false;
    }
    copy->in_offset += r->offset;
    copy->left = r->to_end ? record->bytes - r->offset : r->bytes;
    return true;
}

static bool write_record(const struct container *c, const struct limefile_record *record,
                         const struct range *range)
{
    struct progress progress;
    struct limefile_copy copy = stdout_copy(record);
    if (!apply_range(c, record, range, &copy))
        return false;
    if (!isatty(STDOUT_FILENO)) {
        progress_begin(&progress, "cat", copy.left);
        copy.progress = progress_add;
        copy.context = &progress;
    }
    int err = container_copy(c, record, &copy);
    if (copy.context)
        progress_end(&progress);
    if (err)
        message_copy(&copy, c->path, "standard output", err);
    return !err;
}

static bool write_export(struct export_file *export, const struct range *range)
{
    struct progress progress;
    struct limefile_record whole = export->record;
    whole.bytes = export->bytes;
    struct limefile_copy copy = stdout_copy(&whole);
    if (!apply_range(export->c, &whole, range, &copy))
        return false;
    progress_begin(&progress, "cat", copy.left);
    bool good = export_file_write(export, copy.in_offset, copy.left, &progress);
    progress_end(&progress);
    return good;
}

/* Returns true if the record begins with text: UTF-8 that does not control a terminal. NUL
 * bytes may end it, and reading must not fail: writing the record reports that. */
static bool begins_with_text(const struct container *c, const struct limefile_record *record)
{
    char *text;
    size_t n = record->bytes < EXAMINED_BYTES ? (size_t)record->bytes : EXAMINED_BYTES;
    if (limefile_record_read_text(c->source, record, n, &text) != 0)
        return true;
    while (n > 0 && (text[n - 1] == '\0' || (n > EXAMINED_BYTES - 4 && text[n - 1] & 0x80)))
        n--; /* the last sequence of UTF-8 may be incomplete */
    bool good = limefile_text_is_harmless(text, n, "\t\n\r\f");
    free(text);
    return good;
}

/* Returns false, after a message, if stdout is a terminal and the data are not text. Of
 * exports, only the metadata of Zarr are text: 3.zarr/.zgroup, for example. */
static bool may_write(const struct container *c, const struct limefile_record *record,
                      const char *export_name)
{
    const char *slash = export_name ? strrchr(export_name, '/') : NULL;
    if (is_forced || !isatty(STDOUT_FILENO) ||
        (export_name ? slash && slash[1] == '.' : begins_with_text(c, record)))
        return true;
    message(c->path, "record %" PRIu64 " holds binary data; redirect it, or use -f",
            record->ordinal);
    return false;
}

static bool write_choice(const struct container *c, const struct choice *choice,
                         const struct range *range)
{
    struct limefile_record record;
    struct export_file export;
    int found = choice->as_type ? 0 : export_file_open(c, choice->word, &export);
    if (found == 0)
        return select_record(c, choice->word, choice->as_type, &record) &&
               may_write(c, &record, NULL) && write_record(c, &record, range);
    bool good =
        found > 0 && may_write(c, &export.record, choice->word) && write_export(&export, range);
    export_file_close(&export);
    return good;
}

static int write_choices(const char *path, const struct choice *choices, size_t count,
                         const struct range *range)
{
    struct container c;
    int status = container_open_or_mounted(&c, path);
    if (status != TOOL_GOOD)
        return status;
    for (size_t i = 0; i < count && status == TOOL_GOOD; i++)
        if (!write_choice(&c, &choices[i], range))
            status = TOOL_BAD;
    container_close(&c);
    return status;
}

static struct range range;
static const char *path;
static struct choice *choices;
static size_t choice_count, choice_capacity;

static int parse_range_option(const void *command, char *text)
{
    return parse_range(text, &range)
               ? TOOL_GOOD
               : value_error(command, "--range", NULL, text, "OFF:LEN or OFF:");
}

static int add_choice(const char *word, bool as_type)
{
    if (!limefile_reserve(&choices, &choice_capacity, choice_count + 1, sizeof *choices)) {
        message(NULL, "out of memory");
        return TOOL_BAD;
    }
    choices[choice_count++] = (struct choice){word, as_type};
    return TOOL_GOOD;
}

static int choose_type(const void *command, char *type)
{
    (void)command;
    return add_choice(type, true);
}

static int add_operand(const void *command, const char *word)
{
    (void)command;
    if (path)
        return add_choice(word, false);
    path = word;
    return TOOL_GOOD;
}

static const struct option_rule rules[] = {
    {"type", 't', OPTION_CALL_TEXT, .handle = choose_type},
    {"range", 0, OPTION_CALL_TEXT, .handle = parse_range_option},
    FLAG_RULE("force", 'f', &is_forced),
    {NULL},
};

static int run_cat(int count, char **operands)
{
    (void)count;
    (void)operands;
    if (!path || choice_count == 0)
        return usage_error(&cmd_cat, path ? "no RECORD given" : "no FILE given");
    return write_choices(path, choices, choice_count, &range);
}

const struct command cmd_cat = {
    "cat",      "write a record's data to standard output", help, run_cat, rules, ANY_OPERANDS,
    add_operand};
