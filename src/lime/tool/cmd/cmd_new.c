/* cmd_new.c - lime new: empty containers */
#define _GNU_SOURCE
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
    "Usage: lime new FILE...\n"
    "Make empty containers. An empty container is an empty file; 'lime append' puts\n"
    "records into it. In a limefs mount it is a directory at once, whatever its name\n"
    "(mkdir makes containers only of names that end in .lime).\n"
    "\n"
    "      --help    this text\n"
    "\n"
    "Example: lime new conf.0100 && lime append conf.0100 -t xlf-info info.txt\n"
    "\n"
    "Exit status: 0 all made, and on the disk; 1 one could not be; 2 wrong usage.\n";

static int make_file(int folder, const char *name)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    int err = fsync(fd) == 0 && fsync(folder) == 0 ? 0 : -errno;
    close(fd);
    return err;
}

/* The mount makes a container where the name says so; it stays one when it is renamed. */
static int make_in_mount(int folder, const char *name)
{
    char temporary[64];
    snprintf(temporary, sizeof temporary, ".lime-new-%ld.lime", (long)getpid());
    if (mkdirat(folder, temporary, 0777) != 0)
        return -errno;
    if (renameat2(folder, temporary, folder, name, RENAME_NOREPLACE) == 0)
        return 0;
    int err = -errno;
    unlinkat(folder, temporary, AT_REMOVEDIR);
    return err;
}

static int make(const char *path)
{
    char *copies[2] = {strdup(path), strdup(path)}; /* dirname() and basename() change them */
    int err = copies[0] && copies[1] ? 0 : -ENOMEM;
    const char *parent = err ? "." : dirname(copies[0]);
    int folder = err ? -1 : open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!err && folder < 0)
        err = -errno;
    if (!err)
        err = is_in_limefs(parent) ? make_in_mount(folder, basename(copies[1]))
                                   : make_file(folder, basename(copies[1]));
    if (folder >= 0)
        close(folder);
    free(copies[0]);
    free(copies[1]);
    if (err)
        message_code(path, "new", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

static int run(int argc, char **argv)
{
    int status, worst = TOOL_GOOD;
    if (no_options(&cmd_new, argc, argv, &status))
        return status;
    if (optind == argc)
        return usage_error(&cmd_new, "the name of a file is wanted");
    for (int i = optind; i < argc; i++)
        if (make(argv[i]) != TOOL_GOOD)
            worst = TOOL_BAD;
    return worst;
}

const struct command cmd_new = {"new", "make an empty container", help, run};
