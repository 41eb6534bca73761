/* cmd_rm.c - lime rm: a container without one of its records */
#include "edit.h"
#include "select.h"
#include "tool.h"

#include <getopt.h>

static const char help[] =
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
    if (err)
        message_code(edit->c.path, "remove", err);
    return err ? TOOL_BAD : TOOL_GOOD;
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
        status = edit_rewrite(&edit, &record, NULL, 0);
    edit_close(&edit);
    return status;
}

static int run(int argc, char **argv)
{
    int status;
    if (no_options(&cmd_rm, argc, argv, &status))
        return status;
    if (argc - optind != 2)
        return usage_error(&cmd_rm, "a file and a record are wanted");
    return remove_record(argv[optind], argv[optind + 1]);
}

const struct command cmd_rm = {"rm", "remove a record", help, run};
