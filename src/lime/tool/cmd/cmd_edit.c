/* cmd_edit.c - lime append, replace, rm, set: change the records of a container */
#define _GNU_SOURCE
#include "edit.h"
#include "copy.h"
#include "pack.h"
#include "container.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

static const char append_help[] =
    "Usage: lime append FILE [-m] -t TYPE PATH [[-m] -t TYPE PATH]...\n"
    "Append records to the container FILE, which may be empty. Their data are those\n"
    "of the files PATH; '-' is standard input.\n"
    "\n"
    "  -t, --type TYPE     the type of the record that the next PATH becomes\n"
    "  -m, --new-message   the next record begins a new message; without it, it\n"
    "                      joins the last one\n"
    "      --help          this text\n"
    "\n"
    "Readers see a record when it is whole and on the disk. What a crash leaves\n"
    "unfinished, 'lime repair' cuts off.\n"
    "\n"
    "Examples:\n"
    "  lime append conf.0042 -t ildg-log log.txt\n"
    "  measure | lime append conf.0042 -m -t measurement -\n"
    "\n"
    "Exit status: 0 done, and on the disk; 1 it could not be done, FILE is as it\n"
    "was; 2 wrong usage, or FILE cannot be opened or is no container.\n";

static bool put_item(struct edit *edit, const struct pack_item *item, struct progress *progress)
{
    struct feed feed;
    if (!feed_open(&feed, item->path, edit->c.fd))
        return false;
    progress->total += feed.sized ? (uint64_t)feed.st.st_size : 0;
    bool good = edit_append(edit, item->type, item->mb, &feed, progress);
    feed_close(&feed);
    return good;
}

/* Appends all files, or none after an error. */
static int append(const char *path, const struct packlist *list)
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
        good = put_item(&edit, &item, &progress);
    }
    progress_end(&progress);
    if (!good)
        status = edit_take_back(&edit);
    edit_close(&edit);
    return status;
}

static int check_append(void)
{
    const struct packlist *list = &packwords.list;
    size_t streams = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct pack_item item;
        packlist_get(list, i, &item);
        streams += strcmp(item.path, "-") == 0;
    }
    int status = packwords_check(&cmd_append);
    if (status)
        return status;
    if (!packwords.operand_count)
        return usage_error(&cmd_append, "no file named");
    if (!list->count)
        return usage_error(&cmd_append, "no record named (-t TYPE PATH)");
    if (streams > 1)
        return usage_error(&cmd_append, "standard input can become one record only");
    return TOOL_GOOD;
}

static const struct option_rule append_rules[] = {
    PACKWORDS_RULES,
    {NULL},
};

static int run_append(int count, char **operands)
{
    (void)count;
    (void)operands;
    int status = check_append();
    if (!status)
        status = append(packwords.operands[0], &packwords.list);
    packlist_release(&packwords.list);
    return status;
}

const struct command cmd_append = {
    "append",         "further records at the end of a container",
    append_help,      run_append,
    append_rules,     {NULL, 0, 1},
    packwords_operand};

static const char replace_help[] =
    "Usage: lime replace FILE RECORD PATH\n"
    "Put the data of the file PATH ('-': standard input) into a record of the\n"
    "container FILE. Data of the same length, and those of the last record, are\n"
    "written behind the last record first and then copied into the record, if they\n"
    "are no longer than the rest of FILE. Otherwise a new file is written and then\n"
    "replaces FILE. There must be room for what is written. If the command is\n"
    "killed, FILE has the old data or the new ones, after 'lime repair' at most.\n"
    "\n"
    "      --help    this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "A checksum that the container holds is not computed anew.\n"
    "\n"
    "Example: lime replace conf.0042 xlf-info info.txt\n"
    "\n"
    "Exit status: 0 done, and on the disk; 1 it could not be done; 2 wrong usage, or\n"
    "FILE cannot be opened or is no container.\n";

static void notice_checksum(const struct edit *edit, const struct limefile_record *record)
{
    static const char type[] = "scidac-checksum";
    struct limefile_record next;
    for (uint64_t i = record->ordinal + 1;
         limefile_index_get(edit->c.index, i, &next) == 0 && next.message == record->message;
         i++)
        if (next.type_len == sizeof type - 1 && memcmp(next.type, type, sizeof type - 1) == 0)
            message(edit->c.path, "note: record %" PRIu64 " (%s) is still that of the old data",
                    next.ordinal, type);
}

/* Replacing in place writes the data twice; a rewrite writes them and the rest of the container
 * once. Choose the cheaper one. */
static int replace(struct edit *edit, const struct limefile_record *record, struct feed *feed)
{
    uint64_t bytes = (uint64_t)feed->st.st_size;
    uint64_t rest = limefile_index_size(edit->c.index) - record->bytes;
    bool in_place = (bytes == record->bytes || edit_is_last(edit, record)) && bytes <= rest;
    int status = edit_replace(edit, record, feed, in_place);
    if (status == TOOL_GOOD)
        notice_checksum(edit, record);
    return status;
}

static int replace_in(const char *path, const char *word, const char *data)
{
    struct edit edit;
    struct feed feed;
    struct limefile_record record;
    int status = edit_open(&edit, path);
    if (status != TOOL_GOOD)
        return status;
    status = TOOL_BAD;
    if (select_record(&edit.c, word, false, &record) && feed_open(&feed, data, edit.c.fd)) {
        if (feed_collect(&feed, path))
            status = replace(&edit, &record, &feed);
        feed_close(&feed);
    }
    edit_close(&edit);
    return status;
}

static int run_replace(int count, char **words)
{
    (void)count;
    return replace_in(words[0], words[1], words[2]);
}

const struct command cmd_replace = {
    "replace",    "other data in a record",
    replace_help, run_replace,
    NULL,         {"a file, a record and a path are wanted", 3, 3},
    NULL};

static const char rm_help[] =
    "Usage: lime rm FILE RECORD\n"
    "Remove a record from the container FILE: the last one in place; for an inner\n"
    "one, FILE is written anew beside itself and then replaced, so there must be\n"
    "room for it twice.\n"
    "\n"
    "      --help    this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "\n"
    "Example: lime rm conf.0042 xlf-info\n"
    "\n"
    "Exit status: 0 done, and on the disk; 1 it could not be done, FILE is as it\n"
    "was; 2 wrong usage, or FILE cannot be opened or is no container.\n";

static int remove_last(struct edit *edit)
{
    int err = limefile_remove_last(edit->editor);
    return failed_status(edit->c.path, "remove", err);
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
    "rm", "remove a record", rm_help, run_rm, NULL, {"a file and a record are wanted", 2, 2},
    NULL};

static const char set_help[] =
    "Usage: lime set FILE RECORD [--type TYPE] [--begin-message | --join-message]\n"
    "Change the header of a record of the container FILE, in place.\n"
    "\n"
    "      --type TYPE      the record is of that type\n"
    "      --begin-message  it begins a message; the record before ends one\n"
    "      --join-message   it belongs to the message of the record before\n"
    "      --help           this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "\n"
    "Example: lime set conf.0042 3 --type ildg-binary-data --join-message\n"
    "\n"
    "Exit status: 0 done, and on the disk; 1 it could not be done; 2 wrong usage, or\n"
    "FILE cannot be opened or is no container.\n";

enum boundary {
    AS_IT_IS,
    BEGIN_MESSAGE,
    JOIN_MESSAGE,
};

struct wish {
    const char *type; /* or NULL */
    enum boundary boundary;
};

static int set_type(struct edit *edit, const struct limefile_record *record, const char *type)
{
    if (edit_is_last(edit, record))
        return limefile_editor_set_type(edit->editor, type, strlen(type));
    return limefile_set_type(edit->c.source, record->header_offset, type, strlen(type));
}

static int set_boundary(struct edit *edit, const struct limefile_record *record, bool begins)
{
    struct limefile_record before;
    if (record->mb == begins)
        return 0;
    if (edit_is_last(edit, record))
        return limefile_append_message(edit->editor, begins);
    int err = limefile_index_get(edit->c.index, record->ordinal - 1, &before);
    return err ? err
               : limefile_set_boundary(edit->c.source, before.header_offset,
                                       record->header_offset, begins);
}

static int set(struct edit *edit, const struct limefile_record *record, const struct wish *wish)
{
    if (wish->boundary == JOIN_MESSAGE && record->ordinal == 1) {
        message(edit->c.path, "record 1: the first record always begins a message; nothing was "
                              "changed");
        return TOOL_BAD;
    }
    int err = wish->type ? set_type(edit, record, wish->type) : 0;
    if (!err && wish->boundary != AS_IT_IS)
        err = set_boundary(edit, record, wish->boundary == BEGIN_MESSAGE);
    return failed_status(edit->c.path, "set", err);
}

static int set_in(const char *path, const char *word, const struct wish *wish)
{
    struct edit edit;
    struct limefile_record record;
    int status = edit_open(&edit, path);
    if (status != TOOL_GOOD)
        return status;
    status =
        select_record(&edit.c, word, false, &record) ? set(&edit, &record, wish) : TOOL_BAD;
    edit_close(&edit);
    return status;
}

static struct wish wish;

static int take_boundary(const void *command, enum boundary boundary)
{
    if (wish.boundary != AS_IT_IS && wish.boundary != boundary)
        return usage_error(command, "--begin-message and --join-message exclude each other");
    wish.boundary = boundary;
    return TOOL_GOOD;
}

static int take_begin(const void *command, char *text)
{
    (void)text;
    return take_boundary(command, BEGIN_MESSAGE);
}

static int take_join(const void *command, char *text)
{
    (void)text;
    return take_boundary(command, JOIN_MESSAGE);
}

static const struct option_rule set_rules[] = {
    TEXT_RULE("type", 0, &wish.type),
    {"begin-message", 0, OPTION_CALL, .take = take_begin},
    {"join-message", 0, OPTION_CALL, .take = take_join},
    {NULL},
};

static int run_set(int count, char **words)
{
    (void)count;
    if (!wish.type && wish.boundary == AS_IT_IS)
        return usage_error(&cmd_set,
                           "nothing to set: --type, --begin-message or --join-message");
    if (wish.type && packlist_type_is_bad(words[0], wish.type, strlen(wish.type)))
        return TOOL_UNUSABLE;
    return set_in(words[0], words[1], &wish);
}

const struct command cmd_set = {
    "set",     "another type, other message boundaries", set_help, run_set,
    set_rules, {"a file and a record are wanted", 2, 2}, NULL};
