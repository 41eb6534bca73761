/* cmd_set.c - lime set: another type, other message boundaries */
#include "edit.h"
#include "packlist.h"
#include "select.h"
#include "tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

static const char help[] =
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
    return limefile_set_type(&edit->c.file.source, record->header_offset, type, strlen(type));
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
               : limefile_set_boundary(&edit->c.file.source, before.header_offset,
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
    if (err)
        message_code(edit->c.path, "set", err);
    return err ? TOOL_BAD : TOOL_GOOD;
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

static int run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"type", required_argument, NULL, 't'},
        {"begin-message", no_argument, NULL, 'b'},
        {"join-message", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    struct wish wish = {0};
    for (int opt; (opt = read_option(argc, argv, "", longs, NULL)) != -1;) {
        enum boundary boundary = opt == 'b' ? BEGIN_MESSAGE : JOIN_MESSAGE;
        if (opt == 't')
            wish.type = optarg;
        else if (opt != 'b' && opt != 'j')
            return opt == 'H' ? print_help(&cmd_set) : option_error(&cmd_set, argv);
        else if (wish.boundary != AS_IT_IS && wish.boundary != boundary)
            return usage_error(&cmd_set,
                               "--begin-message and --join-message exclude each other");
        else
            wish.boundary = boundary;
    }
    if (argc - optind != 2)
        return usage_error(&cmd_set, "a file and a record are wanted");
    if (!wish.type && wish.boundary == AS_IT_IS)
        return usage_error(&cmd_set,
                           "nothing to set: --type, --begin-message or --join-message");
    if (wish.type && packlist_type_is_bad(argv[optind], wish.type, strlen(wish.type)))
        return TOOL_UNUSABLE;
    return set_in(argv[optind], argv[optind + 1], &wish);
}

const struct command cmd_set = {"set", "another type, other message boundaries", help, run};
