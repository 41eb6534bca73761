/* cmd_cat.c - lime cat: write the data of records, as stored or exported, to standard output */
#define _GNU_SOURCE
#include "container.h"
#include "copy.h"
#include "limeface.h"
#include "tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct limefile_face;

/* An open file of a struct limefile_face, an export format of one record. */
struct facecat {
    const struct container *c;
    struct limefile_record record;
    struct limefile_face *face;
    uint64_t number; /* of the file in the face */
    uint64_t bytes;
    size_t site_bytes; /* of the record */
};

enum {
    BUFFER_BYTES = 256 * 1024,
};

/* A parsed operand. */
struct named {
    struct limefile_facename name;
    char *record;     /* owned */
    const char *rest; /* the path in the face's directory; NULL: the face itself */
};

static bool take_apart(const char *word, struct named *out)
{
    size_t stem, len = strlen(word);
    for (const char *end = strchrnul(word, '/');; end = strchrnul(end + 1, '/')) {
        char *face = strndup(word, (size_t)(end - word));
        bool good = face && limefile_facename_parse(face, &out->name, &stem) &&
                    (*end == '\0' || limefile_face_is_directory(&out->name));
        if (good) {
            face[stem] = '\0';
            out->record = face;
            out->rest = *end ? end + 1 : NULL;
            return true;
        }
        free(face);
        if (end == word + len)
            return false;
    }
}

static bool is_record(const struct container *c, const char *word)
{
    struct limefile_record record;
    uint64_t count;
    return limefile_index_by_type(c->index, word, strlen(word), &record, &count) == 0 ||
           limefile_name_find(c->index, word, &record) == 0;
}

static int field_of(const struct container *c, const struct limefile_record *record,
                    struct limefile_field *out)
{
    struct limefile_fields fields;
    int err = limefile_fields_build(c->source, c->index, &fields);
    if (err)
        return err;
    if (!limefile_fields_of(&fields, record->ordinal, out))
        *out = (struct limefile_field){.record = *record};
    limefile_fields_release(&fields);
    return 0;
}

/* Finds a file by its path in the directory, of at most two names. */
static bool find_in(const struct limefile_face *face, const char *path, uint64_t *number)
{
    uint64_t parent = 0;
    const char *slash;
    while ((slash = strchr(path, '/'))) {
        char *folder = strndup(path, (size_t)(slash - path));
        bool found = folder && limefile_face_find(face, parent, folder, number);
        free(folder);
        if (!found)
            return false;
        parent = *number + 1;
        path = slash + 1;
    }
    return limefile_face_find(face, parent, path, number);
}

/* Some export formats put figures of all data, such as a checksum, in the header. */
static int read_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct facecat *f = context;
    size_t n = (size_t)count * f->site_bytes;
    return limefile_fd_read_exact(f->c->fd, out, n,
                                  f->record.data_offset + first * f->site_bytes);
}

static bool prepare(struct facecat *f)
{
    int err = limefile_face_is_ready(f->face)
                  ? 0
                  : limefile_face_prepare(f->face, 0, read_sites, NULL, f);
    if (err)
        message_code(f->c->path, "read", err);
    return err == 0;
}

static bool open_named(struct facecat *out, const struct named *named, const char *word)
{
    struct limefile_face_entry entry;
    struct limefile_field field;
    if (!select_record(out->c, named->record, false, &out->record))
        return false;
    int err = field_of(out->c, &out->record, &field);
    if (!err)
        err = limefile_face_open(&field, &named->name, &out->face);
    if (err == LIMEFILE_E_STATE)
        message(out->c->path, "record %" PRIu64 ": no '%s': %s", out->record.ordinal,
                word + strlen(named->record), limefile_face_why_not(&field, &named->name));
    else if (err)
        message_code(out->c->path, "read", err);
    if (err)
        return false;
    if (limefile_face_is_directory(&named->name) && !named->rest) {
        message(out->c->path, "'%s' is a directory: name a file in it, as %s/%s", word, word,
                named->name.kind == LIMEFILE_FACE_ZARR ? ".zmetadata" : "000");
        return false;
    }
    if (!find_in(out->face, named->rest ? named->rest : "", &out->number)) {
        message(out->c->path, "'%s': no such file in this face", word);
        return false;
    }
    limefile_face_entry(out->face, out->number, &entry);
    if (entry.is_dir)
        message(out->c->path, "'%s' is a directory", word);
    out->bytes = entry.bytes;
    out->site_bytes = (size_t)field.site_bytes;
    return !entry.is_dir && prepare(out);
}

/* Opens `word`, a record as in select_record() with a face's suffix and, if the face is a
 * directory, a path in it: "ildg-binary-data.npy", "3.t/000". Returns 1; 0 if it is not such a
 * name or a record has that name; < 0 after a message. Call facecat_close() in any case. */
static int facecat_open(const struct container *c, const char *word, struct facecat *out)
{
    struct named named;
    *out = (struct facecat){.c = c};
    if (is_record(c, word) || !take_apart(word, &named))
        return 0;
    bool good = open_named(out, &named, word);
    free(named.record);
    return good ? 1 : -1;
}

static void facecat_close(struct facecat *f)
{
    limefile_face_close(f->face);
    f->face = NULL;
}

static ssize_t read_record(void *context, void *buf, size_t n, uint64_t offset,
                           const void **data)
{
    const struct facecat *f = context;
    *data = buf;
    return limefile_fd_read(f->c->fd, buf, n, f->record.data_offset + offset);
}

/* Copies data that the face computes, through a buffer. */
static int put_made(const struct facecat *f, struct limefile_copy *copy, uint64_t offset)
{
    static _Alignas(4096) char buffer[BUFFER_BYTES];
    int err = 0;
    while (copy->left && !err) {
        size_t n = copy->left < sizeof buffer ? (size_t)copy->left : sizeof buffer;
        ssize_t came = limefile_face_read_lent(f->face, f->number, buffer, n, offset,
                                               read_record, (void *)f);
        err = came < 0 ? (int)came : limefile_copy_put(copy, buffer, (size_t)came);
        offset += (uint64_t)(came > 0 ? came : 0);
    }
    return err;
}

static bool facecat_put(const struct facecat *f, uint64_t offset, uint64_t n,
                        struct progress *progress)
{
    struct limefile_face_piece piece;
    struct limefile_copy copy = {.in = f->c->fd,
                                 .out = STDOUT_FILENO,
                                 .out_offset = LIMEFILE_AT_POSITION,
                                 .progress = progress_add,
                                 .context = progress};
    int err = 0;
    for (; n && !err; n -= piece.bytes, offset += piece.bytes) {
        limefile_face_piece(f->face, f->number, offset, &piece);
        if (piece.bytes > n)
            piece.bytes = n;
        copy.left = piece.bytes;
        copy.in_offset = f->record.data_offset + piece.at;
        err = piece.source == LIMEFILE_FACE_STORED ? limefile_copy(&copy)
                                                   : put_made(f, &copy, offset);
    }
    if (err) {
        progress_hide();
        copy_message(&copy, f->c->path, "standard output", err);
    }
    return !err;
}

static const char help[] =
    "Usage: lime cat [--range OFF:LEN] FILE {RECORD | -t TYPE}...\n"
    "Write the data of records to standard output, byte for byte.\n"
    "\n"
    "  -t, --type TYPE      a record by its type, whatever that looks like\n"
    "      --range OFF:LEN  only LEN bytes from byte OFF of the data (the first is\n"
    "                       0); 'OFF:' goes on to the end; k, M, G, T mean powers\n"
    "                       of 1024\n"
    "      --help           this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "Of a field, RECORD.npy is the array as a file of numpy's (RECORD.le.npy in this\n"
    "machine's byte order), RECORD.h5 as one of HDF5, RECORD.t/000 its first time\n"
    "slice; lime(1) has all of these faces.\n"
    "\n"
    "Examples:\n"
    "  lime cat conf.0042 ildg-format\n"
    "  lime cat conf.0042 2.2 > links.bin\n"
    "  lime cat --range 1M:4k conf.0042 ildg-binary-data | xxd\n"
    "  lime cat conf.0042 ildg-binary-data.f4.le.npy > links.npy\n"
    "\n"
    "Exit status: 0 done; 1 no such record, or reading or writing failed; 2 wrong\n"
    "usage, or FILE cannot be opened or is no container.\n";

struct range {
    bool given, to_end;
    uint64_t offset, bytes;
};

struct choice {
    const char *word;
    bool as_type;
};

static bool parse_range(const char *text, struct range *r)
{
    const char *colon = strchr(text, ':');
    r->given = true;
    if (!colon || !number_parse_size(text, (size_t)(colon - text), &r->offset))
        return false;
    r->to_end = colon[1] == '\0';
    return r->to_end || number_parse_size(colon + 1, strlen(colon + 1), &r->bytes);
}

/* Restricts the copy to the range; returns false after a message. */
static bool apply_range(const struct container *c, const struct limefile_record *record,
                        const struct range *r, struct limefile_copy *copy)
{
    if (!r->given)
        return true;
    if (r->offset > record->bytes || (!r->to_end && r->bytes > record->bytes - r->offset)) {
        message(c->path,
                "record %" PRIu64 ": range: it reaches beyond the record's %" PRIu64 " bytes",
                record->ordinal, record->bytes);
        return false;
    }
    copy->in_offset += r->offset;
    copy->left = r->to_end ? record->bytes - r->offset : r->bytes;
    return true;
}

static bool put_record(const struct container *c, const struct limefile_record *record,
                       const struct range *range)
{
    struct progress progress;
    struct limefile_copy copy = copy_to_stdout(c->fd, record);
    if (!apply_range(c, record, range, &copy))
        return false;
    if (!isatty(STDOUT_FILENO)) {
        progress_begin(&progress, "cat", copy.left);
        copy.progress = progress_add;
        copy.context = &progress;
    }
    int err = limefile_copy(&copy);
    if (copy.context)
        progress_end(&progress);
    if (err)
        copy_message(&copy, c->path, "standard output", err);
    return !err;
}

static bool put_face(struct facecat *face, const struct range *range)
{
    struct progress progress;
    struct limefile_record whole = face->record;
    whole.bytes = face->bytes;
    whole.data_offset = 0;
    struct limefile_copy copy = copy_to_stdout(face->c->fd, &whole);
    if (!apply_range(face->c, &whole, range, &copy))
        return false;
    progress_begin(&progress, "cat", copy.left);
    bool good = facecat_put(face, copy.in_offset, copy.left, &progress);
    progress_end(&progress);
    return good;
}

static bool put_choice(const struct container *c, const struct choice *choice,
                       const struct range *range)
{
    struct limefile_record record;
    struct facecat face;
    int found = choice->as_type ? 0 : facecat_open(c, choice->word, &face);
    if (found == 0)
        return select_record(c, choice->word, choice->as_type, &record) &&
               put_record(c, &record, range);
    bool good = found > 0 && put_face(&face, range);
    facecat_close(&face);
    return good;
}

static int put_all(const char *path, const struct choice *choices, size_t count,
                   const struct range *range)
{
    struct container c;
    int status = container_open(&c, path);
    if (status != TOOL_GOOD)
        return status;
    for (size_t i = 0; i < count && status == TOOL_GOOD; i++)
        if (!put_choice(&c, &choices[i], range))
            status = TOOL_BAD;
    container_close(&c);
    return status;
}

/* ---- the command line ---- */

static struct range range;
static const char *path;
static struct choice *choices;
static size_t choice_count, choice_capacity;

static int take_range(const void *command, char *text)
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

static int take_type(const void *command, char *type)
{
    (void)command;
    return add_choice(type, true);
}

static int take_operand(const void *command, const char *word)
{
    (void)command;
    if (path)
        return add_choice(word, false);
    path = word;
    return TOOL_GOOD;
}

static const struct option_rule rules[] = {
    {"type", 't', OPTION_CALL_TEXT, .take = take_type},
    {"range", 0, OPTION_CALL_TEXT, .take = take_range},
    {NULL},
};

static int run(int count, char **operands)
{
    (void)count;
    (void)operands;
    if (!path || choice_count == 0)
        return usage_error(&cmd_cat, path ? "no record named" : "no file named");
    return put_all(path, choices, choice_count, &range);
}

const struct command cmd_cat = {
    "cat",       "write a record's data to standard output", help, run, rules, ANY_OPERANDS,
    take_operand};
