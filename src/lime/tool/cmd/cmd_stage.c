/* cmd_stage.c - lime stage: verified copies for storage nodes */
#define _GNU_SOURCE
#include "progress.h"
#include "pathlist.h"
#include "stage.h"
#include "stagelist.h"
#include "stageprint.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
    "Usage: lime stage [OPTION]... SRC... DST\n"
    "       lime stage [OPTION]... --files-from LIST [-0] DST\n"
    "Copy containers to the folder DST (or one to the file DST), as fast as the\n"
    "disks go. On the way their structure and the checksums in them are verified,\n"
    "and sums for catalogues are taken. A file gets its name when all of it is right\n"
    "and on the disk. What was interrupted goes on where it was by the same command\n"
    "again.\n"
    "\n"
    "  -r, --recursive       folders, too, with all that is in them\n"
    "  -j, --files N         so many files at once (8)\n"
    "      --sums LIST       of cksum, adler32, md5; all of them unless said (cksum\n"
    "                        is always there)\n"
    "      --files-from LIST the sources are in this file, one a line; '-': standard\n"
    "                        input\n"
    "  -0, --null            in LIST, each name ends with a NUL\n"
    "      --any             also files that are not containers (skipped)\n"
    "      --strict          copy neither files with warnings nor data whose\n"
    "                        checksum is missing or cannot be compared\n"
    "  -f, --force           replace what is there already\n"
    "      --check-there     read what is there already, and compare\n"
    "      --verify-target   read what was written from the disk, and compare\n"
    "      --no-space-check  begin although there may not be enough room\n"
    "      --checkpoint N    note every N bytes (k, M, G) how far a file is on the\n"
    "                        disk, where resuming goes on (256M, and not more often\n"
    "                        than once a second)\n"
    "      --job SOCKET      copy by this limefs-io; without it if it fails\n"
    "      --job-timeout S   or says nothing for S seconds (30)\n"
    "      --json            a line of JSON for each file instead of the table\n"
    "  -q, --quiet           no summary\n"
    "      --help            this text\n"
    "\n"
    "Example: lime stage -r /scratch/run7 /data/ildg >run7.sums\n"
    "\n"
    "Exit status: 0 all are there, and what was examined is good; 3 all are there,\n"
    "but some data could not be verified; 1 something is bad or was not copied; 2 a\n"
    "file could not be read or is not a container, or wrong usage.\n";

struct options {
    struct stage_options stage;
    struct pathlist_options files;
    bool json, quiet, no_space_check, help;
};

/* Kept to the end: of a result hardly anything, as all of a long list may fail. */
struct failure {
    const struct stage_item *item;
    char *reason;
};

/* What has come out so far. */
struct tally {
    size_t of[4];               /* by enum stage_status */
    size_t unverified, skipped; /* of those that are staged or there */
    int status;                 /* the worst exit status of all files */
    uint64_t bytes;
    struct failure *failed;
    size_t failed_count;
};

static volatile sig_atomic_t caught;

static void catch_signal(int number)
{
    caught = number;
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old, new = {.sa_handler = catch_signal, .sa_flags = SA_RESETHAND};
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &new, NULL);
    }
}

/* ---- results ---- */

static void warn(const char *path, const struct stage_words *words)
{
    for (unsigned i = 0; i < words->count; i++)
        message(path, "warning: %s", words->line[i]);
    if (words->more)
        message(path, "warning: and %" PRIu64 " more", words->more);
}

/* False after a message. */
static bool keep_failure(struct tally *tally, const struct stage_result *r)
{
    void *more = reallocarray(tally->failed, tally->failed_count + 1, sizeof *tally->failed);
    char *reason = more ? strdup(r->reason) : NULL;
    if (more)
        tally->failed = more;
    if (reason)
        tally->failed[tally->failed_count++] = (struct failure){r->item, reason};
    else
        message(r->item->source, "%s", r->reason);
    return reason != NULL;
}

static bool take_result(struct tally *tally, struct stage_result *r, const struct options *o,
                        struct progress *progress)
{
    tally->of[r->status]++;
    if (r->status == STAGE_STAGED)
        tally->bytes += r->size;
    else
        progress->total -= r->item->size < progress->total ? r->item->size : progress->total;
    warn(r->item->source, &r->words);
    if (stage_unverified_count(r) && stageprint_is_in_place(r)) {
        tally->unverified++;
        warn(r->item->source, &r->unverified);
    }
    tally->skipped += r->judged && r->verdict == LIMEFILE_SKIPPED;
    tally->status = worse_status(tally->status, stageprint_exit_status(r));
    progress_hide();
    (o->json ? stageprint_json : stageprint_row)(r);
    flush_stdout();
    bool good = r->status != STAGE_FAILED || keep_failure(tally, r);
    stage_result_release(r);
    return good;
}

static void tell_failures(const struct tally *tally, size_t count)
{
    if (tally->failed_count)
        message("stage", "%zu of %zu files failed:", tally->failed_count, count);
    for (size_t i = 0; i < tally->failed_count; i++)
        message(tally->failed[i].item->source, "%s", tally->failed[i].reason);
}

static void tell_summary(const struct tally *tally, size_t count, double seconds)
{
    char bytes[NUMBER_HUMAN_MAX], rate[NUMBER_HUMAN_MAX];
    size_t left =
        count - tally->of[STAGE_STAGED] - tally->of[STAGE_THERE] - tally->of[STAGE_FAILED];
    char unverified[64] = "", skipped[64] = "";
    if (tally->unverified)
        snprintf(unverified, sizeof unverified, "; %zu unverified", tally->unverified);
    if (tally->skipped)
        snprintf(skipped, sizeof skipped, "; %zu skipped (no containers)", tally->skipped);
    message("stage", "%zu staged (%s in %.1f s, %s/s), %zu there already, %zu failed%s%s%s",
            tally->of[STAGE_STAGED], number_human(tally->bytes, bytes), seconds,
            number_human((uint64_t)((double)tally->bytes / (seconds > 0.001 ? seconds : 0.001)),
                         rate),
            tally->of[STAGE_THERE], tally->of[STAGE_FAILED], unverified, skipped,
            left ? "; interrupted, the same command goes on" : "");
}

static void release(struct tally *tally)
{
    for (size_t i = 0; i < tally->failed_count; i++)
        free(tally->failed[i].reason);
    free(tally->failed);
}

/* ---- the run ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Results come as files end, and are told in the order of the list. */
struct turns {
    struct stage_result **waiting; /* by item; NULL: not ended, or told */
    size_t told, ended;
};

/* All that can be told; at the end, what stands behind those that were not begun, too. */
static bool tell_in_turn(struct turns *turns, const struct stagelist *list, bool at_end,
                         struct tally *tally, const struct options *o,
                         struct progress *progress)
{
    bool good = true;
    for (; turns->told < list->count && (at_end || turns->waiting[turns->told]); turns->told++)
        if (turns->waiting[turns->told])
            good = take_result(tally, turns->waiting[turns->told], o, progress) && good;
    return good;
}

static void follow(struct stage *stage, const struct stagelist *list, const struct options *o,
                   struct turns *turns, struct tally *tally)
{
    struct progress progress;
    struct stage_result *result;
    uint64_t moved;
    bool stopped = false, told = false;
    char what[32];
    progress_begin(&progress, what, list->bytes);
    for (int got; (got = stage_next(stage, 100, &result, &moved)) >= 0;) {
        const char *why = told ? NULL : stage_job_failure(stage);
        if (why) {
            message(o->stage.socket, "warning: without the job: %s", why);
            told = true;
        }
        if (got) {
            turns->waiting[result->item - list->items] = result;
            turns->ended++;
        }
        if (!tell_in_turn(turns, list, false, tally, o, &progress))
            stage_stop(stage);
        if (caught && !stopped) {
            stage_stop(stage);
            stopped = true;
        }
        snprintf(what, sizeof what, "%zu/%zu", turns->ended, list->count);
        progress_to(&progress, moved);
    }
    tell_in_turn(turns, list, true, tally, o, &progress);
    progress_end(&progress);
}

static bool has_room(const struct stagelist *list, const struct options *o)
{
    uint64_t needed, available;
    char a[NUMBER_HUMAN_MAX], b[NUMBER_HUMAN_MAX];
    if (o->no_space_check ||
        stage_space(list->items, list->count, list->folder, &needed, &available) != 0 ||
        needed <= available)
        return true;
    message(list->folder,
            "%s are needed, %s are free: nothing was staged (--no-space-check begins all the "
            "same)",
            number_human(needed, a), number_human(available, b));
    return false;
}

static int run_list(const struct stagelist *list, const struct options *o)
{
    struct stage *stage;
    struct tally tally = {0};
    struct turns turns = {0};
    double began = now();
    if (!has_room(list, o))
        return TOOL_BAD;
    catch_signals();
    turns.waiting = calloc(list->count, sizeof(struct stage_result *));
    int err = list->count && !turns.waiting
                  ? -ENOMEM
                  : stage_start(&o->stage, list->items, list->count, &stage);
    if (err) {
        message_code("stage", "begin", err);
        free(turns.waiting);
        return TOOL_BAD;
    }
    if (!o->json)
        stageprint_head();
    follow(stage, list, o, &turns, &tally);
    stage_free(stage);
    free(turns.waiting);
    tell_failures(&tally, list->count);
    if (!o->quiet)
        tell_summary(&tally, list->count, now() - began);
    size_t in_place = tally.of[STAGE_STAGED] + tally.of[STAGE_THERE];
    if (in_place != list->count || list->bad)
        tally.status = worse_status(tally.status, TOOL_BAD);
    release(&tally);
    if (caught) {
        finish_stdout();
        signal(caught, SIG_DFL);
        raise(caught);
    }
    return tally.status;
}

/* ---- options ---- */

/* The word that is not known ("" where there is none), or NULL. */
static const char *parse_sums(char *words, unsigned *kinds)
{
    static const struct {
        const char *word;
        enum stage_sum_kind kind;
    } known[] = {{"cksum", STAGE_CKSUM}, {"adler32", STAGE_ADLER32}, {"md5", STAGE_MD5}};
    *kinds = STAGE_CKSUM;
    for (char *word; (word = strsep(&words, ","));) {
        size_t i = 0;
        while (i < 3 && strcmp(known[i].word, word) != 0)
            i++;
        if (i == 3)
            return word;
        *kinds |= known[i].kind;
    }
    return NULL;
}

static int take_sums(struct options *o)
{
    const char *bad = parse_sums(optarg, &o->stage.kinds);
    if (!bad)
        return TOOL_GOOD;
    return value_error(&cmd_stage, "--sums", "checksum", bad, "cksum, adler32, md5");
}

static int take_option(struct options *o, int opt, char **argv)
{
    uint64_t n;
    switch (opt) {
    case 'j':
        if (!number_parse(optarg, strlen(optarg), &n) || n < 1 || n > STAGE_FILES_AT_ONCE_MAX)
            return value_error(&cmd_stage, "-j", NULL, optarg, "a number from 1 to 64");
        o->stage.files_at_once = (unsigned)n;
        break;
    case 's':
        return take_sums(o);
    case 'J':
        o->stage.socket = optarg;
        break;
    case 'T':
        if (!number_parse(optarg, strlen(optarg), &n) || n < 1 || n > 86400)
            return value_error(&cmd_stage, "--job-timeout", NULL, optarg,
                               "seconds, 1 to 86400");
        o->stage.job_timeout = (unsigned)n;
        break;
    case 'C':
        if (!number_parse_size(optarg, strlen(optarg), &o->stage.checkpoint) ||
            o->stage.checkpoint == 0)
            return value_error(&cmd_stage, "--checkpoint", NULL, optarg, "bytes, as in 64M");
        break;
    case 'a':
        o->stage.any = true;
        break;
    case 'S':
        o->stage.strict = true;
        break;
    case 'f':
        o->stage.force = true;
        break;
    case 'c':
        o->stage.check_there = true;
        break;
    case 'v':
        o->stage.verify_target = true;
        break;
    case 'n':
        o->no_space_check = true;
        break;
    case 'o':
        o->json = true;
        break;
    case 'q':
        o->quiet = true;
        break;
    case 'H':
        o->help = true;
        break;
    default:
        return pathlist_option(&o->files, opt, &cmd_stage, argv);
    }
    return TOOL_GOOD;
}

static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        PATHLIST_LONG_OPTIONS,
        {"files", required_argument, NULL, 'j'},
        {"sums", required_argument, NULL, 's'},
        {"checkpoint", required_argument, NULL, 'C'},
        {"job-timeout", required_argument, NULL, 'T'},
        {"job", required_argument, NULL, 'J'},
        {"any", no_argument, NULL, 'a'},
        {"strict", no_argument, NULL, 'S'},
        {"force", no_argument, NULL, 'f'},
        {"check-there", no_argument, NULL, 'c'},
        {"verify-target", no_argument, NULL, 'v'},
        {"no-space-check", no_argument, NULL, 'n'},
        {"json", no_argument, NULL, 'o'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    int status = TOOL_GOOD;
    for (int opt; !status && (opt = read_option(argc, argv, "rj:f0q", longs, NULL)) != -1;)
        status = take_option(o, opt, argv);
    return status;
}

static int stage_named(const struct options *o, char *const *sources, size_t count,
                       const char *target)
{
    struct stagelist list = {
        .recursive = o->files.recursive, .force = o->stage.force, .listing = o->files.list};
    int status = TOOL_BAD;
    if (stagelist_make(&list, sources, count, target))
        status = run_list(&list, o);
    stagelist_release(&list);
    return status;
}

static int stage_listed(const struct options *o, const char *target)
{
    char **names;
    size_t count;
    int status = TOOL_BAD;
    if (stagelist_read(o->files.list, o->files.nul, &names, &count))
        status = stage_named(o, names, count, target);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return status;
}

static int run(int argc, char **argv)
{
    struct options o = {
        .stage = {.kinds = STAGE_CKSUM | STAGE_ADLER32 | STAGE_MD5,
                  .files_at_once = STAGE_FILES_AT_ONCE,
                  .job_timeout = 30},
    };
    int status = parse(&o, argc, argv);
    if (status || o.help)
        return status ? status : print_help(&cmd_stage);
    int names = argc - optind;
    if (o.files.list)
        return names == 1 ? stage_listed(&o, argv[optind])
                          : usage_error(&cmd_stage, "with --files-from, DST alone is wanted");
    if (o.files.nul)
        return usage_error(&cmd_stage, "-0 is for --files-from");
    if (names < 2)
        return usage_error(&cmd_stage, "what to copy (SRC...) and where to (DST) are wanted");
    return stage_named(&o, argv + optind, (size_t)names - 1, argv[argc - 1]);
}

const struct command cmd_stage = {"stage", "verified copies, with sums for catalogues", help,
                                  run};
