/* cmd_stage.c - lime stage: make verified copies for storage nodes */
#define _GNU_SOURCE
#include "files.h"
#include "jsonout.h"
#include "stage.h"
#include "stagelist.h"
#include "sums_list.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char *status_text(enum stage_status status)
{
    static const char *const texts[] = {"staged", "there", "failed", "skipped", "stopped"};
    return texts[status];
}

enum { DATA_SHOWN = 16 };

/* Formats the cksums of ildg-binary-data, separated by commas; "-" if unknown. */
static const char *format_cksums(const struct stage_result *r, char out[DATA_SHOWN * 11 + 8])
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

/* Size and checksums as text; "-" for a missing one. */
struct row_texts {
    char size[24], cksum[16];
    char adler32[STAGE_SUM_CHARS], md5[STAGE_SUM_CHARS], sha256[STAGE_SUM_CHARS];
};

static struct row_texts format_row(const struct stage_result *r)
{
    struct row_texts w = {"-", "-", "-", "-", "-"};
    if (r->has_size)
        snprintf(w.size, sizeof w.size, "%" PRIu64, r->size);
    if (!r->has_digest)
        return w;
    snprintf(w.cksum, sizeof w.cksum, "%" PRIu32, r->digest.cksum);
    stage_digest_format(&r->digest, STAGE_ADLER32, w.adler32);
    stage_digest_format(&r->digest, STAGE_MD5, w.md5);
    stage_digest_format(&r->digest, STAGE_SHA256, w.sha256);
    return w;
}

static bool is_in_place(const struct stage_result *r)
{
    return r->status == STAGE_STAGED || r->status == STAGE_UP_TO_DATE;
}

static enum limefile_verdict result_verdict(const struct stage_result *r)
{
    return r->has_verdict   ? r->verdict
           : is_in_place(r) ? LIMEFILE_SKIPPED /* its data were not read */
                            : LIMEFILE_BAD;
}

/* Returns why the result is not good, or NULL. */
static const char *result_error(const struct stage_result *r)
{
    return r->reason[0]          ? r->reason
           : r->unverified.count ? r->unverified.line[0]
           : r->has_verdict      ? NULL
                                 : "up to date; its data were not read";
}

static const char *verdict_text(const struct stage_result *r)
{
    return r->has_verdict ? limefile_verdict_word(r->verdict) : "-";
}

/* sha256: if false, the table has no column for it. */
static void print_stage_head(bool sha256)
{
    print_line(NULL, "%-7s %14s %10s %-8s %-32s %-*s%-10s %s  %s  %s", "STATUS", "SIZE",
               "CKSUM", "ADLER32", "MD5", sha256 ? STAGE_SHA256_CHARS : 0,
               sha256 ? "SHA256" : "", "VERDICT", "PATH", "LFN", "DATA");
}

static void print_stage_row(const struct stage_result *r, bool sha256)
{
    struct row_texts w = format_row(r);
    char data[DATA_SHOWN * 11 + 8];
    print_line(NULL, "%-7s %14s %10s %-8s %-32s %-*s%-10s %s  %s  %s", status_text(r->status),
               w.size, w.cksum, w.adler32, w.md5, sha256 ? STAGE_SHA256_CHARS : 0,
               sha256 ? w.sha256 : "", verdict_text(r), r->item->target,
               r->lfn[0] ? r->lfn : "-", format_cksums(r, data));
}

static json_t *text_json(const char *word)
{
    return strcmp(word, "-") == 0 ? json_null() : json_string(word);
}

static json_t *integer_json(bool is_known, uint64_t value)
{
    return is_known ? jsonout_integer(value) : json_null();
}

static json_t *texts_json(const struct stage_messages *texts)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < texts->count; i++)
        json_array_append_new(array, jsonout_string(texts->line[i]));
    return array;
}

static json_t *data_json(const struct stage_digest *d, bool is_known)
{
    json_t *array = is_known ? json_array() : json_null();
    for (unsigned i = 0; is_known && i < d->data_count; i++)
        json_array_append_new(array, json_pack("{s:o, s:o}", "ordinal",
                                               jsonout_integer(d->data[i].ordinal), "cksum",
                                               jsonout_integer(d->data[i].cksum)));
    return array;
}

static void print_stage_json(const struct stage_result *r)
{
    struct row_texts w = format_row(r);
    const struct stage_digest *d = &r->digest;
    bool has_data = r->has_digest && d->has_data;
    json_t *line = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:o, s:I, s:I, s:f,"
        " s:o, s:o, s:s, s:o}",
        "file", jsonout_string(r->item->source), "target", jsonout_string(r->item->target),
        "action", status_text(r->status), "lfn", jsonout_string_or_null(r->lfn), "size",
        integer_json(r->has_size, r->size), "cksum", integer_json(r->has_digest, d->cksum),
        "adler32", text_json(w.adler32), "md5", text_json(w.md5), "sha256", text_json(w.sha256),
        "data", data_json(d, has_data), "data_more", integer_json(has_data, d->data_more),
        "container", r->container, "records", (json_int_t)r->records, "checksums_verified",
        integer_json(r->read && is_in_place(r), r->verified), "checksums_unverified",
        (json_int_t)stage_unverified_count(r), "resumed", (json_int_t)r->resumed, "seconds",
        round(r->seconds * 1000) / 1000, "unverified", texts_json(&r->unverified), "deviations",
        texts_json(&r->warnings), "status", limefile_verdict_word(result_verdict(r)), "error",
        jsonout_string_or_null(result_error(r)));
    jsonout_print(stdout, line);
    putchar('\n');
}

static const char help[] =
    "Usage: lime stage [OPTION]... SRC... DST\n"
    "       lime stage [OPTION]... --files-from LIST [-0] DST\n"
    "Copy containers to the directory DST, or one container to the file DST. While\n"
    "copying, verify their structure and checksums, and compute sums for catalogues.\n"
    "A copy gets its name when it is complete, verified and on the disk. After an\n"
    "interruption, the same command continues.\n"
    "\n"
    "  -r, --recursive       also copy directories with everything in them\n"
    "  -j, --jobs N          copy N files at once (default 8)\n"
    "      --sums LIST       compute these of cksum, adler32, md5, sha256 (default:\n"
    "                        cksum,adler32,md5; cksum always)\n"
    "      --write-sums FILE list the strongest of these sums of each copy in FILE,\n"
    "                        as sha256sum and md5sum do, or update lines of FILE\n"
    "      --verify-sums FILE\n"
    "                        compare copies, also existing ones, with the sums that\n"
    "                        FILE has for the source or the target\n"
    "      --files-from LIST read the sources from LIST, one per line; '-': standard\n"
    "                        input\n"
    "  -0, --null            in LIST, each name ends with a NUL\n"
    "      --any             also copy files that are not containers; without it, -r\n"
    "                        skips and counts them\n"
    "      --list-skipped    also print a line for each file that is skipped\n"
    "      --strict          do not copy files with warnings, or data whose checksum\n"
    "                        is missing or cannot be compared\n"
    "  -f, --force           replace existing files\n"
    "      --check-there     read existing copies, and compare their sums\n"
    "      --verify-target   read each copy back from the disk, and compare\n"
    "      --no-space-check  begin even if there may not be enough space\n"
    "      --checkpoint N    record the progress of a file every N bytes (k, M, G),\n"
    "                        to resume there (default 256M, at most once a second)\n"
    "      --job SOCKET      copy through this limefs-io; if it fails, without it\n"
    "      --job-timeout S   the job has failed if silent for S seconds (default 30)\n"
    "      --bytes           print sizes in bytes, not as 145K\n"
    "      --json            print a line of JSON for each file, not the table\n"
    "  -q, --quiet           print only files that are not good\n"
    "  -h, --help            this text\n"
    "\n"
    "Example: lime stage --write-sums /data/run7.md5 -r /scratch/run7 /data\n"
    "\n"
    "Exit status: 0 all copies exist, and everything examined is good; 3 all exist,\n"
    "but some data could not be verified; 1 something is bad or was not copied; 2 a\n"
    "file could not be read or is not a container, or wrong usage.\n";

struct options {
    struct stage_options stage;
    struct pathlist_options files;
    bool json, quiet, list_skipped, no_space_check;
    const char *write_sums, *verify_sums; /* lists of sums, or NULL */
};

/* The part of a failed result that is kept. It is small: all files of a long list may fail. */
struct failure {
    const struct stage_item *item;
    char *reason;
};

/* The results so far. */
struct tally {
    size_t status_count[STAGE_STATUS_COUNT];
    uint64_t verdicts[LIMEFILE_UNREADABLE + 1];
    size_t unverified, others; /* copies with unverified data; copies that are not containers */
    int status;                /* the worst exit status of all files */
    uint64_t bytes;
    struct failure *failed;
    size_t failed_count;
    struct sums_output *sums; /* the list that --write-sums writes, or NULL */
};

static volatile sig_atomic_t caught; /* a signal's number, or 0 */

static void catch_signal(int number)
{
    caught = number;
}

/* Catches each of these signals only once: the same signal ends the process if it is repeated.
 * Signals that are ignored stay ignored. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old, new = {.sa_handler = catch_signal, .sa_flags = SA_RESETHAND};
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &new, NULL);
    }
}

static void print_warnings(const char *path, const struct stage_messages *texts)
{
    for (unsigned i = 0; i < texts->count; i++)
        message(path, "warning: %s", texts->line[i]);
    if (texts->more)
        message(path, "warning: and %" PRIu64 " more", texts->more);
}

/* Returns false, after a message, if memory is exhausted. */
static bool store_failure(struct tally *tally, const struct stage_result *r)
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

/* Adds the strongest of the sums that were computed to the list of --write-sums. */
static bool store_sum(const struct tally *tally, const struct stage_result *r)
{
    char text[STAGE_SUM_CHARS];
    if (!tally->sums || !r->has_digest || !is_in_place(r))
        return true;
    enum stage_sum_kind kind = STAGE_CKSUM;
    while (r->digest.kinds >= kind * 2u)
        kind *= 2;
    stage_digest_format(&r->digest, kind, text);
    return sums_output_set(tally->sums, r->item->target, kind, text);
}

/* Prints the result as a row of the table or as JSON. */
static void print_result_line(const struct stage_result *r, const struct options *o)
{
    progress_hide();
    if (o->json)
        print_stage_json(r);
    else
        print_stage_row(r, o->stage.kinds & STAGE_SHA256);
    flush_stdout();
}

/* Counts, prints and releases a result. Returns false, after a message, if memory is exhausted.
 */
static bool print_result(struct tally *tally, struct stage_result *r, const struct options *o,
                         struct progress *progress)
{
    tally->status_count[r->status]++;
    if (r->status == STAGE_STAGED)
        tally->bytes += r->size;
    else
        progress->total -= r->item->size < progress->total ? r->item->size : progress->total;
    int status = verdict_status(result_verdict(r));
    bool is_dropped =
        status == TOOL_GOOD && (o->quiet || (r->status == STAGE_SKIPPED && !o->list_skipped));
    if (!is_dropped)
        print_warnings(r->item->source, &r->warnings);
    if (stage_unverified_count(r) && is_in_place(r)) {
        tally->unverified++;
        print_warnings(r->item->source, &r->unverified);
    }
    tally->others += is_in_place(r) && !r->container;
    tally->verdicts[result_verdict(r)]++;
    tally->status = worse_status(tally->status, status);
    if (!is_dropped)
        print_result_line(r, o);
    bool good = store_sum(tally, r) && (r->status != STAGE_FAILED || store_failure(tally, r));
    stage_result_release(r);
    return good;
}

static void print_failures(const struct tally *tally, size_t count)
{
    if (tally->failed_count)
        message("stage", "%zu of %zu files failed:", tally->failed_count, count);
    for (size_t i = 0; i < tally->failed_count; i++)
        message(tally->failed[i].item->source, "%s", tally->failed[i].reason);
}

/* Returns the number of files that were neither finished nor have failed. */
static size_t count_left(const struct tally *tally, size_t count)
{
    for (int s = STAGE_STAGED; s < STAGE_STOPPED; s++)
        count -= tally->status_count[s];
    return count;
}

static void print_stage_summary(const struct tally *tally, size_t count, double seconds)
{
    char bytes[LIMEFILE_SIZE_CHARS], rate[LIMEFILE_SIZE_CHARS];
    char unverified[64] = "", others[64] = "", skipped[80] = "";
    bool is_interrupted = count_left(tally, count) > 0;
    if (tally->unverified)
        snprintf(unverified, sizeof unverified, "; %zu unverified", tally->unverified);
    if (tally->others)
        snprintf(others, sizeof others, "; %zu not containers", tally->others);
    if (tally->status_count[STAGE_SKIPPED])
        snprintf(skipped, sizeof skipped, "; %zu skipped (not containers; --any copies them)",
                 tally->status_count[STAGE_SKIPPED]);
    message(
        "stage", "%zu staged (%s in %.1f s, %s/s), %zu up to date, %zu failed%s%s%s%s",
        tally->status_count[STAGE_STAGED], limefile_format_bytes(tally->bytes, bytes), seconds,
        limefile_format_bytes(
            (uint64_t)((double)tally->bytes / (seconds > 0.001 ? seconds : 0.001)), rate),
        tally->status_count[STAGE_UP_TO_DATE], tally->status_count[STAGE_FAILED], unverified,
        others, skipped, is_interrupted ? "; interrupted, repeat the command to continue" : "");
}

static void print_summary_json(const struct tally *tally, double seconds)
{
    uint64_t files = 0;
    for (int v = LIMEFILE_GOOD; v <= LIMEFILE_UNREADABLE; v++)
        files += tally->verdicts[v];
    json_t *summary = files_summary_json(files, tally->verdicts);
    for (int s = STAGE_STAGED; s <= STAGE_STOPPED; s++)
        if (s != STAGE_SKIPPED) /* counted by its verdict */
            json_object_set_new(summary, status_text((enum stage_status)s),
                                jsonout_integer(tally->status_count[s]));
    json_object_set_new(summary, "bytes", jsonout_integer(tally->bytes));
    json_object_set_new(summary, "seconds", json_real(round(seconds * 1000) / 1000));
    jsonout_print(stdout, json_pack("{s:o}", "summary", summary));
    putchar('\n');
}

static void release_tally(struct tally *tally)
{
    for (size_t i = 0; i < tally->failed_count; i++)
        free(tally->failed[i].reason);
    free(tally->failed);
}

/* Results arrive as files finish, but are printed in the order of the list. */
struct results {
    struct stage_result **waiting; /* per item; NULL: not finished; freed after printing */
    size_t printed, finished;
};

/* Prints finished results in the order of the list, up to the first unfinished file; with
 * at_end, skips unfinished files instead. Returns false if print_result() does. */
static bool print_ready(struct results *q, const struct stagelist *list, bool at_end,
                        struct tally *tally, const struct options *o, struct progress *progress)
{
    bool good = true;
    for (; q->printed < list->count && (at_end || q->waiting[q->printed]); q->printed++)
        if (q->waiting[q->printed])
            good = print_result(tally, q->waiting[q->printed], o, progress) && good;
    return good;
}

/* Waits for all files and prints their results. Stops staging on a signal or without memory. */
static void print_results(struct stage *stage, const struct stagelist *list,
                          const struct options *o, struct results *queue, struct tally *tally)
{
    struct progress progress;
    struct stage_result *result;
    uint64_t moved;
    bool stopped = false, job_reported = false;
    char what[32];
    progress_begin(&progress, what, list->bytes);
    for (int got; (got = stage_wait(stage, 100, &result, &moved)) >= 0;) {
        const char *why = job_reported ? NULL : stage_job_failure(stage);
        if (why) {
            message(o->stage.socket, "warning: copying without the job: %s", why);
            job_reported = true;
        }
        if (got) {
            queue->waiting[result->item - list->items] = result;
            queue->finished++;
        }
        if (!print_ready(queue, list, false, tally, o, &progress))
            stage_stop(stage);
        if (caught && !stopped) {
            stage_stop(stage);
            stopped = true;
        }
        snprintf(what, sizeof what, "%zu/%zu", queue->finished, list->count);
        progress_to(&progress, moved);
    }
    print_ready(queue, list, true, tally, o, &progress);
    progress_end(&progress);
}

static bool has_space(const struct stagelist *list, const struct options *o)
{
    uint64_t needed, available;
    char a[LIMEFILE_SIZE_CHARS], b[LIMEFILE_SIZE_CHARS];
    if (o->no_space_check ||
        stage_compute_space(list->items, list->count, list->dir, &needed, &available) != 0 ||
        needed <= available)
        return true;
    message(list->dir,
            "%s needed, %s free: nothing was staged; use --no-space-check to try anyway",
            limefile_format_bytes(needed, a), limefile_format_bytes(available, b));
    return false;
}

/* sums: the list of --write-sums, or NULL. */
static int stage_list(const struct stagelist *list, const struct options *o,
                      struct sums_output *sums)
{
    struct stage *stage;
    struct tally tally = {.sums = sums};
    struct results queue = {0};
    double began = seconds_now();
    catch_signals();
    queue.waiting = calloc(list->count, sizeof(struct stage_result *));
    int err = list->count && !queue.waiting
                  ? -ENOMEM
                  : stage_start(&o->stage, list->items, list->count, &stage);
    if (err) {
        free(queue.waiting);
        return report_error("stage", "begin", err);
    }
    if (!o->json && !o->quiet)
        print_stage_head(o->stage.kinds & STAGE_SHA256);
    print_results(stage, list, o, &queue, &tally);
    stage_free(stage);
    free(queue.waiting);
    print_failures(&tally, list->count);
    bool is_open_ended = o->files.recursive || o->files.list;
    if (!o->quiet)
        print_stage_summary(&tally, list->count, seconds_now() - began);
    if (!o->quiet && !o->json && (is_open_ended || list->count > 1)) {
        char text[SUMMARY_MAX];
        message(NULL, "%s", files_format_summary(list->count, tally.verdicts, text));
    }
    if (o->json && is_open_ended)
        print_summary_json(&tally, seconds_now() - began);
    if (sums)
        tally.status = worse_status(tally.status, sums_output_commit(sums));
    if (count_left(&tally, list->count) > 0 || tally.failed_count > 0 || list->incomplete)
        tally.status = worse_status(tally.status, TOOL_BAD);
    release_tally(&tally);
    if (caught) {
        finish_stdout();
        signal(caught, SIG_DFL);
        raise(caught);
    }
    return tally.status;
}

/* Parses "md5,adler32" into *kinds and modifies the text. Returns the first unknown word, which
 * may be "", or NULL if all are known. */
static const char *parse_sums(char *texts, unsigned *kinds)
{
    *kinds = STAGE_CKSUM;
    for (char *word; (word = strsep(&texts, ","));) {
        unsigned i = 0;
        while (sum_words[i] && strcmp(sum_words[i], word) != 0)
            i++;
        if (!sum_words[i])
            return word;
        *kinds |= 1u << i;
    }
    return NULL;
}

/* Sets `sum` of each item whose source or target the list `name` names. Returns an exit status.
 */
static int require_listed_sums(struct stagelist *list, struct sums_list *sums, const char *name)
{
    char *directory = sums_list_directory(name);
    int status = directory ? sums_list_read(sums, name) : report_error(name, "read", -ENOMEM);
    if (!status && !sums_list_resolve(sums, directory, false))
        status = TOOL_BAD;
    for (size_t i = 0; !status && i < 2 * list->count; i++) {
        struct stage_item *item = &list->items[i / 2];
        char *path = sums_resolve_path(i % 2 ? item->target : item->source);
        size_t first;
        if (!item->sum && path && sums_list_find(sums, path, &first)) {
            item->sum = sums->entries[sums->sorted[first]].sum;
            item->sum_kind = sums->entries[sums->sorted[first]].kind;
        }
        free(path);
    }
    free(directory);
    return status;
}

static int stage_with_sums(struct stagelist *list, const struct options *o)
{
    struct options all = *o;
    struct sums_list required = {0};
    struct sums_output sums;
    int status = TOOL_GOOD;
    if (o->verify_sums)
        status = require_listed_sums(list, &required, o->verify_sums);
    all.stage.kinds |= required.kinds;
    all.stage.require_sums = o->verify_sums != NULL;
    if (!status && !has_space(list, o))
        status = TOOL_BAD;
    if (!status && o->write_sums)
        status = sums_output_open(&sums, o->write_sums, true, false);
    if (!status)
        status = stage_list(list, &all, o->write_sums ? &sums : NULL);
    sums_list_release(&required);
    return status;
}

static int stage_all(const struct options *o, const struct pathlist *sources,
                     const char *target)
{
    struct stagelist list = {
        .recursive = o->files.recursive, .force = o->stage.force, .listing = o->files.list};
    int status = sources->count == 0 ? TOOL_GOOD : TOOL_BAD;
    if (sources->count == 0)
        message(strcmp(o->files.list, "-") == 0 ? "standard input" : o->files.list,
                "the list is empty; nothing was staged");
    else if (stagelist_init(&list, sources, target))
        status = stage_with_sums(&list, o);
    stagelist_release(&list);
    return status;
}

static struct options options = {
    .stage = {.kinds = STAGE_CKSUM | STAGE_ADLER32 | STAGE_MD5,
              .files_at_once = STAGE_FILES_AT_ONCE,
              .job_timeout = 30},
};

static int parse_sums_option(const void *command, char *text)
{
    const char *bad = parse_sums(text, &options.stage.kinds);
    return bad ? value_error(command, "--sums", "checksum", bad, "cksum, adler32, md5, sha256")
               : TOOL_GOOD;
}

static const struct option_rule rules[] = {
    PATHLIST_RULES(options.files),
    {"jobs", 'j', OPTION_UNSIGNED, &options.stage.files_at_once, 1,
     .most = STAGE_FILES_AT_ONCE_MAX},
    {"sums", 0, OPTION_CALL_TEXT, .handle = parse_sums_option, .count = 4,
     OPTION_WORDS("cksum", "adler32", "md5", "sha256")},
    TEXT_RULE("write-sums", 0, &options.write_sums),
    TEXT_RULE("verify-sums", 0, &options.verify_sums),
    {"checkpoint", 0, OPTION_SIZE, &options.stage.checkpoint, 1, 0x1p60,
     .expected = "bytes, as in 64M"},
    {"job-timeout", 0, OPTION_UNSIGNED, &options.stage.job_timeout, 1, 86400,
     .expected = "seconds, 1 to 86400"},
    TEXT_RULE("job", 0, &options.stage.socket),
    FLAG_RULE("any", 0, &options.stage.any_file),
    FLAG_RULE("strict", 0, &options.stage.strict),
    FLAG_RULE("force", 'f', &options.stage.force),
    FLAG_RULE("check-there", 0, &options.stage.check_existing),
    FLAG_RULE("verify-target", 0, &options.stage.verify_target),
    FLAG_RULE("no-space-check", 0, &options.no_space_check),
    BYTES_RULE,
    FLAG_RULE("json", 0, &options.json),
    FLAG_RULE("list-skipped", 0, &options.list_skipped),
    FLAG_RULE("quiet", 'q', &options.quiet),
    {NULL},
};

static int run_stage(int count, char **names)
{
    const struct options *o = &options;
    const struct pathlist_options named = {.list = o->files.list, .nul = o->files.nul};
    struct pathlist sources;
    if (o->write_sums && strcmp(o->write_sums, "-") == 0)
        return usage_error(&cmd_stage, "--write-sums requires a file; the table is on standard "
                                       "output");
    if (named.list && count != 1)
        return usage_error(&cmd_stage, "with --files-from, DST only expected");
    if (named.nul && !named.list)
        return usage_error(&cmd_stage, "-0 requires --files-from");
    if (!named.list && count < 2)
        return usage_error(&cmd_stage, "SRC and DST expected");
    int status = pathlist_init(&sources, &named, &cmd_stage, count - 1, names);
    if (!status)
        status = stage_all(o, &sources, names[count - 1]);
    pathlist_release(&sources);
    return status;
}

const struct command cmd_stage = {"stage", "make verified copies", help, run_stage,
                                  rules,   ANY_OPERANDS,           NULL};
