/* cmd_info.c - lime info: what is in containers, the way a physicist wants to see it */
#define _GNU_SOURCE
#include "info.h"
#include "pathlist.h"
#include "several.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime info [--json] [-j N] FILE...\n"
    "       lime info [OPTION]... -r DIR...\n"
    "       lime info [OPTION]... --files-from LIST [-0]\n"
    "Tell what LIME containers hold: configurations, propagators and other fields\n"
    "with lattice, precision, size and checksum, and what their writers say of\n"
    "ensemble, inverter and date; checkpoints of particles with domain, cells, step\n"
    "and fields.\n"
    "\n"
    "  -r, --recursive        of a folder, all files that begin like containers,\n"
    "                         and all containers if it is in a mount\n"
    "      --files-from LIST  the files that LIST names, one a line; '-': standard\n"
    "                         input\n"
    "  -0, --null             in LIST, each name ends with a NUL\n"
    "  -j, --threads N        look at N files at once; as many as there are\n"
    "                         processors without it, and at least 4\n"
    "      --json             for scripts: all of it, as JSON\n"
    "      --help             this text\n"
    "\n"
    "It reads metadata, not the data: 'lime check --data' verifies checksums. What\n"
    "contradicts the ILDG and SciDAC formats, or an index of cells, is named at the\n"
    "end, as by 'lime check'. FILE may be a container as limefs shows it, a folder.\n"
    "\n"
    "Examples:\n"
    "  lime info conf.0042\n"
    "  lime info --json conf.* | jq -r '.[].lfn'\n"
    "  lime info -r /data/runs\n"
    "\n"
    "Exit status: 0 all told; 1 a container ends at a fault (what stands before it\n"
    "is told), or cannot be read; 2 a file cannot be opened or is no container, or\n"
    "wrong usage.\n";

/* What a private record XML says; false if it is not there or cannot be understood. */
bool info_private_record(struct info *info, uint64_t ordinal,
                         struct limefile_scidac_record *out)
{
    struct limefile_record r;
    if (!ordinal || limefile_index_get(info->c.index, ordinal, &r) != 0 ||
        r.bytes > LIMEFILE_XML_BYTES_MAX)
        return false;
    size_t n = (size_t)r.bytes;
    char *xml = malloc(n + 1);
    bool good = xml &&
                limefile_read_full(info->c.source, xml, n, r.data_offset) == (ssize_t)n &&
                limefile_scidac_record_parse(xml, n, out) == 0;
    free(xml);
    return good;
}

bool info_lfn(struct info *info, uint64_t ordinal, char out[LIMEFILE_LFN_MAX])
{
    char text[LIMEFILE_LFN_MAX + 64]; /* white space may surround it */
    struct limefile_record r;
    if (!ordinal || limefile_index_get(info->c.index, ordinal, &r) != 0 ||
        r.bytes > sizeof text)
        return false;
    size_t n = (size_t)r.bytes;
    return limefile_read_full(info->c.source, text, n, r.data_offset) == (ssize_t)n &&
           limefile_lfn_parse(text, n, out) == 0;
}

int info_status(struct info *info, int code)
{
    if (code < 0)
        message_code(info->c.path, "read", code);
    return code < 0 ? TOOL_BAD : TOOL_GOOD;
}

int info_read_facts(struct info *info, const struct limefile_record *record,
                    enum facts_form form)
{
    return info_status(info, facts_read(&info->facts, info->c.source, record, form));
}

/* ---- files ---- */

static int info_of(struct info *info, bool json)
{
    int err = limefile_fields_build(info->c.source, info->c.index, &info->fields);
    if (err) {
        message_code(info->c.path, "read", err);
        if (json)
            info_json_failure(info->c.path, container_failure_text(&info->c));
        return TOOL_BAD;
    }
    int status = json ? info_json(info) : info_tell(info);
    limefile_fields_release(&info->fields);
    return worse_status(status, container_fault_message(&info->c));
}

static int info_one(const char *path, bool json)
{
    struct info *info = calloc(1, sizeof *info);
    if (!info) {
        message_code(path, "info", -ENOMEM);
        if (json)
            info_json_failure(path, limefile_strerror(-ENOMEM));
        return TOOL_BAD;
    }
    int status = container_open_shown(&info->c, path);
    if (status == TOOL_GOOD) {
        status = info_of(info, json);
        container_close_shown(&info->c);
    } else if (json) {
        info_json_failure(path, container_failure_text(&info->c));
    }
    free(info);
    return status;
}

struct infos {
    const struct pathlist *list;
    bool json;
};

static const char *name_of(void *context, size_t i)
{
    return ((const struct infos *)context)->list->items[i].path;
}

static bool is_wanted(const struct pathlist_item *item)
{
    bool empty;
    if (!item->found)
        return true;
    int fd = limefile_open(item->path, O_RDONLY);
    bool wanted = fd < 0 || container_begins(fd, &empty);
    if (fd >= 0)
        close(fd);
    return wanted;
}

static int work(void *context, size_t i, unsigned threads, struct progress *progress,
                void *result)
{
    const struct infos *all = context;
    const struct pathlist_item *item = &all->list->items[i];
    (void)threads;
    (void)progress;
    (void)result;
    return is_wanted(item) ? info_one(item->path, all->json) : TOOL_GOOD;
}

static void tell_lost(void *context, size_t i, const char *why)
{
    info_json_failure(name_of(context, i), why);
}

static int info_all(const struct pathlist *list, unsigned at_once, bool json)
{
    struct infos all = {list, json};
    bool several = list->open_ended || list->count > 1;
    const struct several run = {
        .count = list->count,
        .processors = at_once,
        .waits = at_once == 0,
        .whole = json,
        .action = "info",
        .between = json ? ",\n" : "\n\n",
        .context = &all,
        .name = name_of,
        .work = work,
        .lost = json ? tell_lost : NULL,
    };
    if (json && several)
        fputs("[", stdout);
    int worst = several_run(&run);
    if (json)
        fputs(several ? "]\n" : "\n", stdout);
    return list->incomplete ? TOOL_UNUSABLE : worst;
}

/* ---- the command line ---- */

struct options {
    struct pathlist_options files;
    unsigned at_once;
    bool json, help;
};

enum { OPT_JSON = 256, OPT_HELP };

static int take_option(struct options *o, int opt, char **argv)
{
    switch (opt) {
    case 'j':
        return threads_option(&cmd_info, &o->at_once);
    case OPT_JSON:
        o->json = true;
        return TOOL_GOOD;
    case OPT_HELP:
        o->help = true;
        return TOOL_GOOD;
    default:
        return pathlist_option(&o->files, opt, &cmd_info, argv);
    }
}

static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        PATHLIST_LONG_OPTIONS,
        {"threads", required_argument, NULL, 'j'},
        {"json", no_argument, NULL, OPT_JSON},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    int status = TOOL_GOOD;
    for (int opt; !status && (opt = getopt_long(argc, argv, "r0j:", longs, NULL)) != -1;)
        status = take_option(o, opt, argv);
    return status;
}

static int run(int argc, char **argv)
{
    struct options o = {.at_once = 0};
    struct pathlist list;
    int status = parse(&o, argc, argv);
    if (status || o.help)
        return status ? status : print_help(&cmd_info);
    status = pathlist_make(&list, &o.files, &cmd_info, argc, argv);
    if (!status)
        status = info_all(&list, o.at_once, o.json);
    pathlist_release(&list);
    return status;
}

const struct command cmd_info = {"info", "lattice, precision, checksums, ensemble", help, run};
