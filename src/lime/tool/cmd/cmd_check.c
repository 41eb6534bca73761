/* cmd_check.c - lime check: every deviation of containers from the format, and their sums */
#define _GNU_SOURCE
#include "check.h"
#include "parallel.h"
#include "pathlist.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime check [-q] [--json] [--data] [--physics] [--strict] [-j N] FILE...\n"
    "       lime check [OPTION]... [--list-skipped] [--all] -r DIR...\n"
    "       lime check [OPTION]... --files-from LIST [-0]\n"
    "       lime check [OPTION]... --qcdml DOC.xml FILE\n"
    "Check LIME containers: their structure, their ILDG and SciDAC metadata, and the\n"
    "indexes of checkpoints of particles. Each deviation is printed with its offset,\n"
    "then a line with the verdict on the file: good, unverified, bad.\n"
    "\n"
    "      --data             also read the data, and compare them with their\n"
    "                         SciDAC checksums; in a checkpoint, compare each cell\n"
    "                         with its checksum, each particle's position with its\n"
    "                         cell\n"
    "      --physics          also compute plaquette and link trace of each gauge\n"
    "                         configuration of ILDG or QIO, compare them with those\n"
    "                         in xlf-info, scidac-record-xml and qcdml, name the\n"
    "                         first link that is not a unitary matrix of\n"
    "                         determinant 1, and what could not be examined\n"
    "      --strict           warnings and data that are unverified are bad\n"
    "      --qcdml DOC.xml    also compare FILE with its QCDml document: dataLFN,\n"
    "                         precision, and of each record field, crcCheckSum and\n"
    "                         avePlaquette; for it the data are read\n"
    "  -r, --recursive        check all containers in a directory and below it; with\n"
    "                         --data or --physics also NERSC, MILC and openQCD\n"
    "                         files; other files are skipped and counted\n"
    "      --list-skipped     with -r, also name the files that are skipped\n"
    "      --all              with -r, a file that is not a container is bad\n"
    "      --files-from LIST  check the files that LIST names, one a line; '-':\n"
    "                         standard input\n"
    "  -0, --null             in LIST, each name ends with a NUL\n"
    "  -j, --threads N        use N processors, for several files at once (default:\n"
    "                         all)\n"
    "  -q, --quiet            print errors only; the exit status has the verdict\n"
    "      --json             print all of it as JSON, for scripts; with -r or\n"
    "                         --files-from, a line for each file and one for all\n"
    "      --help             print this text\n"
    "\n"
    "Without --data and --physics, lime check reads headers and metadata only.\n"
    "FILE may be a NERSC, MILC or openQCD file if --data or --physics is given: its\n"
    "data are compared with its header.\n"
    "A file is unverified if data that were to be compared have no checksum, or one\n"
    "that cannot be compared. An empty file, and one whose beginning is damaged or\n"
    "zero, is bad. 'lime repair' repairs most deviations of the structure.\n"
    "\n"
    "Examples:\n"
    "  lime check --data conf.0042 && solver conf.0042\n"
    "  lime check --data -r /data/runs\n"
    "  lime check --physics conf.0042\n"
    "  lime check --qcdml conf.0042.xml conf.0042\n"
    "  find /data -name 'conf.*' -print0 | lime check -0 --files-from -\n"
    "\n"
    "A crcCheckSum that is not the data's cksum, but NERSC's checksum, or whose data\n"
    "have the right SciDAC checksum, is a warning; with --strict a difference.\n"
    "\n"
    "Exit status, the worst of all files: 0 good (or skipped); 3 unverified; 1 bad,\n"
    "or another document; 2 a file cannot be read or is not a container, or wrong\n"
    "usage.\n";

struct options {
    struct check_options check;
    struct pathlist_options files;
    const char *qcdml;
};

/* What the line at the end counts. */
struct totals {
    uint64_t verdicts[LIMEFILE_UNREADABLE + 1];
    uint64_t files, warnings, bytes, summed;
    double began;
};

/* ---- all files ---- */

/* What becomes of one file. */
struct outcome {
    enum limefile_verdict verdict;
    uint64_t warnings, size, summed;
};

static void print_totals(const struct options *o, const struct totals *t)
{
    const uint64_t *n = t->verdicts;
    char rate[64] = "", warnings[48] = "", human[NUMBER_HUMAN_MAX];
    double seconds = seconds_now() - t->began;
    if (t->warnings)
        snprintf(warnings, sizeof warnings, "; %" PRIu64 " warning%s", t->warnings,
                 plural(t->warnings));
    if ((o->check.data || o->check.physics) && seconds > 0 && isatty(STDOUT_FILENO))
        snprintf(rate, sizeof rate, ", %s/s",
                 number_human((uint64_t)((double)t->summed / seconds), human));
    answer(NULL,
           "%" PRIu64 " file%s: %" PRIu64 " good, %" PRIu64 " bad, %" PRIu64
           " unverified, %" PRIu64 " unreadable, %" PRIu64 " skipped%s; %" PRIu64 " bytes%s",
           t->files, plural(t->files), n[LIMEFILE_GOOD], n[LIMEFILE_BAD],
           n[LIMEFILE_UNVERIFIED], n[LIMEFILE_UNREADABLE], n[LIMEFILE_SKIPPED], warnings,
           t->bytes, rate);
}

static void print_totals_json(const struct totals *t)
{
    printf("{\"summary\": {\"files\": %" PRIu64, t->files);
    for (enum limefile_verdict v = LIMEFILE_GOOD; v <= LIMEFILE_UNREADABLE; v++)
        printf(", \"%s\": %" PRIu64, limefile_verdict_word(v), t->verdicts[v]);
    printf(", \"warnings\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"summed\": %" PRIu64 "}}\n",
           t->warnings, t->bytes, t->summed);
}

/* How often the data are read, for the progress bar. */
static unsigned count_passes(const struct options *o)
{
    return o->check.data && o->check.physics ? 2 : 1;
}

struct checks {
    const struct pathlist *list;
    const struct options *options;
    struct outcome *outcomes; /* one for each file, shared with the processes that write them */
};

static const char *get_name(void *context, size_t i)
{
    return ((const struct checks *)context)->list->items[i].path;
}

static int check_one(const struct checks *all, size_t i, unsigned threads,
                     struct progress *progress)
{
    const struct options *o = all->options;
    const struct pathlist_item *item = &all->list->items[i];
    struct check_options options = o->check;
    options.threads = threads;
    struct check check = {
        .path = item->path,
        .options = &options,
        .progress = progress,
        .optional = item->found,
        .skipped = item->skipped,
        .error = item->error ? limefile_strerror(-item->error) : NULL,
    };
    struct qcdml_check qcdml = {
        .document = o->qcdml,
        .path = item->path,
        .threads = threads,
        .strict = o->check.strict,
        .silent = o->check.quiet || o->check.json,
    };
    check.qcdml = o->qcdml ? &qcdml : NULL;
    if (item->error)
        message_code(item->path, "read", -item->error);
    if (item->error || item->skipped)
        check_unexamined(&check);
    else
        check_file(&check);
    if (o->qcdml && !o->check.json && check.verdict != LIMEFILE_UNREADABLE)
        qcdml_check(&qcdml);
    qcdml_check_release(&qcdml);
    all->outcomes[i] = (struct outcome){
        .verdict = check.verdict,
        .warnings = check.warnings,
        .size = check.size,
        .summed = check.summed,
    };
    return worse_status(qcdml.status, verdict_status(check.verdict));
}

/* A single file has a progress bar of its own. */
static int work(void *context, size_t i, unsigned threads)
{
    const struct checks *all = context;
    struct progress progress;
    if (all->list->count > 1)
        return check_one(all, i, threads, NULL);
    progress_begin(&progress, "check", all->list->items[i].size * count_passes(all->options));
    int status = check_one(all, i, threads, &progress);
    progress_end(&progress);
    return status;
}

static void print_lost(void *context, size_t i, const char *why)
{
    const struct checks *all = context;
    struct check check = {
        .path = get_name(context, i), .options = &all->options->check, .error = why};
    check_unexamined(&check);
    all->outcomes[i] = (struct outcome){.verdict = check.verdict};
}

static void add_outcome(struct totals *t, const struct outcome *one)
{
    t->files++;
    t->verdicts[one->verdict]++;
    t->warnings += one->warnings;
    t->bytes += one->size;
    t->summed += one->summed;
}

static int check_list(const struct pathlist *list, const struct options *o,
                      struct outcome *outcomes)
{
    struct checks all = {list, o, outcomes};
    struct totals totals = {.began = seconds_now()};
    bool array = !o->check.lines && list->count > 1;
    const struct parallel parallel = {
        .count = list->count,
        .processors = o->check.threads,
        .waits = o->check.threads == 0 && !o->check.data && !o->check.physics,
        .action = "check",
        .between = o->check.json && array ? ",\n" : NULL,
        .context = &all,
        .name = get_name,
        .work = work,
        .lost = print_lost,
    };
    if (o->check.json && array)
        fputs("[", stdout);
    int worst = parallel_run(&parallel);
    for (size_t i = 0; i < list->count; i++)
        add_outcome(&totals, &outcomes[i]);
    if (o->check.lines)
        print_totals_json(&totals);
    else if (o->check.json)
        fputs(array ? "]\n" : "\n", stdout);
    else if (!o->check.quiet && (list->open_ended || totals.files > 1))
        print_totals(o, &totals);
    return worst;
}

static int check_all(const struct pathlist *list, const struct options *o)
{
    size_t bytes = (list->count + 1) * sizeof(struct outcome);
    struct outcome *outcomes =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcomes == MAP_FAILED) {
        message_code("check", "begin", -errno);
        return TOOL_BAD;
    }
    int status = check_list(list, o, outcomes);
    munmap(outcomes, bytes);
    return status;
}

/* ---- the command line ---- */

static struct options options = {.files.all = true};

static const struct option_rule rules[] = {
    FLAG_RULE("quiet", 'q', &options.check.quiet),
    FLAG_RULE("json", 0, &options.check.json),
    FLAG_RULE("data", 0, &options.check.data),
    FLAG_RULE("physics", 0, &options.check.physics),
    FLAG_RULE("strict", 0, &options.check.strict),
    TEXT_RULE("qcdml", 0, &options.qcdml),
    FLAG_RULE("list-skipped", 0, &options.check.list_skipped),
    FLAG_RULE("all", 0, &options.check.all),
    PATHLIST_RULES(options.files),
    THREADS_RULE(&options.check.threads),
    {NULL},
};

static int run(int count, char **paths)
{
    struct options *o = &options;
    struct pathlist list;
    bool many = o->files.recursive || o->files.list;
    if (o->qcdml && (many || count != 1))
        return usage_error(&cmd_check, "--qcdml is for one FILE");
    o->check.lines = o->check.json && many;
    int status = pathlist_make(&list, &o->files, &cmd_check, count, paths);
    if (!status)
        status = check_all(&list, o);
    pathlist_release(&list);
    return status;
}

const struct command cmd_check = {
    "check", "name every deviation; compare data with their checksums",
    help,    run,
    rules,   ANY_OPERANDS,
    NULL};
