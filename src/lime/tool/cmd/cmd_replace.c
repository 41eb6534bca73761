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
    "written in place; else FILE is written anew beside itself and then replaced, so\n"
    "there must be room for it twice.\n"
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
    bool mixed; /* some of the old data are gone */
};

/* A signal waits for the end of a step, and ends the process when what is to be put right has
 * been: what was not committed is cut, what is part old and part new is named. */
static bool put(struct replacing *r, uint64_t from, uint64_t n)
{
    for (uint64_t step; n > 0; from += step, n -= step) {
        step = n < STEP_BYTES ? n : STEP_BYTES;
        if (limefile_guard_waits())
            return false;
        r->mixed = r->mixed || from < r->record.bytes;
        if (!feed_part(r->feed, from, step, r->edit->c.fd, r->edit->c.path,
                       r->record.data_offset + from, &r->progress))
            return false;
    }
    return true;
}

static void tell_mixed(const struct replacing *r)
{
    if (r->mixed)
        message(r->edit->c.path, "replace: record %" PRIu64 " is part old, part new now",
                r->record.ordinal);
}

static bool failed(const struct replacing *r, int err)
{
    if (err)
        message_code(r->edit->c.path, "replace", err);
    return err != 0;
}

static int put_same(struct replacing *r)
{
    struct limefile_source *source = &r->edit->c.file.source;
    if (!put(r, 0, r->record.bytes)) {
        tell_mixed(r);
        return TOOL_BAD;
    }
    return failed(r, source->ops->sync(source)) ? TOOL_BAD : TOOL_GOOD;
}

/* What is new behind the old end comes first: if there is no room, nothing has happened. */
static int put_last(struct replacing *r)
{
    uint64_t old = r->record.bytes, bytes = (uint64_t)r->feed->st.st_size;
    struct limefile_editor *editor = r->edit->editor;
    if (bytes > old) {
        if (failed(r, limefile_growth_begin(editor)))
            return TOOL_BAD;
        if (!put(r, old, bytes - old)) {
            failed(r, limefile_commit(editor, old));
            return TOOL_BAD;
        }
    }
    if (!put(r, 0, bytes < old ? bytes : old)) {
        tell_mixed(r);
        failed(r, limefile_commit(editor, old));
        return TOOL_BAD;
    }
    return failed(r, limefile_commit(editor, bytes)) ? TOOL_BAD : TOOL_GOOD;
}

static int put_in_place(struct replacing *r, bool last)
{
    sigset_t before;
    progress_begin(&r->progress, "replace", (uint64_t)r->feed->st.st_size);
    limefile_guard_hold(&before);
    int status = last ? put_last(r) : put_same(r);
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

static int replace(struct replacing *r)
{
    int status;
    uint64_t bytes = (uint64_t)r->feed->st.st_size;
    struct limefile_piece piece = {r->feed->fd, 0, bytes};
    bool last = edit_is_last(r->edit, &r->record);
    if (bytes != r->record.bytes && !last) {
        status = edit_rewrite(r->edit, &r->record, &piece, 1);
    } else {
        status = put_in_place(r, last);
    }
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
