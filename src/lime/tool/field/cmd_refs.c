/*
 * cmd_refs.c - lime refs: many configurations as one array, by reference
 *
 * All files are looked at first, so that nothing is written if one of them does not fit. What
 * is written then is made from the Zarr face of the first: a dimension, "config", before its
 * others, and for each chunk of each file where it stands in that file.
 */
#define _GNU_SOURCE
#include "pathlist.h"
#include "refs.h"
#include "tool.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: lime refs [OPTION]... FILE...\n"
    "       lime refs [OPTION]... -r DIR...\n"
    "       lime refs [OPTION]... --files-from LIST [-0]\n"
    "Print references (kerchunk's, version 1) by which the same field of many\n"
    "containers is one Zarr array over configurations, without a copy: for fsspec,\n"
    "zarr, xarray, kerchunk and VirtualiZarr.\n"
    "\n"
    "      --record RECORD    the record of each file: an ordinal, message.record, a\n"
    "                         type that occurs once; without it, the only field\n"
    "  -t, --type TYPE        the record by its type, whatever that looks like\n"
    "      --url-prefix TEXT  files are at TEXT followed by FILE as it is given here\n"
    "                         (s3://bucket/); without it, at their absolute paths\n"
    "  -r, --recursive        all files of a directory and below it, conf.9 before\n"
    "                         conf.10\n"
    "      --files-from LIST  the files that LIST names, one a line; '-': standard\n"
    "                         input\n"
    "  -0, --null             in LIST, each name ends with a NUL\n"
    "      --help             this text\n"
    "\n"
    "All must have the same lattice, precision and components. The array is called\n"
    "'field', its first dimension 'config' in the order of the files; a chunk is a\n"
    "time slice of one configuration.\n"
    "\n"
    "Examples:\n"
    "  lime refs -r run1 > confs.json\n"
    "  lime refs --url-prefix https://host/run1/ conf.* > confs.json\n"
    "  python3 -c 'import xarray; print(xarray.open_dataset(\"reference://\",\n"
    "      engine=\"zarr\", backend_kwargs={\"consolidated\": False,\n"
    "      \"storage_options\": {\"fo\": \"confs.json\"}}))'\n"
    "\n"
    "Exit status: 0 done; 1 a file does not fit the others, has no such field, or is\n"
    "damaged; 2 wrong usage, or a file cannot be opened or is no container.\n";

struct options {
    struct refs_wanted wanted;
    struct pathlist_options files;
};

static bool look_at_all(struct refs *refs, const struct pathlist *list, int *status)
{
    for (size_t i = 0; i < list->count && *status == TOOL_GOOD; i++)
        *status = refs_add(refs, list->items[i].path);
    return *status == TOOL_GOOD;
}

static int run_on(const struct pathlist *list, const struct options *o)
{
    struct refs refs = {.wanted = &o->wanted};
    int status = TOOL_GOOD;
    if (list->count == 0)
        return usage_error(&cmd_refs, "no file named");
    if (look_at_all(&refs, list, &status))
        status = refs_print(&refs);
    refs_release(&refs);
    return status;
}

static int parse(int argc, char **argv, struct options *o)
{
    enum { OPT_RECORD = 256, OPT_PREFIX, OPT_HELP };
    static const struct option longs[] = {
        {"record", required_argument, NULL, OPT_RECORD},
        {"type", required_argument, NULL, 't'},
        {"url-prefix", required_argument, NULL, OPT_PREFIX},
        PATHLIST_LONG_OPTIONS,
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    int status = TOOL_GOOD;
    for (int opt; !status && (opt = read_option(argc, argv, "t:r0", longs, NULL)) != -1;) {
        if (opt == OPT_RECORD || opt == 't')
            o->wanted.record = optarg, o->wanted.as_type = opt == 't';
        else if (opt == OPT_PREFIX)
            o->wanted.prefix = optarg;
        else if (opt == OPT_HELP)
            return -1;
        else
            status = pathlist_option(&o->files, opt, &cmd_refs, argv);
    }
    return status;
}

static int run(int argc, char **argv)
{
    struct options o = {.wanted = {.record = NULL}};
    struct pathlist list;
    int status = parse(argc, argv, &o);
    if (status != TOOL_GOOD)
        return status < 0 ? print_help(&cmd_refs) : status;
    status = pathlist_make(&list, &o.files, &cmd_refs, argc, argv);
    if (!status)
        status = list.incomplete ? TOOL_BAD : run_on(&list, &o);
    pathlist_release(&list);
    return status;
}

const struct command cmd_refs = {"refs", "print references for Zarr to many configurations",
                                 help, run};
