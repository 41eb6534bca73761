/* cmd_info.c - lime info: what is in containers, the way a physicist wants to see it */
#define _GNU_SOURCE
#include "info.h"
#include "limebeginning.h"
#include "parallel.h"
#include "pathlist.h"
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
    "  -r, --recursive        describe all containers in a directory and below it;\n"
    "                         other files are skipped\n"
    "      --files-from LIST  describe the files that LIST names, one a line; '-':\n"
    "                         standard input\n"
    "  -0, --null             in LIST, each name ends with a NUL\n"
    "  -j, --threads N        read N files at once (default: as many as there are\n"
    "                         processors, and at least 4)\n"
    "      --json             print all of it as JSON, for scripts\n"
    "      --help             print this text\n"
    "\n"
    "lime info reads metadata, not the data: 'lime check --data' verifies checksums.\n"
    "What contradicts the ILDG and SciDAC formats, or an index of cells, is printed\n"
    "at the end, as by 'lime check'. FILE may be a container in a limefs mount: a\n"
    "directory.\n"
    "\n"
    "Examples:\n"
    "  lime info conf.0042\n"
    "  lime info --json conf.* | jq -r '.[].lfn'\n"
    "  lime info -r /data/runs\n"
    "\n"
    "Exit status, the worst of all files: 0 good; 1 structure or metadata are bad\n"
    "(what can be read is printed); 2 a file cannot be read or is not a container,\n"
    "or wrong usage.\n";

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
    return code < 0 ? TOOL_UNUSABLE : TOOL_GOOD;
}

const struct limefile_finding *info_fault(const struct info *info)
{
    static const struct limefile_finding empty = {.code = LIMEFILE_D_EMPTY};
    return limefile_index_size(info->c.index) ? limefile_index_fault(info->c.index) : &empty;
}

int info_judge(const struct info *info, int status)
{
    const struct limefile_finding *fault = info_fault(info);
    bool bad = fault || info->deviations;
    if (fault && finding_is_unreadable(fault))
        status = TOOL_UNUSABLE;
    return worse_status(status, bad ? TOOL_BAD : TOOL_GOOD);
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
            info_json_failure(info->c.path, limefile_strerror(err), LIMEFILE_UNREADABLE);
        return TOOL_UNUSABLE;
    }
    info->deviations = info->c.deviations;
    int status = json ? info_json(info) : info_tell(info);
    limefile_fields_release(&info->fields);
    const struct limefile_finding *fault = info_fault(info);
    if (fault)
        finding_message(info->c.path, fault);
    return info_judge(info, status);
}

static int info_one(const char *path, bool json)
{
    struct info *info = calloc(1, sizeof *info);
    if (!info) {
        message_code(path, "info", -ENOMEM);
        if (json)
            info_json_failure(path, limefile_strerror(-ENOMEM), LIMEFILE_UNREADABLE);
        return TOOL_UNUSABLE;
    }
    int status = container_open_shown(&info->c, path);
    if (status == TOOL_GOOD) {
        status = info_of(info, json);
        container_close_shown(&info->c);
    } else if (json) {
        info_json_failure(path, container_failure_text(&info->c),
                          status == TOOL_BAD ? LIMEFILE_BAD : LIMEFILE_UNREADABLE);
    }
    free(info);
    return status;
}

struct infos {
    const struct pathlist *list;
    bool json;
};

static const char *get_name(void *context, size_t i)
{
    return ((const struct infos *)context)->list->items[i].path;
}

/* Whether the file is a container, also a damaged one, or cannot be read. */
static bool is_wanted(const struct pathlist_item *item)
{
    struct limefile_finding finding;
    struct limefile_fd file;
    if (!item->found)
        return true;
    int fd = limefile_open(item->path, O_RDONLY);
    if (fd < 0)
        return true;
    limefile_fd_init(&file, fd);
    bool wanted = limefile_beginning(&file.source, &finding) != 0;
    close(fd);
    return wanted;
}

static int work(void *context, size_t i, unsigned threads)
{
    const struct infos *all = context;
    const struct pathlist_item *item = &all->list->items[i];
    (void)threads;
    return is_wanted(item) ? info_one(item->path, all->json) : TOOL_GOOD;
}

static void print_lost(void *context, size_t i, const char *why)
{
    info_json_failure(get_name(context, i), why, LIMEFILE_UNREADABLE);
}

static int info_all(const struct pathlist *list, unsigned at_once, bool json)
{
    struct infos all = {list, json};
    bool array = list->open_ended || list->count > 1;
    const struct parallel parallel = {
        .count = list->count,
        .processors = at_once,
        .waits = at_once == 0,
        .action = "info",
        .between = json ? ",\n" : "\n\n",
        .context = &all,
        .name = get_name,
        .work = work,
        .lost = json ? print_lost : NULL,
    };
    if (json && array)
        fputs("[", stdout);
    int worst = parallel_run(&parallel);
    if (json)
        fputs(array ? "]\n" : "\n", stdout);
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
    for (int opt; !status && (opt = read_option(argc, argv, "r0j:", longs, NULL)) != -1;)
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
