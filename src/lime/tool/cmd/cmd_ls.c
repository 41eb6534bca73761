/* cmd_ls.c - lime ls: list the records of containers as text or JSON */
#define _GNU_SOURCE
#include "container.h"
#include "files.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>

static const char help[] =
    "Usage: lime ls [OPTION]... FILE...\n"
    "       lime ls [OPTION]... -r DIR...\n"
    "       lime ls [OPTION]... --files-from LIST [-0]\n"
    "List the records of LIME containers.\n"
    "\n"
    "  -l                     also print offsets, padding and message flags\n"
    "      --bytes            print sizes in bytes, not as 145K\n" FILES_HELP "\n"
    "The first column is the record's ordinal in the file, the second its message\n"
    "and its number in the message, all from 1; 'lime cat' accepts either.\n"
    "Unprintable bytes of a type are written as %XX.\n"
    "FILE may also be a container in a limefs mount, or a NERSC, MILC or openQCD\n"
    "file, whose records are those that limefs shows.\n"
    "\n"
    "Examples:\n"
    "  lime ls conf.0042\n"
    "  lime ls --json conf.0042 | jq '.records[] | select(.type == \"ildg-format\")'\n"
    "\n"
    "Exit status: 0 all listed; 1 a listing ends at a fault (the records before it\n"
    "are listed); 2 wrong usage, or a file cannot be opened or is not a container.\n";

struct options {
    bool is_long;
};

struct widths {
    int ordinal, number, bytes, header, data;
};

static int count_digits(uint64_t value)
{
    return snprintf(NULL, 0, "%" PRIu64, value);
}

static int at_least(int width, int least)
{
    return width > least ? width : least;
}

static struct widths measure_columns(const struct container *c)
{
    struct limefile_record r;
    struct widths w = {4, 7, 5, 6, 6}; /* widths of the headings */
    uint64_t count = limefile_index_count(c->index), most = 0;
    for (uint64_t i = 1; i <= count && limefile_index_get(c->index, i, &r) == 0; i++) {
        w.number = at_least(count_digits(r.message) + 1 + count_digits(r.record), w.number);
        if (r.bytes > most)
            most = r.bytes;
    }
    w.ordinal = at_least(count_digits(count), w.ordinal);
    w.bytes = at_least(limefile_sizes_are_exact ? count_digits(most) : 5, w.bytes);
    w.header = w.data = at_least(count_digits(limefile_index_end(c->index)), w.header);
    return w;
}

static void print_table_heading(const struct options *o, const struct widths *w)
{
    printf("%*s  %-*s  %*s", w->ordinal, "#", w->number, "msg.rec", w->bytes, "size");
    if (o->is_long)
        printf("  %*s  %*s  pad  flags", w->header, "header", w->data, "data");
    printf("  type\n");
}

static void print_row(const struct options *o, const struct widths *w,
                      const struct limefile_record *r)
{
    char number[24], size[LIMEFILE_SIZE_CHARS], type_name[TYPE_TEXT_MAX];
    snprintf(number, sizeof number, "%" PRIu32 ".%" PRIu32, r->message, r->record);
    printf("%*" PRIu64 "  %-*s  %*s", w->ordinal, r->ordinal, w->number, number, w->bytes,
           limefile_format_size(r->bytes, size));
    if (o->is_long)
        printf("  %*" PRIu64 "  %*" PRIu64 "  %3u  %s %s", w->header, r->header_offset, w->data,
               r->data_offset, r->padding, r->mb ? "MB" : "--", r->me ? "ME" : "--");
    printf("  %s\n", format_type(r->type, r->type_len, type_name));
}

static void print_table(const struct container *c, const struct options *o)
{
    struct limefile_record r;
    struct widths w = measure_columns(c);
    print_table_heading(o, &w);
    for (uint64_t i = 1; limefile_index_get(c->index, i, &r) == 0; i++)
        print_row(o, &w, &r);
}

static json_t *record_json(const struct limefile_record *r)
{
    char name[LIMEFILE_NAME_MAX + 1], hex[2 * LIMEFILE_TYPE_BYTES + 1];
    limefile_name_format(r, name);
    for (size_t i = 0; i < r->type_len; i++)
        sprintf(hex + 2 * i, "%02x", (unsigned char)r->type[i]);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:s*, s:o, s:o, s:o, s:o, s:i, s:b, s:b}", "ordinal",
        jsonout_integer(r->ordinal), "message", jsonout_integer(r->message), "record",
        jsonout_integer(r->record), "type", jsonout_string(r->type), "type_hex",
        jsonout_is_utf8(r->type) ? NULL : hex, "name", jsonout_string(name), "header_offset",
        jsonout_integer(r->header_offset), "data_offset", jsonout_integer(r->data_offset),
        "bytes", jsonout_integer(r->bytes), "padding", r->padding, "mb", r->mb, "me", r->me);
}

static void print_json(struct file_task *task, const struct container *c)
{
    struct limefile_record r;
    json_t *head = json_pack("{s:s*, s:o, s:o, s:o, s:o}", "format", c->format, "size",
                             jsonout_integer(limefile_index_size(c->index)), "messages",
                             jsonout_integer(limefile_index_messages(c->index)), "deviations",
                             jsonout_integer(limefile_index_deviations(c->index)), "fault",
                             jsonout_finding(limefile_index_fault(c->index)));
    file_json_begin(task, head);
    fputs(", \"records\": [", stdout);
    for (size_t i = 0; limefile_index_get(c->index, i + 1, &r) == 0; i++)
        jsonout_element(i, record_json(&r));
    fputs("]", stdout);
}

static struct options options;
static struct files_options files;

static int list_file(struct file_task *task)
{
    struct container c;
    int status = container_open_or_mounted(&c, task->path);
    if (status != TOOL_GOOD)
        return status;
    if (task->json) {
        print_json(task, &c);
    } else {
        if (task->several)
            print_line(NULL, "%s:", task->path);
        print_table(&c, &options);
    }
    status = container_report_fault(&c);
    if (limefile_index_size(c.index) == 0) {
        message(task->path, "the file is empty");
        status = TOOL_BAD;
    }
    container_close(&c);
    return status;
}

static const struct option_rule rules[] = {
    FLAG_RULE(NULL, 'l', &options.is_long),
    BYTES_RULE,
    FILES_RULES(files),
    {NULL},
};

static int run_ls(int count, char **paths)
{
    const struct files_command command = {
        .command = &cmd_ls,
        .separator = "\n",
        .is_io_bound = true,
        .skips_others = true,
        .reads_formats = true,
        .examine = list_file,
    };
    return files_command(&command, &files, count, paths);
}

const struct command cmd_ls = {
    "ls", "list the records of containers", help, run_ls, rules, ANY_OPERANDS, NULL};
