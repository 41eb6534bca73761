/* cmd_check.c - lime check: every deviation of containers from the format, and their sums */
#define _GNU_SOURCE
#include "check.h"
#include "pathlist.h"
#include "several.h"
#include "tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime check [-q] [--json] [--data] [--physics] [--strict] [-j N] FILE...\n"
    "       lime check [OPTION]... -r DIR...\n"
    "       lime check [OPTION]... --files-from LIST [-0]\n"
    "       lime check [OPTION]... --qcdml DOC.xml FILE\n"
    "Check LIME containers: their structure, what ILDG and SciDAC records say of the\n"
    "data, and the indexes of checkpoints of particles. Each deviation is named with\n"
    "its offset.\n"
    "\n"
    "      --data             also read the data, and compare them with their\n"
    "                         SciDAC checksums; of a checkpoint, each cell with\n"
    "                         its checksum, each particle's position with its cell\n"
    "      --physics          also of each su3gauge configuration of ILDG: compute\n"
    "                         plaquette and link trace, compare them with those in\n"
    "                         xlf-info, scidac-record-xml and qcdml; name the first\n"
    "                         link that is not a unitary matrix of determinant 1.\n"
    "                         FILE may be a NERSC, MILC or openQCD file, with its\n"
    "                         header\n"
    "      --strict           data without a checksum, or that nothing describes,\n"
    "                         are deviations\n"
    "      --qcdml DOC.xml    also compare FILE with its QCDml document: dataLFN,\n"
    "                         precision, and of each record field, crcCheckSum and\n"
    "                         avePlaquette; for it the data are read\n"
    "  -r, --recursive        of a folder, all files that begin like containers,\n"
    "                         and all containers if it is in a mount; others are\n"
    "                         counted, an empty *.lime is a deviation\n"
    "      --files-from LIST  the files that LIST names, one a line; '-': standard\n"
    "                         input\n"
    "  -0, --null             in LIST, each name ends with a NUL\n"
    "  -j, --threads N        processors to use, on several files at once; all\n"
    "                         of them without it\n"
    "  -q, --quiet            say nothing about deviations; the exit status tells\n"
    "      --json             for scripts: all of it, as JSON; with -r or\n"
    "                         --files-from, a line for each file and one for all\n"
    "      --help             this text\n"
    "\n"
    "Without --data and --physics it reads headers and metadata: checking 20 GB\n"
    "takes a moment.\n"
    "Data without a checksum, or whose sites have no known size, are 'unverified'.\n"
    "'lime repair' mends most of what is wrong with the structure.\n"
    "\n"
    "Examples:\n"
    "  lime check --data conf.0042\n"
    "  lime check --data -r /data/runs\n"
    "  lime check --physics conf.0042\n"
    "  lime check --qcdml conf.0042.xml conf.0042\n"
    "  find /data -name 'conf.*' -print0 | lime check -0 --files-from -\n"
    "\n"
    "A crcCheckSum that is not the data's cksum, but NERSC's checksum, or whose data\n"
    "have the right SciDAC checksum, is a warning; with --strict a difference.\n"
    "\n"
    "Exit status, the worst of all files: 0 good; 1 deviations, a fault, a wrong sum\n"
    "or another document; 2 a file cannot be read or is no container, or wrong\n"
    "usage.\n";

struct options {
    struct check_options check;
    struct pathlist_options files;
    const char *qcdml;
    bool help;
};

/* Of all files. */
struct totals {
    uint64_t files, good, bad, unverified, passed_over, empty, bytes, summed;
    double began;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- all files ---- */

/* Of one file. */
struct outcome {
    bool passed_over, empty, unverified;
    uint64_t size, summed;
};

static void count(struct totals *t, const struct outcome *one, int status)
{
    t->files++;
    t->bytes += one->size;
    t->summed += one->summed;
    if (status != TOOL_GOOD)
        t->bad++;
    else if (one->unverified)
        t->unverified++;
    else
        t->good++;
}

static void print_totals(const struct options *o, const struct totals *t)
{
    char passed[96] = "", empty[48] = "", rate[64] = "", human[NUMBER_HUMAN_MAX];
    double seconds = now() - t->began;
    if (t->empty)
        snprintf(empty, sizeof empty, " (%" PRIu64 " empty)", t->empty);
    if (t->passed_over)
        snprintf(passed, sizeof passed, ", %" PRIu64 " passed over%s", t->passed_over, empty);
    if ((o->check.data || o->check.physics) && seconds > 0 && isatty(STDOUT_FILENO))
        snprintf(rate, sizeof rate, ", %s/s",
                 number_human((uint64_t)((double)t->summed / seconds), human));
    answer(NULL,
           "%" PRIu64 " file%s: %" PRIu64 " good, %" PRIu64 " bad, %" PRIu64
           " unverified%s; %" PRIu64 " bytes%s",
           t->files, t->files == 1 ? "" : "s", t->good, t->bad, t->unverified, passed, t->bytes,
           rate);
}

static void print_totals_json(const struct totals *t)
{
    printf("{\"summary\": {\"files\": %" PRIu64 ", \"good\": %" PRIu64 ", \"bad\": %" PRIu64
           ", \"unverified\": %" PRIu64 ", \"passed_over\": %" PRIu64 ", \"empty\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"summed\": %" PRIu64 "}}\n",
           t->files, t->good, t->bad, t->unverified, t->passed_over, t->empty, t->bytes,
           t->summed);
}

/* How often the data are read, for the progress bar. */
static unsigned passes(const struct options *o)
{
    return o->check.data && o->check.physics ? 2 : 1;
}

/* What several files have in common. */
struct checks {
    const struct pathlist *list;
    const struct options *options;
    struct totals totals;
};

static const char *name_of(void *context, size_t i)
{
    return ((const struct checks *)context)->list->items[i].path;
}

static uint64_t size_of(void *context, size_t i)
{
    const struct checks *all = context;
    return all->list->items[i].size * passes(all->options);
}

static int check_one(void *context, size_t i, unsigned threads, struct progress *progress,
                     void *result)
{
    const struct checks *all = context;
    const struct options *o = all->options;
    const struct pathlist_item *item = &all->list->items[i];
    struct check_options options = o->check;
    options.threads = threads;
    struct check check = {
        .path = item->path,
        .options = &options,
        .progress = progress,
        .optional = item->found,
    };
    struct qcdml_check qcdml = {
        .document = o->qcdml,
        .path = item->path,
        .threads = threads,
        .strict = o->check.strict,
        .silent = o->check.quiet || o->check.json,
    };
    check.qcdml = o->qcdml ? &qcdml : NULL;
    int status = check_file(&check);
    if (o->qcdml && !o->check.json && status != TOOL_UNUSABLE)
        qcdml_check(&qcdml);
    qcdml_check_release(&qcdml);
    progress_to(progress, item->size * passes(o));
    *(struct outcome *)result = (struct outcome){
        .passed_over = check.passed_over,
        .empty = check.empty,
        .unverified = check.unverified || check.unexamined,
        .size = check.size,
        .summed = check.summed,
    };
    return worse_status(qcdml.status, status);
}

static void tell_lost(void *context, size_t i, const char *why)
{
    const struct checks *all = context;
    struct check check = {
        .path = name_of(context, i), .options = &all->options->check, .error = why};
    check_lost_json(&check);
}

static int take_one(void *context, size_t i, int status, const void *result)
{
    struct checks *all = context;
    const struct outcome *one = result;
    (void)i;
    if (!one->passed_over) {
        count(&all->totals, one, status);
        return status;
    }
    all->totals.passed_over++;
    all->totals.empty += one->empty;
    return TOOL_GOOD;
}

static int check_all(const struct pathlist *list, const struct options *o)
{
    struct checks all = {list, o, {.passed_over = list->skipped, .began = now()}};
    bool array = !o->check.lines && list->count > 1;
    const struct several several = {
        .count = list->count,
        .processors = o->check.threads,
        .waits = o->check.threads == 0 && !o->check.data && !o->check.physics,
        .whole = o->check.json,
        .action = "check",
        .between = o->check.json && array ? ",\n" : NULL,
        .result_size = sizeof(struct outcome),
        .context = &all,
        .name = name_of,
        .size = size_of,
        .work = check_one,
        .lost = o->check.json ? tell_lost : NULL,
        .done = take_one,
    };
    _Static_assert(sizeof(struct outcome) <= SEVERAL_RESULT_MAX, "the result of one file");
    if (o->check.json && array)
        fputs("[", stdout);
    int worst = several_run(&several);
    if (list->incomplete)
        worst = TOOL_UNUSABLE;
    if (o->check.lines)
        print_totals_json(&all.totals);
    else if (o->check.json)
        fputs(array ? "]\n" : "\n", stdout);
    else if (!o->check.quiet && (list->open_ended || all.totals.files > 1))
        print_totals(o, &all.totals);
    return worst;
}

/* ---- the command line ---- */

enum { OPT_JSON = 256, OPT_DATA, OPT_PHYSICS, OPT_STRICT, OPT_QCDML, OPT_HELP };

static int take_option(struct options *o, int opt, char **argv)
{
    switch (opt) {
    case 'q':
        o->check.quiet = true;
        return TOOL_GOOD;
    case 'j':
        o->check.here = true;
        return threads_option(&cmd_check, &o->check.threads);
    case OPT_JSON:
        o->check.json = true;
        return TOOL_GOOD;
    case OPT_DATA:
        o->check.data = true;
        return TOOL_GOOD;
    case OPT_PHYSICS:
        o->check.physics = true;
        return TOOL_GOOD;
    case OPT_STRICT:
        o->check.strict = true;
        return TOOL_GOOD;
    case OPT_QCDML:
        o->qcdml = optarg;
        return TOOL_GOOD;
    case OPT_HELP:
        o->help = true;
        return TOOL_GOOD;
    default:
        return pathlist_option(&o->files, opt, &cmd_check, argv);
    }
}

static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"quiet", no_argument, NULL, 'q'},
        {"json", no_argument, NULL, OPT_JSON},
        {"data", no_argument, NULL, OPT_DATA},
        {"physics", no_argument, NULL, OPT_PHYSICS},
        {"strict", no_argument, NULL, OPT_STRICT},
        {"qcdml", required_argument, NULL, OPT_QCDML},
        PATHLIST_LONG_OPTIONS,
        {"threads", required_argument, NULL, 'j'},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    int status = TOOL_GOOD;
    for (int opt; !status && (opt = read_option(argc, argv, "qr0j:", longs, NULL)) != -1;)
        status = take_option(o, opt, argv);
    if (status || o->help)
        return status;
    if (o->qcdml && (o->files.recursive || o->files.list || argc - optind != 1))
        return usage_error(&cmd_check, "--qcdml is for one FILE");
    o->check.lines = o->check.json && (o->files.recursive || o->files.list);
    return TOOL_GOOD;
}

static int run(int argc, char **argv)
{
    struct options o = {.qcdml = NULL};
    struct pathlist list;
    int status = parse(&o, argc, argv);
    if (status || o.help)
        return status ? status : print_help(&cmd_check);
    status = pathlist_make(&list, &o.files, &cmd_check, argc, argv);
    if (!status)
        status = check_all(&list, &o);
    pathlist_release(&list);
    return status;
}

const struct command cmd_check = {
    "check", "name every deviation; compare data with their checksums", help, run};
