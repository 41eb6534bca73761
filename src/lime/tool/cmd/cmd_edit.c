/* cmd_edit.c - lime append, replace, rm, set: change the records of a container */
#define _GNU_SOURCE
#include "edit.h"
#include "record_input.h"
#include "pack.h"
#include "container.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

static const char append_help[] =
    "Usage: lime append FILE [-m] -t TYPE PATH [[-m] -t TYPE PATH]...\n"
    "Append the files PATH as records to the container FILE, which may be empty;\n"
    "'-' is standard input.\n"
    "\n"
    "  -t, --type TYPE     the type of the record that the next PATH becomes\n"
    "  -m, --new-message   the next record begins a new message; without it, it\n"
    "                      joins the last one\n"
    "  -h, --help          this text\n"
    "\n"
    "Readers see a record when it is complete and on the disk. 'lime repair' cuts\n"
    "off a record that a crash has left unfinished.\n"
    "\n"
    "Examples:\n"
    "  lime append conf.0042 -t ildg-log log.txt\n"
    "  measure | lime append conf.0042 -m -t measurement -\n"
    "\n"
    "Exit status: 0 done, and on the disk; 1 failed, FILE is unchanged; 2 wrong\n"
    "usage, or FILE cannot be opened or is not a container.\n";

static bool append_item(struct edit *edit, const struct pack_item *item,
                        struct progress *progress)
{
    struct input input;
    if (!input_open(&input, item->path, edit->c.fd))
        return false;
    progress->total += input.has_size ? (uint64_t)input.st.st_size : 0;
    bool good = edit_append(edit, item->type, item->mb, &input, progress);
    input_close(&input);
    return good;
}

/* Appends all files or, if one fails, none. */
static int append_items(const char *path, const struct packlist *list)
{
    struct edit edit;
    struct progress progress;
    bool good = true;
    int status = edit_open(&edit, path);
    if (status != TOOL_GOOD)
        return status;
    progress_begin(&progress, "append", 0);
    for (size_t i = 0; good && i < list->count; i++) {
        struct pack_item item;
        packlist_get(list, i, &item);
        good = append_item(&edit, &item, &progress);
    }
    progress_end(&progress);
    if (!good)
        status = edit_rollback(&edit);
    edit_close(&edit);
    return status;
}

static int check_append(void)
{
    const struct packlist *list = &packargs.list;
    size_t streams = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct pack_item item;
        packlist_get(list, i, &item);
        streams += strcmp(item.path, "-") == 0;
    }
    int status = packargs_check(&cmd_append);
    if (status)
        return status;
    if (!packargs.operand_count)
        return usage_error(&cmd_append, "no FILE given");
    if (!list->count)
        return usage_error(&cmd_append, "no record given (-t TYPE PATH)");
    if (streams > 1)
        return usage_error(&cmd_append, "'-' can be given only once");
    return TOOL_GOOD;
}

static const struct option_rule append_rules[] = {
    PACKARGS_RULES,
    {NULL},
};

static int run_append(int count, char **operands)
{
    (void)count;
    (void)operands;
    int status = check_append();
    if (!status)
        status = append_items(packargs.operands[0], &packargs.list);
    packlist_release(&packargs.list);
    return status;
}

const struct command cmd_append = {"append",        "append records to a container",
                                   append_help,     run_append,
                                   append_rules,    {NULL, 0, 1},
                                   packargs_operand};

static const char replace_help[] =
    "Usage: lime replace FILE RECORD PATH\n"
    "Replace the data of a record of the container FILE by the file PATH ('-':\n"
    "standard input). Data of the same length, and data of the last record, are\n"
    "first written after the last record and then copied into the record, if they\n"
    "are no longer than the rest of FILE. Otherwise a new file is written and then\n"
    "replaces FILE. There must be space for what is written. If the command is\n"
    "killed, FILE has the old or the new data, perhaps only after 'lime repair'.\n"
    "\n"
    "  -h, --help    this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "A checksum record of the old data is not changed.\n"
    "\n"
    "Example: lime replace conf.0042 xlf-info info.txt\n"
    "\n"
    "Exit status: 0 done, and on the disk; 1 failed; 2 wrong usage, or FILE cannot\n"
    "be opened or is not a container.\n";

static void note_stale_checksum(const struct edit *edit, const struct limefile_record *record)
{
    static const char type[] = "scidac-checksum";
    struct limefile_record next;
    for (uint64_t i = record->ordinal + 1;
         limefile_index_get(edit->c.index, i, &next) == 0 && next.message == record->message;
         i++)
        if (next.type_len == sizeof type - 1 && memcmp(next.type, type, sizeof type - 1) == 0)
            message(edit->c.path,
                    "note: record %" PRIu64 " (%s) is the checksum of the old data",
                    next.ordinal, type);
}

/* Replacing in place writes the data twice; a rewrite writes the data and the rest of the
 * container once. Chooses the cheaper way if both are possible. */
static int replace_data(struct edit *edit, const struct limefile_record *record,
                        struct input *input)
{
    uint64_t bytes = (uint64_t)input->st.st_size;
    uint64_t rest = limefile_index_size(edit->c.index) - record->bytes;
    bool in_place = (bytes == record->bytes || edit_is_last(edit, record)) && bytes <= rest;
    int status = edit_replace(edit, record, input, in_place);
    if (status == TOOL_GOOD)
        note_stale_checksum(edit, record);
    return status;
}

static int replace_in_file(const char *path, const char *word, const char *data)
{
    struct edit edit;
    struct input input;
    struct limefile_record record;
    int status = edit_open(&edit, path);
    if (status != TOOL_GOOD)
        return status;
    status = TOOL_BAD;
    if (select_record(&edit.c, word, false, &record) && input_open(&input, data, edit.c.fd)) {
        if (input_spool(&input, path))
            status = replace_data(&edit, &record, &input);
        input_close(&input);
    }
    edit_close(&edit);
    return status;
}

static int run_replace(int count, char **words)
{
    (void)count;
    return replace_in_file(words[0], words[1], words[2]);
}

const struct command cmd_replace = {
    "replace", "replace the data of a record",           replace_help, run_replace,
    NULL,      {"FILE, RECORD and PATH expected", 3, 3}, NULL};

static const char rm_help[] =
    "Usage: lime rm FILE RECORD\n"
    "Remove a record from the container FILE: the last one in place; for an inner\n"
    "one, a new file is written and then replaces FILE, so there must be space for\n"
    "both.\n"
    "\n"
    "  -h, --help    this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "\n"
    "Example: lime rm conf.0042 xlf-info\n"
    "\n"
    "Exit status: 0 done, and on the disk; 1 failed, FILE is unchanged; 2 wrong\n"
    "usage, or FILE cannot be opened or is not a container.\n";

static int remove_last(struct edit *edit)
{
    int err = limefile_remove_last(edit->editor);
    return report_error(edit->c.path, "remove", err);
}

static int remove_record(const char *path, const char *word)
{
    struct edit edit;
    struct limefile_record record;
    int status = edit_open(&edit, path);
    if (status != TOOL_GOOD)
        return status;
    if (!select_record(&edit.c, word, false, &record))
        status = TOOL_BAD;
    else if (edit_is_last(&edit, &record))
        status = remove_last(&edit);
    else
        status = edit_remove(&edit, &record);
    edit_close(&edit);
    return status;
}

static int run_rm(int count, char **words)
{
    (void)count;
    return remove_record(words[0], words[1]);
}

const struct command cmd_rm = {
    "rm", "remove a record", rm_help, run_rm, NULL, {"FILE and RECORD expected", 2, 2}, NULL};

static const char set_help[] =
    "Usage: lime set FILE RECORD [--type TYPE] [--begin-message | --join-message]\n"
    "Change the header of a record of the container FILE, in place.\n"
    "\n"
    "      --type TYPE      change the type\n"
    "      --begin-message  the record begins a message; the one before ends one\n"
    "      --join-message   the record joins the message of the one before it\n"
    "  -h, --help           this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "\n"
    "Example: lime set conf.0042 3 --type ildg-binary-data --join-message\n"
    "\n"
    "Exit status: 0 done, and on the disk; 1 failed; 2 wrong usage, or FILE cannot\n"
    "be opened or is not a container.\n";

enum boundary {
    KEEP_BOUNDARY,
    BEGIN_MESSAGE,
    JOIN_MESSAGE,
};

struct header_change {
    const char *type; /* or NULL */
    enum boundary boundary;
};

/* Changes a record's type: the last record's by the editor, because the editor caches it. */
static int change_type(struct edit *edit, const struct limefile_record *record,
                       const char *type)
{
    if (edit_is_last(edit, record))
        return limefile_editor_set_type(edit->editor, type, strlen(type));
    return limefile_set_type(edit->c.source, record->header_offset, type, strlen(type));
}

static int change_boundary(struct edit *edit, const struct limefile_record *record, bool begins)
{
    struct limefile_record before;
    if (record->mb == begins)
        return 0;
    if (edit_is_last(edit, record))
        return limefile_editor_set_mb(edit->editor, begins);
    int err = limefile_index_get(edit->c.index, record->ordinal - 1, &before);
    return err ? err
               : limefile_set_boundary(edit->c.source, before.header_offset,
                                       record->header_offset, begins);
}

static int change_header(struct edit *edit, const struct limefile_record *record,
                         const struct header_change *change)
{
    if (change->boundary == JOIN_MESSAGE && record->ordinal == 1) {
        message(edit->c.path, "record 1: the first record always begins a message; nothing was "
                              "changed");
        return TOOL_BAD;
    }
    int err = change->type ? change_type(edit, record, change->type) : 0;
    if (!err && change->boundary != KEEP_BOUNDARY)
        err = change_boundary(edit, record, change->boundary == BEGIN_MESSAGE);
    return report_error(edit->c.path, "set", err);
}

static int change_file(const char *path, const char *word, const struct header_change *change)
{
    struct edit edit;
    struct limefile_record record;
    int status = edit_open(&edit, path);
    if (status != TOOL_GOOD)
        return status;
    status = select_record(&edit.c, word, false, &record)
                 ? change_header(&edit, &record, change)
                 : TOOL_BAD;
    edit_close(&edit);
    return status;
}

static struct header_change change;

static int choose_boundary(const void *command, enum boundary boundary)
{
    if (change.boundary != KEEP_BOUNDARY && change.boundary != boundary)
        return usage_error(command, "--begin-message and --join-message cannot be combined");
    change.boundary = boundary;
    return TOOL_GOOD;
}

static int parse_begin_option(const void *command, char *text)
{
    (void)text;
    return choose_boundary(command, BEGIN_MESSAGE);
}

static int parse_join_option(const void *command, char *text)
{
    (void)text;
    return choose_boundary(command, JOIN_MESSAGE);
}

static const struct option_rule set_rules[] = {
    TEXT_RULE("type", 0, &change.type),
    {"begin-message", 0, OPTION_CALL, .handle = parse_begin_option},
    {"join-message", 0, OPTION_CALL, .handle = parse_join_option},
    {NULL},
};

static int run_set(int count, char **words)
{
    (void)count;
    if (!change.type && change.boundary == KEEP_BOUNDARY)
        return usage_error(&cmd_set,
                           "nothing to set; use --type, --begin-message or --join-message");
    if (change.type && packlist_type_is_invalid(words[0], change.type, strlen(change.type)))
        return TOOL_UNUSABLE;
    return change_file(words[0], words[1], &change);
}

const struct command cmd_set = {
    "set",     "change type and message boundaries", set_help, run_set,
    set_rules, {"FILE and RECORD expected", 2, 2},   NULL};
