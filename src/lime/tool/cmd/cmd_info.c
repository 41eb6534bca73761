/* cmd_info.c - lime info: what is in containers, the way a physicist wants to see it */
#define _GNU_SOURCE
#include "info.h"
#include "mounted.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

static const char help[] =
    "Usage: lime info [--json] FILE...\n"
    "Tell what LIME containers hold: configurations, propagators and other fields\n"
    "with lattice, precision, size and checksum, and what their writers say of\n"
    "ensemble, inverter and date; checkpoints of particles with domain, cells, step\n"
    "and fields.\n"
    "\n"
    "      --json  for scripts: all of it, as JSON\n"
    "      --help  this text\n"
    "\n"
    "It reads metadata, not the data: 'lime check --data' verifies checksums. What\n"
    "contradicts the ILDG and SciDAC formats, or an index of cells, is named at the\n"
    "end, as by 'lime check'. FILE may be a container as limefs shows it, a folder.\n"
    "\n"
    "Examples:\n"
    "  lime info conf.0042\n"
    "  lime info --json conf.* | jq -r '.[].lfn'\n"
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
            info_json_failure(info);
        return TOOL_BAD;
    }
    int status = json ? info_json(info) : info_tell(info);
    limefile_fields_release(&info->fields);
    const char *shown = info->c.mounted ? mounted_fault(info->c.mounted) : NULL;
    int fault = shown ? TOOL_BAD : container_fault_message(&info->c);
    if (shown)
        message(info->c.path, "%s", shown);
    return status > fault ? status : fault;
}

static int info_one(const char *path, bool json)
{
    struct info *info = calloc(1, sizeof *info);
    if (!info) {
        message_code(path, "info", -ENOMEM);
        return TOOL_BAD;
    }
    int status = container_open_shown(&info->c, path);
    if (status == TOOL_GOOD) {
        status = info_of(info, json);
        container_close_shown(&info->c);
    } else if (json) {
        info_json_failure(info);
    }
    free(info);
    return status;
}

static int info_all(int count, char **paths, bool json)
{
    bool several = count > 1;
    int worst = TOOL_GOOD;
    if (json && several)
        fputs("[", stdout);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            fputs(json ? ",\n" : "\n\n", stdout);
        int status = info_one(paths[i], json);
        worst = status > worst ? status : worst;
    }
    if (json)
        fputs(several ? "]\n" : "\n", stdout);
    return worst;
}

static int run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    bool json = false;
    for (int opt; (opt = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (opt != 'j')
            return opt == 'H' ? print_help(&cmd_info) : option_error(&cmd_info, argv);
        json = true;
    }
    if (optind == argc)
        return usage_error(&cmd_info, "no file named");
    return info_all(argc - optind, argv + optind, json);
}

const struct command cmd_info = {"info", "lattice, precision, checksums, ensemble", help, run};
