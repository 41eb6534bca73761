/* cmd_cat.c - lime cat: the data of records on standard output, at full speed */
#define _GNU_SOURCE
#include "copy.h"
#include "facecat.h"
#include "select.h"
#include "tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime cat [--range OFF:LEN] FILE {RECORD | -t TYPE}...\n"
    "Write the data of records to standard output, byte for byte.\n"
    "\n"
    "  -t, --type TYPE      a record by its type, whatever that looks like\n"
    "      --range OFF:LEN  only LEN bytes from byte OFF of the data (the first is\n"
    "                       0); 'OFF:' goes on to the end; k, M, G, T mean powers\n"
    "                       of 1024\n"
    "      --help           this text\n"
    "\n"
    "RECORD is an ordinal (3), message.record (2.1), a type that occurs once\n"
    "(ildg-format), or a name in a mount (003-ildg-format). 'lime ls' shows them.\n"
    "Of a field, RECORD.npy is the array as a file of numpy's (RECORD.le.npy in this\n"
    "machine's byte order), RECORD.h5 as one of HDF5, RECORD.t/000 its first time\n"
    "slice; lime(1) has all of these faces.\n"
    "\n"
    "Examples:\n"
    "  lime cat conf.0042 ildg-format\n"
    "  lime cat conf.0042 2.2 > links.bin\n"
    "  lime cat --range 1M:4k conf.0042 ildg-binary-data | xxd\n"
    "  lime cat conf.0042 ildg-binary-data.f4.le.npy > links.npy\n"
    "\n"
    "Exit status: 0 done; 1 no such record, or reading or writing failed; 2 wrong\n"
    "usage, or FILE cannot be opened or is no container.\n";

struct range {
    bool given, to_end;
    uint64_t offset, bytes;
};

struct choice {
    const char *word;
    bool as_type;
};

static bool parse_range(const char *text, struct range *r)
{
    const char *colon = strchr(text, ':');
    r->given = true;
    if (!colon || !number_parse_size(text, (size_t)(colon - text), &r->offset))
        return false;
    r->to_end = colon[1] == '\0';
    return r->to_end || number_parse_size(colon + 1, strlen(colon + 1), &r->bytes);
}

/* Cuts the record's data down to the range; false after a message. */
static bool apply_range(const struct container *c, const struct limefile_record *record,
                        const struct range *r, struct copy *copy)
{
    if (!r->given)
        return true;
    if (r->offset > record->bytes || (!r->to_end && r->bytes > record->bytes - r->offset)) {
        message(c->path,
                "record %" PRIu64 ": range: it reaches beyond the record's %" PRIu64 " bytes",
                record->ordinal, record->bytes);
        return false;
    }
    copy->in_offset += r->offset;
    copy->left = r->to_end ? record->bytes - r->offset : r->bytes;
    return true;
}

static bool put_record(const struct container *c, const struct limefile_record *record,
                       const struct range *range)
{
    struct progress progress;
    struct copy copy = copy_to_stdout(c->fd, record);
    if (!apply_range(c, record, range, &copy))
        return false;
    if (!isatty(STDOUT_FILENO)) {
        progress_begin(&progress, "cat", copy.left);
        copy.progress = &progress;
    }
    int err = copy_run(&copy);
    if (copy.progress)
        progress_end(&progress);
    if (err)
        copy_message(&copy, c->path, "standard output", err);
    return !err;
}

static bool put_face(struct facecat *face, const struct range *range)
{
    struct progress progress;
    struct limefile_record whole = face->record;
    whole.bytes = face->bytes;
    whole.data_offset = 0;
    struct copy copy = copy_to_stdout(face->c->fd, &whole);
    if (!apply_range(face->c, &whole, range, &copy))
        return false;
    progress_begin(&progress, "cat", copy.left);
    bool good = facecat_put(face, copy.in_offset, copy.left, &progress);
    progress_end(&progress);
    return good;
}

static bool put_choice(const struct container *c, const struct choice *choice,
                       const struct range *range)
{
    struct limefile_record record;
    struct facecat face;
    int found = choice->as_type ? 0 : facecat_open(c, choice->word, &face);
    if (found == 0)
        return select_record(c, choice->word, choice->as_type, &record) &&
               put_record(c, &record, range);
    bool good = found > 0 && put_face(&face, range);
    facecat_close(&face);
    return good;
}

static int put_all(const char *path, const struct choice *choices, int count,
                   const struct range *range)
{
    struct container c;
    int status = container_open(&c, path);
    if (status != TOOL_GOOD)
        return status;
    for (int i = 0; i < count && status == TOOL_GOOD; i++)
        if (!put_choice(&c, &choices[i], range))
            status = TOOL_BAD;
    container_close(&c);
    return status;
}

static int parse(int argc, char **argv, struct choice *choices)
{
    static const struct option longs[] = {
        {"type", required_argument, NULL, 't'},
        {"range", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    struct range range = {0};
    const char *path = NULL;
    int count = 0;
    /* "-": operands come in their place among the options, so that their order counts */
    for (int opt; (opt = read_option(argc, argv, "-t:", longs, NULL)) != -1;) {
        if (opt == 't')
            choices[count++] = (struct choice){optarg, true};
        else if (opt == 1 && !path)
            path = optarg;
        else if (opt == 1)
            choices[count++] = (struct choice){optarg, false};
        else if (opt == 'H')
            return print_help(&cmd_cat);
        else if (opt != 'r')
            return option_error(&cmd_cat, argv);
        else if (!parse_range(optarg, &range))
            return value_error(&cmd_cat, "--range", NULL, optarg, "OFF:LEN or OFF:");
    }
    for (; optind < argc; optind++) /* behind "--" */
        if (path)
            choices[count++] = (struct choice){argv[optind], false};
        else
            path = argv[optind];
    if (!path || count == 0)
        return usage_error(&cmd_cat, path ? "no record named" : "no file named");
    return put_all(path, choices, count, &range);
}

static int run(int argc, char **argv)
{
    struct choice *choices = calloc((size_t)argc, sizeof *choices);
    if (!choices) {
        message(NULL, "out of memory");
        return TOOL_BAD;
    }
    int status = parse(argc, argv, choices);
    free(choices);
    return status;
}

const struct command cmd_cat = {"cat", "write a record's data to standard output", help, run};
