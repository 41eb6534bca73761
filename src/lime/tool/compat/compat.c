/* compat.c - programs that replace those of C-LIME and Lemon under their names */
#define _GNU_SOURCE
#include "container.h"
#include "record_input.h"
#include "limeoutput.h"
#include "outdir.h"
#include "pack.h"
#include "text.h"
#include "tool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compat_status(int status)
{
    return status == TOOL_GOOD ? TOOL_GOOD : TOOL_BAD;
}

static int compat_usage(const char *program, const char *arguments)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s", program);
    limefile_text_sanitize(name, "");
    fprintf(stderr, "Usage: %s %s\n", name, arguments);
    return TOOL_BAD;
}

static int write_record_data(const struct container *c, const struct limefile_record *record)
{
    struct limefile_copy copy = stdout_copy(record);
    int err = container_copy(c, record, &copy);
    if (err)
        message_copy(&copy, c->path, "standard output", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

/* Parses a positive decimal number. Returns false after a message. */
static bool parse_compat_number(const char *text, const char *what, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || strchr(text, '-') || value == 0 || value > UINT32_MAX) {
        message(NULL, "Invalid %s number = %s", what, text);
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* Writes the first record of a type or, if `type` is NULL, the record `number_inside` of
 * message `number`. what: the record, for an error message. */
static int extract_record(const char *path, const char *type, uint32_t number,
                          uint32_t number_inside, const char *what)
{
    struct container c;
    struct limefile_record record;
    uint64_t count;
    int status = container_open_or_mounted(&c, path);
    if (status != TOOL_GOOD)
        return compat_status(status);
    if ((type ? limefile_index_by_type(c.index, type, strlen(type), &record, &count)
              : limefile_index_by_number(c.index, number, number_inside, &record)) == 0) {
        status = write_record_data(&c, &record);
    } else {
        message(path, "%s: no such record", what);
        container_report_fault(&c);
        status = TOOL_BAD;
    }
    container_close(&c);
    return status;
}

static int run_extract_record(int argc, char **argv)
{
    uint32_t number, number_inside;
    char what[64];
    if (argc < 4)
        return compat_usage(argv[0], "<lime_file> <msgno> <recno>");
    if (!parse_compat_number(argv[2], "message", &number) ||
        !parse_compat_number(argv[3], "record", &number_inside))
        return TOOL_BAD;
    snprintf(what, sizeof what, "message %.20s record %.20s", argv[2], argv[3]);
    return extract_record(argv[1], NULL, number, number_inside, what);
}

static int run_extract_type(int argc, char **argv)
{
    char type_name[TYPE_TEXT_MAX], what[TYPE_TEXT_MAX + 8];
    if (argc < 3)
        return compat_usage(argv[0], "<lime_file> <lime_type>");
    snprintf(what, sizeof what, "type '%s'", format_type(argv[2], strlen(argv[2]), type_name));
    return extract_record(argv[1], argv[2], 0, 0, what);
}

const struct command compat_lime_extract_record = {
    "lime_extract_record", NULL,
    "Usage: lime_extract_record <lime_file> <msgno> <recno>\n"
    "Write a record's data to standard output. See lime_extract_record(1).\n",
    .run = run_extract_record};
const struct command compat_lime_extract_type = {
    "lime_extract_type", NULL,
    "Usage: lime_extract_type <lime_file> <lime_type>\n"
    "Write the data of the first record of a type to standard output. See\n"
    "lime_extract_type(1).\n",
    .run = run_extract_type};

enum {
    LONG_LIME = 64000, /* lime_contents prints only data that are shorter than this */
    LONG_LEMON = 4096, /* the same for lemon_contents */
};

/* How lime_contents or lemon_contents prints. */
struct style {
    uint64_t long_bytes; /* LONG_LIME or LONG_LEMON */
    const char *binary;  /* the text printed for data that are not ASCII */
    bool is_terminal;    /* stdout is a terminal, so control characters are replaced */
};

static bool is_ascii(const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (data[i] & 0x80)
            return false;
    return true;
}

static int print_record_data(struct limefile_source *source, const struct limefile_record *r,
                             const struct style *style)
{
    static char data[LONG_LIME];
    if (r->bytes >= style->long_bytes) {
        printf("Data:           [Long record skipped]\n");
        return 0;
    }
    int err = limefile_read_exact(source, data, (size_t)r->bytes, r->data_offset);
    if (err)
        return err;
    data[r->bytes] = '\0';
    if (!is_ascii(data, (size_t)r->bytes)) {
        printf("Data:           %s\n", style->binary);
        return 0;
    }
    if (style->is_terminal)
        limefile_text_sanitize(data, "\t\n");
    printf("Data:           \"%s\" \n", data); /* ends at a NUL, as in C-LIME */
    return 0;
}

static void print_record_head(const struct limefile_record *r, const struct style *style)
{
    char type[LIMEFILE_TYPE_BYTES + 1];
    snprintf(type, sizeof type, "%s", r->type);
    if (style->is_terminal)
        limefile_text_sanitize(type, "");
    printf("\n\n");
    printf("Message:        %" PRIu32 "\n", r->message);
    printf("Record:         %" PRIu32 "\n", r->record);
    printf("Type:           %s\n", type);
    printf("Data Length:    %" PRIu64 "\n", r->bytes);
    printf("Padding Length: %u\n", r->padding);
    printf("MB flag:        %d\n", r->mb);
    printf("ME flag:        %d\n", r->me);
}

/* Prints each record when the scan has found it: records before a fault are printed. */
static int print_all_records(const char *path, struct limefile_source *source,
                             const struct style *style)
{
    struct limefile_scan *scan;
    struct limefile_record record;
    int got;
    int err = limefile_scan_new(source, NULL, NULL, &scan);
    if (err)
        return report_error(path, "read", err);
    while (!err && (got = limefile_scan_next(scan, &record)) > 0) {
        print_record_head(&record, style);
        err = print_record_data(source, &record, style);
    }
    if (err)
        message_code(path, "read", err);
    else if (got < 0)
        message_finding(path, limefile_scan_fault(scan), false);
    limefile_scan_free(scan);
    return err || got < 0 ? TOOL_BAD : TOOL_GOOD;
}

static int print_contents(int argc, char **argv, const char *arguments, struct style style)
{
    if (argc != 2)
        return compat_usage(argv[0], arguments);
    style.is_terminal = isatty(STDOUT_FILENO);
    struct container c;
    int status = container_open_source(&c, argv[1])
                     ? TOOL_BAD
                     : print_all_records(argv[1], c.source, &style);
    container_close(&c);
    return status;
}

static int run_lime_contents(int argc, char **argv)
{
    struct style style = {LONG_LIME, "[Binary data]", false};
    return print_contents(argc, argv, "<lime_file>", style);
}

static int run_lemon_contents(int argc, char **argv)
{
    struct style style = {LONG_LEMON, "[Binary data].", false};
    return print_contents(argc, argv, "<lemon_file>", style);
}

const struct command compat_lime_contents = {
    "lime_contents", NULL,
    "Usage: lime_contents <lime_file>\n"
    "Print the records of a LIME container, as C-LIME does. See lime_contents(1).\n",
    .run = run_lime_contents};
const struct command compat_lemon_contents = {
    "lemon_contents", NULL,
    "Usage: lemon_contents <lemon_file>\n"
    "Print the records of a LIME container, as Lemon does. See lemon_contents(1).\n",
    .run = run_lemon_contents};

static void announce_record(uint32_t number, uint32_t record, uint64_t bytes,
                            const struct pack_item *item)
{
    print_line(NULL, "%2" PRIu32 " %3" PRIu32 " %8" PRIu64 " %s", number, record, bytes,
               item->type);
    putchar('\t');
    putchar('\t');
    print_line(NULL, "%s", item->path);
}

static int run_compat_pack(int argc, char **argv)
{
    struct packlist list = {0};
    int status = TOOL_BAD;
    if (argc != 3)
        return compat_usage(argv[0], "<filelist_file> <lime_file>");
    if (packlist_read_list(&list, argv[1], false)) {
        struct packing packing = {
            .list = &list,
            .dirfd = AT_FDCWD,
            .list_name = argv[1],
            .follow_links = true,
            .force = true, /* C-LIME replaces an existing file, too */
            .announce = announce_record,
        };
        printf("msg rec   bytes type\n");
        status = pack_to_file(&packing, argv[2]);
    }
    packlist_release(&list);
    return status;
}

static bool unpack_to_contents(const struct container *c, const struct outdir *dir)
{
    struct limefile_record r;
    char name[LIMEFILE_NAME_MAX + 1];
    bool good = true;
    printf("   bytes file\n");
    for (uint64_t i = 1; good && limefile_index_get(c->index, i, &r) == 0; i++) {
        int head = snprintf(name, sizeof name, "msg%02" PRIu32 ".rec%02" PRIu32 ".", r.message,
                            r.record);
        limefile_name_encode(r.type, r.type_len, name + head, sizeof name - (size_t)head);
        if (r.mb)
            putchar('\n');
        print_line(NULL, "%8" PRIu64 " %s/%s", r.bytes, dir->path, name);
        good = outdir_save(dir, c, &r, name, true, NULL);
    }
    return good;
}

static int compat_unpack(struct container *c)
{
    struct outdir dir;
    char *dir_path;
    if (asprintf(&dir_path, "%s.contents", c->path) < 0) {
        message(NULL, "out of memory");
        return TOOL_BAD;
    }
    int status = TOOL_BAD;
    int err = outdir_open(&dir, dir_path, false);
    if (err) {
        message_code(dir_path, "open", err);
    } else if (limefile_output_same_file(dir.fd, c->fd)) {
        message_output(dir_path, "open", LIMEFILE_E_OUTPUT_INPUT);
        outdir_close(&dir);
    } else {
        dir.without_sync = true; /* C-LIME does not sync either */
        status = unpack_to_contents(c, &dir) ? container_report_fault(c) : TOOL_BAD;
        outdir_close(&dir);
    }
    free(dir_path);
    return status;
}

static int run_compat_unpack(int argc, char **argv)
{
    struct container c;
    if (argc < 2)
        return compat_usage(argv[0], "<lime_file>");
    int status = container_open_or_mounted(&c, argv[1]);
    if (status == TOOL_GOOD) {
        status = compat_unpack(&c);
        container_close(&c);
    }
    return compat_status(status);
}

const struct command compat_lime_pack = {
    "lime_pack", NULL,
    "Usage: lime_pack <filelist_file> <lime_file>\n"
    "Make a LIME container of the files that a list names. See lime_pack(1).\n",
    .run = run_compat_pack};
const struct command compat_lime_unpack = {
    "lime_unpack", NULL,
    "Usage: lime_unpack <lime_file>\n"
    "Write each record to a file in <lime_file>.contents. See lime_unpack(1).\n",
    .run = run_compat_unpack};
