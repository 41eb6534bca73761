/* cmd_append.c - lime append: further records at the end of a container */
#define _GNU_SOURCE
#include "edit.h"
#include "feed.h"
#include "packwords.h"
#include "limeguard.h"
#include "tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
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

/* ---- the work ---- */

/* A signal cuts what has been written of the record, but comes between no steps of a commit. */
static bool put_data(struct edit *edit, struct feed *feed, struct progress *progress)
{
    sigset_t before;
    struct limefile_last last;
    uint64_t bytes;
    limefile_editor_last(edit->editor, &last);
    if (!feed_run(feed, edit->c.fd, edit->c.path, last.data_offset, progress, &bytes))
        return false;
    limefile_guard_hold(&before);
    int err = limefile_commit(edit->editor, bytes);
    limefile_guard_lift();
    limefile_guard_release(&before);
    if (err)
        message_code(edit->c.path, "append", err);
    return !err;
}

static bool put_record(struct edit *edit, const struct pack_item *item, struct feed *feed,
                       struct progress *progress)
{
    uint64_t end;
    int err = edit->c.file.source.ops->size(&edit->c.file.source, &end);
    if (!err) {
        limefile_guard_end(edit->c.fd, end);
        err = limefile_append_begin(edit->editor, item->type, item->type_len);
    }
    if (!err && item->mb)
        err = limefile_append_message(edit->editor, true);
    if (err) {
        limefile_guard_lift();
        message_code(edit->c.path, "append", err);
        return false;
    }
    return put_data(edit, feed, progress);
}

static bool put_item(struct edit *edit, const struct pack_item *item, struct progress *progress)
{
    struct feed feed;
    if (!feed_open(&feed, item->path, edit->c.fd))
        return false;
    progress->total += feed.sized ? (uint64_t)feed.st.st_size : 0;
    bool good = put_record(edit, item, &feed, progress);
    feed_close(&feed);
    return good;
}

/* All of them or none. */
static int take_back(struct edit *edit)
{
    struct limefile_last last;
    int err = 0;
    while (!err && limefile_editor_last(edit->editor, &last) == 0 &&
           last.ordinal > limefile_index_count(edit->c.index))
        err = limefile_remove_last(edit->editor);
    limefile_guard_lift();
    if (err)
        message_code(edit->c.path, "take back what was appended", err);
    return TOOL_BAD;
}

static int append(const struct packwords *words)
{
    struct edit edit;
    struct progress progress;
    bool good = true;
    int status = edit_open(&edit, words->operands[0]);
    if (status != TOOL_GOOD)
        return status;
    progress_begin(&progress, "append", 0);
    for (size_t i = 0; good && i < words->list.count; i++) {
        struct pack_item item;
        packlist_get(&words->list, i, &item);
        good = put_item(&edit, &item, &progress);
    }
    progress_end(&progress);
    if (!good)
        status = take_back(&edit);
    edit_close(&edit);
    return status;
}

/* ---- the command line ---- */

static int parse(struct packwords *words, int argc, char **argv)
{
    static const struct option longs[] = {
        {"type", required_argument, NULL, 't'},
        {"new-message", no_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    int status = TOOL_GOOD;
    /* "-": operands come in their place among the options */
    for (int opt; !status && (opt = read_option(argc, argv, "-t:m", longs, NULL)) != -1;)
        status = packwords_take(words, &cmd_append, opt, argv);
    return status ? status : packwords_rest(words, &cmd_append, argc, argv);
}

static int check(const struct packwords *words)
{
    size_t streams = 0;
    for (size_t i = 0; i < words->list.count; i++) {
        struct pack_item item;
        packlist_get(&words->list, i, &item);
        streams += strcmp(item.path, "-") == 0;
    }
    int status = packwords_check(words, &cmd_append);
    if (status)
        return status;
    if (!words->operand_count)
        return usage_error(&cmd_append, "no file named");
    if (!words->list.count)
        return usage_error(&cmd_append, "no record named (-t TYPE PATH)");
    if (streams > 1)
        return usage_error(&cmd_append, "standard input can become one record only");
    return TOOL_GOOD;
}

static int run(int argc, char **argv)
{
    struct packwords words = {.most = 1};
    int status = parse(&words, argc, argv);
    if (words.help)
        status = print_help(&cmd_append);
    else if (!status)
        status = check(&words);
    if (!status && !words.help)
        status = append(&words);
    packlist_release(&words.list);
    return status;
}

const struct command cmd_append = {"append", "further records at the end of a container", help,
                                   run};
