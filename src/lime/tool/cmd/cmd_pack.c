/* cmd_pack.c - lime pack: a container out of files */
#define _GNU_SOURCE
#include "manifest.h"
#include "packwords.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime pack [-f] DIR FILE\n"
    "       lime pack [-f] -o FILE [-m] -t TYPE PATH [[-m] -t TYPE PATH]...\n"
    "       lime pack [-f] -o FILE --list LISTFILE\n"
    "Make the container FILE: of what 'lime unpack' wrote to DIR, of the files PATH,\n"
    "or of those that a list names. FILE appears, or is replaced, only when all is\n"
    "written.\n"
    "\n"
    "  -o, --output FILE   the container to make\n"
    "  -f, --force         replace FILE if it exists; never if it is packed itself\n"
    "  -t, --type TYPE     the type of the record that the next PATH becomes\n"
    "  -m, --new-message   the next record begins a new message\n"
    "      --list LISTFILE a line 'PATH TYPE' for each record (a TAB between them if\n"
    "                      either holds spaces), a blank line where a new message\n"
    "                      begins\n"
    "      --help          this text\n"
    "\n"
    "In DIR, " MANIFEST_NAME " says order, types and messages; the files may have been\n"
    "edited since, the sizes noted there do not matter.\n"
    "\n"
    "Examples:\n"
    "  lime pack parts conf.0042\n"
    "  lime pack -o new.lime -t xlf-info info.txt -m -t ildg-format f.xml \\\n"
    "      -t ildg-binary-data links.bin\n"
    "\n"
    "Exit status: 0 done; 1 it could not be made, FILE is as it was; 2 wrong usage.\n";

static int pack_folder(const char *folder, const char *target, bool force)
{
    struct packlist list = {0};
    int status = TOOL_BAD;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        message_code(folder, "open", -errno);
        return TOOL_BAD;
    }
    if (packlist_read_manifest(&list, fd, folder)) {
        uint64_t mended = packlist_mend(&list);
        if (mended)
            message(folder,
                    MANIFEST_NAME ": warning: message flags of %" PRIu64
                                  " records contradict each other; written as they should be",
                    mended);
        struct packing packing = {
            .list = &list,
            .folder = fd,
            .folder_name = folder,
            .list_name = MANIFEST_NAME,
            .force = force,
        };
        status = pack_to_file(&packing, target);
    }
    packlist_release(&list);
    close(fd);
    return status;
}

struct options {
    struct packwords
        words; /* without a type before it, a word is DIR or FILE of the first form */
    const char *output, *listfile;
    bool force;
};

static int pack_list(struct options *o)
{
    struct packing packing = {
        .list = &o->words.list,
        .folder = AT_FDCWD,
        .list_name = o->listfile,
        .follow_links = true,
        .force = o->force,
    };
    packlist_mend(&o->words.list);
    return pack_to_file(&packing, o->output);
}

static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'},
        {"type", required_argument, NULL, 't'},
        {"new-message", no_argument, NULL, 'm'},
        {"list", required_argument, NULL, 'l'},
        {"force", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    int status = TOOL_GOOD;
    for (int opt; !status && (opt = read_option(argc, argv, "-fo:t:m", longs, NULL)) != -1;) {
        if (opt == 'o')
            o->output = optarg;
        else if (opt == 'f')
            o->force = true;
        else if (opt == 'l')
            o->listfile = optarg;
        else
            status = packwords_take(&o->words, &cmd_pack, opt, argv);
    }
    return status ? status : packwords_rest(&o->words, &cmd_pack, argc, argv);
}

static int pack(struct options *o)
{
    struct packlist *list = &o->words.list;
    const char *const *operands = o->words.operands;
    int status = packwords_check(&o->words, &cmd_pack);
    if (status)
        return status;
    if (!o->output) {
        if (o->words.operand_count != 2 || list->count || o->listfile)
            return usage_error(&cmd_pack, "either DIR and FILE, or -o FILE and what to pack");
        return pack_folder(operands[0], operands[1], o->force);
    }
    if (o->words.operand_count)
        return usage_error(&cmd_pack, "%s: no type (-t) before it", operands[0]);
    if (!o->listfile == !list->count)
        return usage_error(&cmd_pack, "-o: either --list or records (-t TYPE PATH) are wanted");
    if (o->listfile && !packlist_read_list(list, o->listfile, true))
        return TOOL_BAD;
    return pack_list(o);
}

static int run(int argc, char **argv)
{
    struct options o = {.words.most = PACKWORDS_OPERANDS};
    int status = parse(&o, argc, argv);
    if (o.words.help)
        status = print_help(&cmd_pack);
    else if (!status)
        status = pack(&o);
    packlist_release(&o.words.list);
    return status;
}

const struct command cmd_pack = {"pack", "a container out of files", help, run};
