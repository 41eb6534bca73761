/* cmd_new.c - lime new: empty containers */
#define _GNU_SOURCE
#include "limeoutput.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime new [-f] FILE...\n"
    "Make empty containers. An empty container is an empty file; 'lime append' puts\n"
    "records into it. In a limefs mount it is a directory at once, whatever its name\n"
    "(mkdir makes containers only of names that end in .lime).\n"
    "\n"
    "  -f, --force  replace FILE if it exists, by an empty container\n"
    "      --help   this text\n"
    "\n"
    "Example: lime new conf.0100 && lime append conf.0100 -t xlf-info info.txt\n"
    "\n"
    "Exit status: 0 all made, and on the disk; 1 one could not be; 2 wrong usage.\n";

static int make_file(const char *path, bool force)
{
    struct limefile_output out;
    int err = limefile_output_open(&out, path, force, NULL, 0);
    return err ? err : limefile_output_commit(&out);
}

/* The mount makes a container where the name says so; it stays one when it is renamed. */
static int make_in_folder(int folder, const char *name, bool force)
{
    char temporary[64];
    snprintf(temporary, sizeof temporary, ".lime-new-%ld.lime", (long)getpid());
    if (mkdirat(folder, temporary, 0777) != 0)
        return -errno;
    if (renameat2(folder, temporary, folder, name, force ? 0 : RENAME_NOREPLACE) == 0)
        return 0;
    int err = errno == EEXIST && !force ? LIMEFILE_E_OUTPUT_EXISTS : -errno;
    unlinkat(folder, temporary, AT_REMOVEDIR);
    return err;
}

static int make_in_mount(const char *parent, const char *name, bool force)
{
    int folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int err = make_in_folder(folder, name, force);
    close(folder);
    return err;
}

static int make(const char *path, bool force)
{
    char *copies[2] = {strdup(path), strdup(path)}; /* dirname() and basename() change them */
    int err = copies[0] && copies[1] ? 0 : -ENOMEM;
    const char *parent = err ? "." : dirname(copies[0]);
    if (!err)
        err = is_in_limefs(parent) ? make_in_mount(parent, basename(copies[1]), force)
                                   : make_file(path, force);
    free(copies[0]);
    free(copies[1]);
    if (err)
        message_output(path, "new", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

static int run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"force", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    int worst = TOOL_GOOD;
    bool force = false;
    for (int opt; (opt = read_option(argc, argv, "f", longs, NULL)) != -1;) {
        if (opt != 'f')
            return opt == 'H' ? print_help(&cmd_new) : option_error(&cmd_new, argv);
        force = true;
    }
    if (optind == argc)
        return usage_error(&cmd_new, "the name of a file is wanted");
    for (int i = optind; i < argc; i++)
        if (make(argv[i], force) != TOOL_GOOD)
            worst = TOOL_BAD;
    return worst;
}

const struct command cmd_new = {"new", "make an empty container", help, run};
