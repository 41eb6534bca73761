/* cmd_stage.c - lime stage: verified copies for storage nodes */
#define _GNU_SOURCE
#include "jsonout.h"
#include "pathlist.h"
#include "stage.h"
#include "stagelist.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *stageprint_status(enum stage_status status)
{
    static const char *const words[] = {"staged", "there", "failed", "stopped"};
    return words[status];
}

static const char *hex(const unsigned char *bytes, char out[2 * STAGE_MD5_BYTES + 1])
{
    for (int i = 0; i < STAGE_MD5_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return out;
}

enum { DATA_SHOWN = 16 };

/* The cksums of ildg-binary-data, with commas between them; "-" where there are none. */
static const char *data_words(const struct stage_result *r, char out[DATA_SHOWN * 11 + 8])
{
    const struct stage_digest *d = &r->digest;
    unsigned count = r->has_digest && d->has_data ? d->data_count : 0;
    size_t n = (size_t)sprintf(out, "%s", count ? "" : "-");
    for (unsigned i = 0; i < count && i < DATA_SHOWN; i++)
        n += (size_t)sprintf(out + n, "%s%" PRIu32, i ? "," : "", d->data[i].cksum);
    if (count > DATA_SHOWN)
        sprintf(out + n, ",...");
    return out;
}

/* Size and sums as words; "-" where there is none. */
struct words {
    char size[24], cksum[16], adler32[16], md5[2 * STAGE_MD5_BYTES + 1];
};

static struct words words_of(const struct stage_result *r)
{
    struct words w = {"-", "-", "-", "-"};
    unsigned kinds = r->has_digest ? r->digest.kinds : 0;
    if (r->sized)
        snprintf(w.size, sizeof w.size, "%" PRIu64, r->size);
    if (kinds & STAGE_CKSUM)
        snprintf(w.cksum, sizeof w.cksum, "%" PRIu32, r->digest.cksum);
    if (kinds & STAGE_ADLER32)
        snprintf(w.adler32, sizeof w.adler32, "%08" PRIx32, r->digest.adler32);
    if (kinds & STAGE_MD5)
        hex(r->digest.md5, w.md5);
    return w;
}

static bool stageprint_is_in_place(const struct stage_result *r)
{
    return r->status == STAGE_STAGED || r->status == STAGE_THERE;
}

static int stageprint_exit_status(const struct stage_result *r)
{
    if (r->judged)
        return verdict_status(r->verdict);
    return stageprint_is_in_place(r) ? TOOL_GOOD : TOOL_BAD;
}

static const char *verdict_word(const struct stage_result *r)
{
    return r->judged ? limefile_verdict_word(r->verdict) : "-";
}

static void stageprint_head(void)
{
    answer(NULL, "%-7s %14s %10s %-8s %-32s %-10s %s  %s  %s", "STATUS", "SIZE", "CKSUM",
           "ADLER32", "MD5", "VERDICT", "PATH", "LFN", "DATA");
}

static void stageprint_row(const struct stage_result *r)
{
    struct words w = words_of(r);
    char data[DATA_SHOWN * 11 + 8];
    answer(NULL, "%-7s %14s %10s %-8s %-32s %-10s %s  %s  %s", stageprint_status(r->status),
           w.size, w.cksum, w.adler32, w.md5, verdict_word(r), r->item->target,
           r->lfn[0] ? r->lfn : "-", data_words(r, data));
}

static json_t *word_json(const char *word)
{
    return strcmp(word, "-") == 0 ? json_null() : json_string(word);
}

static json_t *integer_json(bool is_known, uint64_t value)
{
    return is_known ? json_integer((json_int_t)value) : json_null();
}

static json_t *lines_json(const struct stage_words *words)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < words->count; i++)
        json_array_append_new(array, jsonout_string(words->line[i], strlen(words->line[i])));
    return array;
}

static json_t *data_json(const struct stage_digest *d, bool is_known)
{
    json_t *array = is_known ? json_array() : json_null();
    for (unsigned i = 0; is_known && i < d->data_count; i++)
        json_array_append_new(array,
                              json_pack("{s:I, s:I}", "ordinal", (json_int_t)d->data[i].ordinal,
                                        "cksum", (json_int_t)d->data[i].cksum));
    return array;
}

static void stageprint_json(const struct stage_result *r)
{
    struct words w = words_of(r);
    const struct stage_digest *d = &r->digest;
    bool has_data = r->has_digest && d->has_data;
    json_t *line = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:o, s:I, s:I, s:f,"
        " s:o, s:o, s:o}",
        "status", stageprint_status(r->status), "verdict", word_json(verdict_word(r)), "lfn",
        jsonout_string_or_null(r->lfn), "size", integer_json(r->sized, r->size), "cksum",
        integer_json(r->has_digest && d->kinds & STAGE_CKSUM, d->cksum), "adler32",
        word_json(w.adler32), "md5", word_json(w.md5), "data", data_json(d, has_data),
        "data_more", integer_json(has_data, d->data_more), "source",
        jsonout_string_or_null(r->item->source), "target",
        jsonout_string_or_null(r->item->target), "container", r->container, "records",
        (json_int_t)r->records, "checksums_verified",
        integer_json(r->read && stageprint_is_in_place(r), r->verified), "checksums_unverified",
        (json_int_t)stage_unverified_count(r), "resumed", (json_int_t)r->resumed, "seconds",
        round(r->seconds * 1000) / 1000, "unverified", lines_json(&r->unverified), "deviations",
        lines_json(&r->words), "reason", jsonout_string_or_null(r->reason));
    jsonout_print(stdout, line);
    putchar('\n');
}

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
    bool json, quiet, no_space_check;
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
    double began = seconds_now();
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
        tell_summary(&tally, list->count, seconds_now() - began);
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

/* ---- the list ---- */

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
    struct pathlist names = {.count = 0};
    int status = TOOL_BAD;
    bool good = pathlist_lines(o->files.list, o->files.nul, pathlist_add, &names);
    char **sources = calloc(names.count + 1, sizeof *sources);
    for (size_t i = 0; sources && i < names.count; i++)
        sources[i] = names.items[i].path;
    if (!sources)
        message_code("stage", "list", -ENOMEM);
    else if (good && names.count == 0)
        message(strcmp(o->files.list, "-") == 0 ? "standard input" : o->files.list,
                "names no files: nothing was staged");
    else if (good)
        status = stage_named(o, sources, names.count, target);
    free(sources);
    pathlist_release(&names);
    return status;
}

/* ---- the command line ---- */

static struct options options = {
    .stage = {.kinds = STAGE_CKSUM | STAGE_ADLER32 | STAGE_MD5,
              .files_at_once = STAGE_FILES_AT_ONCE,
              .job_timeout = 30},
};

static int take_sums(const struct command *command, const char *text)
{
    char *words = strdup(text);
    const char *bad = words ? parse_sums(words, &options.stage.kinds) : text;
    int status = bad ? value_error(command, "--sums", "checksum", bad, "cksum, adler32, md5")
                     : TOOL_GOOD;
    free(words);
    return status;
}

static int take_checkpoint(const struct command *command, const char *text)
{
    return number_parse_size(text, strlen(text), &options.stage.checkpoint) &&
                   options.stage.checkpoint
               ? TOOL_GOOD
               : value_error(command, "--checkpoint", NULL, text, "bytes, as in 64M");
}

static const struct option_rule rules[] = {
    PATHLIST_RULES(options.files),
    {"files", 'j', OPTION_NUMBER, .value = &options.stage.files_at_once,
     .most = STAGE_FILES_AT_ONCE_MAX, .expected = "a number from 1 to 64"},
    {"sums", 0, OPTION_CALL_TEXT, .take = take_sums},
    {"checkpoint", 0, OPTION_CALL_TEXT, .take = take_checkpoint},
    {"job-timeout", 0, OPTION_NUMBER, .value = &options.stage.job_timeout, .most = 86400,
     .expected = "seconds, 1 to 86400"},
    TEXT_RULE("job", 0, &options.stage.socket),
    FLAG_RULE("any", 0, &options.stage.any),
    FLAG_RULE("strict", 0, &options.stage.strict),
    FLAG_RULE("force", 'f', &options.stage.force),
    FLAG_RULE("check-there", 0, &options.stage.check_there),
    FLAG_RULE("verify-target", 0, &options.stage.verify_target),
    FLAG_RULE("no-space-check", 0, &options.no_space_check),
    FLAG_RULE("json", 0, &options.json),
    FLAG_RULE("quiet", 'q', &options.quiet),
    {NULL},
};

static int run(int count, char **names)
{
    const struct options *o = &options;
    if (o->files.list)
        return count == 1 ? stage_listed(o, names[0])
                          : usage_error(&cmd_stage, "with --files-from, DST alone is wanted");
    if (o->files.nul)
        return usage_error(&cmd_stage, "-0 is for --files-from");
    if (count < 2)
        return usage_error(&cmd_stage, "what to copy (SRC...) and where to (DST) are wanted");
    return stage_named(o, names, (size_t)count - 1, names[count - 1]);
}

const struct command cmd_stage = {
    "stage", "verified copies, with sums for catalogues", help, run, rules, ANY_OPERANDS, NULL};
