/* checksumoptions.c - the command line of lime checksum */
#include "checksumoptions.h"
#include "tool.h"

#include <getopt.h>
#include <string.h>

enum { OPT_JSON = 256, OPT_ADD, OPT_REPLACE, OPT_CKSUM, OPT_SITE, OPT_LATTICE, OPT_HELP };

static bool parse_number(const char *text, uint64_t *out)
{
    return number_parse(text, strlen(text), out) && *out > 0;
}

/* "32x32x32x64" */
static bool parse_lattice(const char *text, uint64_t *sites)
{
    *sites = 1;
    for (;;) {
        size_t n = strcspn(text, "x");
        uint64_t extent;
        if (!number_parse(text, n, &extent) || extent == 0 ||
            __builtin_mul_overflow(*sites, extent, sites))
            return false;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

static int take_option(struct checksum_options *o, int opt, char **argv)
{
    switch (opt) {
    case OPT_JSON:
        o->json = true;
        return TOOL_GOOD;
    case OPT_ADD:
        o->add = true;
        return TOOL_GOOD;
    case OPT_REPLACE:
        o->replace = true;
        return TOOL_GOOD;
    case OPT_CKSUM:
        o->cksum = true;
        return TOOL_GOOD;
    case OPT_SITE:
        if (!parse_number(optarg, &o->site_bytes))
            return value_error(&cmd_checksum, "--site-bytes", NULL, optarg, "bytes, from 1");
        return TOOL_GOOD;
    case OPT_LATTICE:
        if (!parse_lattice(optarg, &o->sites))
            return value_error(&cmd_checksum, "--lattice", NULL, optarg,
                               "extents, as in 32x32x32x64");
        return TOOL_GOOD;
    case 'j':
        return threads_option(&cmd_checksum, &o->threads);
    case OPT_HELP:
        o->help = true;
        return TOOL_GOOD;
    default:
        return option_error(&cmd_checksum, argv);
    }
}

int checksum_options_parse(struct checksum_options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"json", no_argument, NULL, OPT_JSON},
        {"add", no_argument, NULL, OPT_ADD},
        {"replace", no_argument, NULL, OPT_REPLACE},
        {"cksum", no_argument, NULL, OPT_CKSUM},
        {"site-bytes", required_argument, NULL, OPT_SITE},
        {"lattice", required_argument, NULL, OPT_LATTICE},
        {"threads", required_argument, NULL, 'j'},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    int status = TOOL_GOOD;
    for (int opt; !status && (opt = read_option(argc, argv, "j:", longs, NULL)) != -1;)
        status = take_option(o, opt, argv);
    if (status || o->help)
        return status;
    if (optind == argc)
        return usage_error(&cmd_checksum, "no file named");
    if (o->replace && !o->add)
        return usage_error(&cmd_checksum, "--replace goes with --add");
    if (o->cksum && (o->add || o->site_bytes || o->sites))
        return usage_error(&cmd_checksum, "--cksum is of the bytes alone: not with --add, "
                                          "--site-bytes or --lattice");
    if (o->site_bytes && o->sites)
        return usage_error(&cmd_checksum, "--site-bytes or --lattice, not both");
    o->path = argv[optind];
    o->words = argv + optind + 1;
    o->word_count = (size_t)(argc - optind - 1);
    return TOOL_GOOD;
}
