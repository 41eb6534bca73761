/* pack.c - create a container from a list of files */
#define _GNU_SOURCE
#include "pack.h"
#include "container.h"
#include "record_input.h"
#include "limeoutput.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pack_entry {
    size_t text; /* subscript in texts: type, NUL and, unless has_default_path, path and NUL */
    uint8_t type_len;
    bool has_default_path; /* the path is the name that 'lime unpack' gives */
    bool mb, me;
};

/* Computes the name that 'lime unpack' gives to record i. */
static void make_record_name(size_t i, const char *type, size_t type_len,
                             char name[LIMEFILE_NAME_MAX + 1])
{
    const struct limefile_record record = {
        .ordinal = i + 1,
        .type = type,
        .type_len = (uint8_t)type_len,
    };
    limefile_name_format(&record, name);
}

/* Makes space for one more entry and `text` bytes of its texts. False: out of memory. */
static bool reserve_entry(struct packlist *list, size_t text)
{
    if (!limefile_reserve(&list->entries, &list->capacity, list->count + 1,
                          sizeof *list->entries))
        return false;
    return limefile_reserve(&list->texts, &list->text_capacity, list->text_size + text, 1);
}

/* Adds copies of path and type. Returns false after a message: out of memory. */
static bool packlist_add(struct packlist *list, const char *path, const char *type,
                         size_t type_len, bool mb, bool me)
{
    char name[LIMEFILE_NAME_MAX + 1];
    size_t path_size = strlen(path) + 1;
    make_record_name(list->count, type, type_len, name);
    bool has_default_path = strcmp(path, name) == 0;
    if (!reserve_entry(list, type_len + 1 + path_size)) {
        message(NULL, "out of memory");
        return false;
    }
    list->entries[list->count++] = (struct pack_entry){
        .text = list->text_size,
        .type_len = (uint8_t)type_len,
        .has_default_path = has_default_path,
        .mb = mb,
        .me = me,
    };
    char *to = list->texts + list->text_size;
    memcpy(to, type, type_len);
    to[type_len] = '\0';
    list->text_size += type_len + 1;
    if (!has_default_path) {
        memcpy(to + type_len + 1, path, path_size);
        list->text_size += path_size;
    }
    return true;
}

void packlist_get(const struct packlist *list, size_t i, struct pack_item *out)
{
    const struct pack_entry *entry = &list->entries[i];
    out->type = list->texts + entry->text;
    out->type_len = entry->type_len;
    out->mb = entry->mb;
    out->me = entry->me;
    out->path = entry->has_default_path ? out->name : out->type + out->type_len + 1;
    if (entry->has_default_path)
        make_record_name(i, out->type, out->type_len, out->name);
}

void packlist_release(struct packlist *list)
{
    free(list->entries);
    free(list->texts);
    *list = (struct packlist){0};
}

uint64_t packlist_fix_flags(struct packlist *list)
{
    uint64_t changed = 0;
    bool before_ends = true;
    for (size_t i = 0; i < list->count; i++) {
        struct pack_entry *entry = &list->entries[i];
        bool next_begins = i + 1 == list->count || list->entries[i + 1].mb;
        bool mb = entry->mb || before_ends, me = entry->me || next_begins;
        changed += mb != entry->mb || me != entry->me;
        entry->mb = mb;
        entry->me = before_ends = me;
    }
    return changed;
}

bool packlist_type_is_invalid(const char *path, const char *type, size_t type_len)
{
    char type_name[TYPE_TEXT_MAX];
    format_type(type, type_len, type_name);
    if (type_len == 0 || type_len > LIMEFILE_TYPE_BYTES - 1) {
        message(path, "type '%s': it has %zu bytes; a record type has 1 to %d", type_name,
                type_len, LIMEFILE_TYPE_BYTES - 1);
        return true;
    }
    if (limefile_type_printable(type, type_len) < type_len)
        message(path, "type '%s': warning: control or non-ASCII bytes in it", type_name);
    return false;
}

enum { LINE_BYTES = 8192 }; /* path, type with %XX, and other columns */

/* Reads a text file line by line. */
struct lines {
    const char *name;
    FILE *file;
    uint64_t number;
    bool failed; /* a message was printed */
    size_t len;
    char line[LINE_BYTES]; /* without the newline */
};

/* Opens `path` in `dirfd`; `name` is for messages. regular: refuses a file that is not regular,
 * which could block or never end. Returns false after a message. */
static bool lines_open(struct lines *l, int dirfd, const char *path, const char *name,
                       bool regular)
{
    l->name = name;
    l->number = 0;
    l->failed = false;
    int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK | O_NOCTTY : 0));
    int err = fd < 0 ? -errno : regular ? limefile_check_fd(fd) : 0;
    l->file = err ? NULL : fdopen(fd, "r");
    if (l->file)
        return true;
    message_code(name, "open", err ? err : -errno);
    if (fd >= 0)
        close(fd);
    return false;
}

static bool report_bad_line(const struct lines *l, const char *why)
{
    message(l->name, "line %llu: %s", (unsigned long long)l->number, why);
    return false;
}

/* Reads the next line into l->line. Returns false at the end, or after a message. */
static bool lines_next(struct lines *l)
{
    int c;
    l->len = 0;
    while ((c = getc_unlocked(l->file)) != EOF && c != '\n' && l->len < LINE_BYTES - 1)
        l->line[l->len++] = (char)c;
    if (c == EOF && ferror(l->file)) {
        message_code(l->name, "read", -errno);
        l->failed = true;
    }
    if (l->failed || (c == EOF && l->len == 0))
        return false;
    l->number++;
    if (c != EOF && c != '\n') {
        l->failed = true;
        return report_bad_line(l, "line too long");
    }
    while (l->len && l->line[l->len - 1] == '\r')
        l->len--;
    l->line[l->len] = '\0';
    return true;
}

/* Returns false if a read has failed. */
static bool lines_close(struct lines *l)
{
    fclose(l->file);
    return !l->failed;
}

/* ---- the manifest ---- */

enum {
    COLUMN_MB = 3,
    COLUMN_ME = 4,
    COLUMN_TYPE = 6,
    COLUMN_FILE = 7,
    COLUMNS = 8,
};

static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !strchr(name, '/');
}

static bool is_flag(const char *text)
{
    return strcmp(text, "0") == 0 || strcmp(text, "1") == 0;
}

static bool parse_manifest_line(struct packlist *list, struct lines *l)
{
    char *columns[COLUMNS], *rest = l->line, type[LIMEFILE_TYPE_BYTES + 2];
    size_t n = 0;
    if (strlen(l->line) != l->len)
        return report_bad_line(l, "contains a NUL byte");
    while (rest && n < COLUMNS)
        columns[n++] = strsep(&rest, "\t");
    if (rest || n < COLUMNS)
        return report_bad_line(l, "not the eight columns that 'lime unpack' writes");
    if (!is_flag(columns[COLUMN_MB]) || !is_flag(columns[COLUMN_ME]))
        return report_bad_line(l, "mb and me must be 0 or 1");
    if (!is_plain_name(columns[COLUMN_FILE]))
        return report_bad_line(l, "column file: not a file name in this directory");
    size_t len = limefile_name_decode(columns[COLUMN_TYPE], strlen(columns[COLUMN_TYPE]), type,
                                      sizeof type);
    if (len > LIMEFILE_TYPE_BYTES - 1 || memchr(type, '\0', len))
        return report_bad_line(l, "a record type has at most 127 bytes and no NUL");
    return packlist_add(list, columns[COLUMN_FILE], type, len, columns[COLUMN_MB][0] == '1',
                        columns[COLUMN_ME][0] == '1');
}

bool packlist_read_manifest(struct packlist *list, int dirfd, const char *dir_name)
{
    struct lines l;
    char *name = NULL;
    if (asprintf(&name, "%s/%s", dir_name, MANIFEST_NAME) < 0)
        return report_error(dir_name, "read", -ENOMEM) == TOOL_GOOD;
    bool good = lines_open(&l, dirfd, MANIFEST_NAME, name, true);
    if (good) {
        while (good && lines_next(&l))
            if (l.len > 0 && l.line[0] != '#')
                good = parse_manifest_line(list, &l);
        good = lines_close(&l) && good;
        if (good && l.number == 0) { /* even an empty container has the heading */
            message(name, "the manifest is empty");
            good = false;
        }
    }
    free(name);
    return good;
}

/* ---- C-LIME's list ---- */

static char *trim_blanks(char *text)
{
    static const char blanks[] = " \t\r\v\f";
    text += strspn(text, blanks);
    size_t len = strlen(text);
    while (len && strchr(blanks, text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

/* Parses `text`, "PATH TYPE". tabs: as in packlist_read_list(). mb: it begins a message. */
static bool parse_list_line(struct packlist *list, const struct lines *l, char *text, bool tabs,
                            bool mb)
{
    char *end = tabs ? strchr(text, '\t') : NULL;
    bool tab = end;
    if (!end)
        end = text + strcspn(text, " \t");
    if (*end == '\0')
        return report_bad_line(l, "no record type; expected PATH TYPE");
    *end = '\0';
    char *path = trim_blanks(text), *type = trim_blanks(end + 1);
    size_t word = strcspn(type, " \t");
    if (tabs && !tab && type[word] != '\0')
        return report_bad_line(l, "more than two words; put a TAB between PATH and TYPE");
    if (!tab)
        type[word] = '\0'; /* ignore further words, as C-LIME does */
    return !packlist_type_is_invalid(path, type, strlen(type)) &&
           packlist_add(list, path, type, strlen(type), mb, false);
}

bool packlist_read_list(struct packlist *list, const char *path, bool tabs)
{
    struct lines l;
    bool mb = true, good = lines_open(&l, AT_FDCWD, path, path, false);
    if (!good)
        return false;
    while (good && lines_next(&l)) {
        bool has_no_nul = strlen(l.line) == l.len;
        char *text = trim_blanks(l.line);
        if (!has_no_nul) {
            good = report_bad_line(&l, "contains a NUL byte");
        } else if (*text == '\0') {
            mb = true;
        } else {
            good = parse_list_line(list, &l, text, tabs, mb);
            mb = false;
        }
    }
    good = lines_close(&l) && good;
    packlist_fix_flags(list);
    return good;
}

enum { SMALL_BYTES = 64 * 1024 }; /* longer data bypass the writer's buffer */

struct output {
    const struct packing *packing;
    const char *target; /* final name, for messages */
    struct limefile_writer *writer;
    const struct limefile_output *file;
    bool writing; /* after a failure: the output has failed, not the input */
    uint32_t message, record;
    struct progress progress;
};

/* A file that becomes a record. */
struct source {
    char name[PATH_MAX]; /* for messages */
    int fd;
    struct stat st;
};

static bool open_input(struct source *in, const struct packing *p, const struct pack_item *item)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    snprintf(in->name, sizeof in->name, "%s%s%s", p->dir_name ? p->dir_name : "",
             p->dir_name ? "/" : "", item->path);
    in->fd = openat(p->dirfd, item->path, flags | (p->follow_links ? 0 : O_NOFOLLOW));
    if (in->fd < 0 && errno == ELOOP && !p->follow_links) {
        message(in->name, "open: a symbolic link; expected a regular file");
        return false;
    }
    if (in->fd < 0 || fstat(in->fd, &in->st) != 0) {
        message_code(in->name, "open", -errno);
    } else if (S_ISDIR(in->st.st_mode)) {
        message_code(in->name, "open", -EISDIR);
    } else if (!S_ISREG(in->st.st_mode)) {
        message(in->name, "open: not a regular file, so of unknown length");
    } else {
        return true;
    }
    if (in->fd >= 0)
        close(in->fd);
    return false;
}

static int write_buffered(struct output *out, const struct source *in)
{
    static char buffer[SMALL_BYTES];
    out->writing = false;
    int err = limefile_fd_read_exact(in->fd, buffer, (size_t)in->st.st_size, 0);
    out->writing = !err;
    return err ? err : limefile_writer_write(out->writer, buffer, (size_t)in->st.st_size);
}

static int write_direct(struct output *out, const struct source *in)
{
    uint64_t offset;
    int err = limefile_writer_reserve(out->writer, (uint64_t)in->st.st_size, &offset);
    if (err)
        return err;
    struct limefile_copy copy = {
        .in = in->fd,
        .out = out->file->fd,
        .out_offset = (int64_t)offset,
        .left = (uint64_t)in->st.st_size,
        .progress = progress_add,
        .context = &out->progress,
    };
    err = limefile_copy(&copy);
    out->writing = !err || copy.out_failed;
    return err;
}

/* Writes a record. Returns -EBUSY if the input has changed since it was opened. */
static int write_item(struct output *out, const struct pack_item *item, const struct source *in)
{
    uint64_t bytes = (uint64_t)in->st.st_size;
    out->writing = true;
    int err = limefile_writer_begin(out->writer, item->type, item->type_len, bytes, item->mb,
                                    item->me);
    if (!err)
        err = bytes <= SMALL_BYTES ? write_buffered(out, in) : write_direct(out, in);
    if (!err)
        err = limefile_writer_end(out->writer);
    if (err)
        return err;
    out->writing = false;
    return copy_is_unchanged(in->fd, &in->st) ? 0 : -EBUSY;
}

static bool pack_one_file(struct output *out, const struct pack_item *item)
{
    static struct source in; /* static, as it is large */
    const struct packing *p = out->packing;
    if (!open_input(&in, p, item))
        return false;
    out->message += item->mb;
    out->record = item->mb ? 1 : out->record + 1;
    if (p->announce)
        p->announce(out->message, out->record, (uint64_t)in.st.st_size, item);
    int err = write_item(out, item, &in);
    close(in.fd);
    if (err == -EBUSY)
        message(in.name, "read: the file changed while it was read");
    else if (err)
        message_code(out->writing ? out->target : in.name, out->writing ? "write" : "read",
                     err);
    return !err;
}

/* Returns the bytes to pack, for the progress bar; 0 without a bar. Ignores errors. */
static uint64_t sum_file_sizes(const struct packing *p)
{
    struct stat st;
    uint64_t total = 0;
    for (size_t i = 0; isatty(STDERR_FILENO) && i < p->list->count; i++) {
        struct pack_item item;
        packlist_get(p->list, i, &item);
        if (fstatat(p->dirfd, item.path, &st, 0) == 0)
            total += (uint64_t)st.st_size;
    }
    return total;
}

static bool pack_all_files(const struct packing *p, const struct limefile_output *file,
                           const char *target)
{
    struct limefile_fd to;
    struct output out = {.packing = p, .target = target, .file = file};
    uint64_t size;
    bool good = true;
    limefile_fd_init(&to, file->fd);
    int err = limefile_writer_new(&to.source, 0, &out.writer);
    if (!err) {
        progress_begin(&out.progress, "pack", sum_file_sizes(p));
        for (size_t i = 0; good && i < p->list->count; i++) {
            struct pack_item item;
            packlist_get(p->list, i, &item);
            good = pack_one_file(&out, &item);
        }
        progress_end(&out.progress);
        err = good ? limefile_writer_finish(out.writer, &size) : 0;
        limefile_writer_free(out.writer);
    }
    if (err)
        message_code(target, "write", err);
    return good && !err;
}

static bool is_input_file(const struct packing *p, const char *path,
                          const struct limefile_output *out)
{
    int fd = openat(p->dirfd, path, O_PATH | O_CLOEXEC);
    bool is_same = fd >= 0 && limefile_output_is_target(out, fd);
    if (fd >= 0)
        close(fd);
    return is_same;
}

/* Refuses a target that is an input. Checks this before it creates a file: in a mount of an
 * input container, this file would become a record. */
static int open_pack_target(const struct packing *p, const char *target,
                            struct limefile_output *out)
{
    int err = limefile_output_find(out, target);
    if (err)
        return err;
    bool is_input = p->list_name && is_input_file(p, p->list_name, out);
    for (size_t i = 0; !is_input && i < p->list->count; i++) {
        struct pack_item item;
        packlist_get(p->list, i, &item);
        is_input = is_input_file(p, item.path, out);
    }
    if (!is_input)
        return limefile_output_create(out, p->force);
    limefile_output_abort(out);
    return LIMEFILE_E_OUTPUT_INPUT;
}

int pack_to_file(const struct packing *p, const char *target)
{
    struct limefile_output out;
    int err = open_pack_target(p, target, &out);
    if (err) {
        message_output(target, "create", err);
        return TOOL_BAD;
    }
    if (!pack_all_files(p, &out, target)) {
        limefile_output_abort(&out);
        return TOOL_BAD;
    }
    err = limefile_output_commit(&out);
    return report_output_error(target, "write", err);
}

struct packargs packargs;

int packargs_operand(const void *context, const char *word)
{
    const struct command *command = context;
    struct packargs *words = &packargs;
    if (!words->type) {
        if (words->operand_count == command->operands.most)
            return usage_error(command, "%s: no type (-t TYPE) before it", word);
        words->operands[words->operand_count++] = word;
        return TOOL_GOOD;
    }
    size_t len = strlen(words->type);
    if (packlist_type_is_invalid(word, words->type, len))
        return TOOL_UNUSABLE;
    bool added = packlist_add(&words->list, word, words->type, len, words->new_message, false);
    words->type = NULL;
    words->new_message = false;
    return added ? TOOL_GOOD : TOOL_BAD;
}

int packargs_check(const struct command *command)
{
    if (packargs.type)
        return usage_error(command, "-t %s: no PATH after it", packargs.type);
    if (packargs.new_message)
        return usage_error(command, "-m: no record after it");
    return TOOL_GOOD;
}

int packargs_type(const void *command, char *type)
{
    if (packargs.type)
        return usage_error(command, "-t %s: no PATH after it", packargs.type);
    packargs.type = type;
    return TOOL_GOOD;
}
