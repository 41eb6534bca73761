/* cmd_replace.c - lime replace: other data in a record */
#define _GNU_SOURCE
#include "edit.h"
#include "feed.h"
#include "select.h"
#include "limeguard.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

enum {
    STEP_BYTES = 16 * 1024 * 1024, /* in between, signals come through */
};

static const char help[] =
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

/* ---- in place ---- */

struct replacing {
    struct edit *edit;
    struct feed *feed;
    struct limefile_record record;
    struct progress progress;
};

/* A signal waits for the end of a step; the process ends when the old data are settled. */
static bool put(struct replacing *r, const struct limefile_redo *redo)
{
    uint64_t step;
    for (uint64_t done = 0; done < redo->bytes; done += step) {
        uint64_t left = redo->bytes - done;
        step = left < STEP_BYTES ? left : STEP_BYTES;
        if (limefile_guard_waits() ||
            !feed_part(r->feed, done, step, r->edit->c.fd, r->edit->c.path, redo->at + done,
                       &r->progress))
            return false;
    }
    return true;
}

static int put_all(struct replacing *r)
{
    struct limefile_redo redo;
    struct limefile_editor *editor = r->edit->editor;
    int err = limefile_redo_begin(editor, &r->record, (uint64_t)r->feed->st.st_size, &redo);
    if (!err && !put(r, &redo)) {
        err = limefile_redo_abandon(editor);
        if (err)
            message_code(r->edit->c.path, "take back what was written", err);
        return TOOL_BAD;
    }
    if (!err)
        err = limefile_redo_commit(editor, &redo);
    return edit_replaced(r->edit, &redo, err);
}

static int put_in_place(struct replacing *r)
{
    sigset_t before;
    progress_begin(&r->progress, "replace", (uint64_t)r->feed->st.st_size);
    limefile_guard_hold(&before);
    int status = put_all(r);
    progress_end(&r->progress);
    limefile_guard_release(&before);
    return status;
}

/* ---- all ways ---- */

static void notice_checksum(const struct replacing *r)
{
    static const char type[] = "scidac-checksum";
    struct limefile_record next;
    for (uint64_t i = r->record.ordinal + 1;
         limefile_index_get(r->edit->c.index, i, &next) == 0 &&
         next.message == r->record.message;
         i++)
        if (next.type_len == sizeof type - 1 && memcmp(next.type, type, sizeof type - 1) == 0)
            message(r->edit->c.path,
                    "note: record %" PRIu64 " (%s) is still that of the old data", next.ordinal,
                    type);
}

/* In place the new data are written twice, otherwise they and the rest of the container once.
 */
static bool is_in_place(const struct replacing *r, uint64_t bytes)
{
    uint64_t rest = limefile_index_size(r->edit->c.index) - r->record.bytes;
    return (bytes == r->record.bytes || edit_is_last(r->edit, &r->record)) && bytes <= rest;
}

static int replace(struct replacing *r)
{
    uint64_t bytes = (uint64_t)r->feed->st.st_size;
    struct limefile_piece piece = {r->feed->fd, 0, bytes};
    int status =
        is_in_place(r, bytes) ? put_in_place(r) : edit_rewrite(r->edit, &r->record, &piece, 1);
    if (status == TOOL_GOOD)
        notice_checksum(r);
    return status;
}

static int replace_in(const char *path, const char *word, const char *data)
{
    struct edit edit;
    struct feed feed;
    struct replacing r = {.edit = &edit, .feed = &feed};
    int status = edit_open(&edit, path);
    if (status != TOOL_GOOD)
        return status;
    status = TOOL_BAD;
    if (select_record(&edit.c, word, false, &r.record) && feed_open(&feed, data, edit.c.fd)) {
        if (feed_collect(&feed, path))
            status = replace(&r);
        feed_close(&feed);
    }
    edit_close(&edit);
    return status;
}

static int run(int argc, char **argv)
{
    int status;
    if (no_options(&cmd_replace, argc, argv, &status))
        return status;
    if (argc - optind != 3)
        return usage_error(&cmd_replace, "a file, a record and a path are wanted");
    return replace_in(argv[optind], argv[optind + 1], argv[optind + 2]);
}

const struct command cmd_replace = {"replace", "other data in a record", help, run};
