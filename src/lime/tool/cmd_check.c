/* cmd_check.c - lime check: every deviation of a container from the format */
#define _GNU_SOURCE
#include "container.h"
#include "jsonout.h"
#include "progress.h"
#include "tool.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime check [-q] [--json] FILE...\n"
    "Check the structure of LIME containers; each deviation is named with its\n"
    "offset.\n"
    "\n"
    "  -q, --quiet  say nothing about deviations; the exit status tells\n"
    "      --json   for scripts: all of it, as JSON\n"
    "      --help   this text\n"
    "\n"
    "It reads headers and padding, not the data: checking 20 GB takes a moment.\n"
    "'lime repair' mends most of what is found.\n"
    "\n"
    "Example: find /data -name 'conf.*' -exec lime check {} +\n"
    "\n"
    "Exit status, the worst of all files: 0 good; 1 deviations or a fault; 2 a file\n"
    "cannot be read or is no container, or wrong usage.\n";

struct options {
    bool quiet, json, several;
};

/* The state of checking one file; the context of the callback. */
struct check {
    const char *path;
    const struct options *options;
    uint64_t deviations, faults;
    uint64_t records, size;
    uint32_t messages;
    int fault; /* the code that ended it, or 0 */
};

static void report(void *context, const struct limefile_finding *finding)
{
    struct check *check = context;
    bool first = check->deviations + check->faults == 0;
    if (limefile_is_fault(finding->code))
        check->faults++;
    else
        check->deviations++;
    if (check->options->json) {
        fputs(first ? "\n " : ",\n ", stdout);
        jsonout_finding(stdout, finding);
    } else if (!check->options->quiet) {
        finding_message(check->path, finding);
    }
}

static int scan_all(struct check *check, struct limefile_source *source)
{
    struct limefile_scan *scan;
    struct limefile_record record;
    struct progress progress;
    uint64_t done;
    int err = limefile_scan_new(source, report, check, &scan);
    if (err)
        return err;
    limefile_scan_progress(scan, &done, &check->size);
    progress_begin(&progress, "check", check->size);
    int got;
    while ((got = limefile_scan_next(scan, &record)) > 0) {
        check->records++;
        check->messages = record.message;
        limefile_scan_progress(scan, &done, &check->size);
        progress_to(&progress, done);
    }
    progress_end(&progress);
    check->fault = got;
    limefile_scan_free(scan);
    return 0;
}

static bool is_container(const struct check *check)
{
    return check->records > 0 ||
           (check->fault != LIMEFILE_E_MAGIC && check->fault != LIMEFILE_E_VERSION);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_summary(const struct check *c)
{
    uint64_t bad = c->deviations + c->faults;
    char found[96] = "good";
    if (!is_container(c)) {
        answer(c->path, "not a LIME container");
        return;
    }
    if (bad)
        snprintf(found, sizeof found, "%" PRIu64 " deviation%s%s", bad, plural(bad),
                 !c->fault  ? ""
                 : bad == 1 ? ", a fault that ends the container"
                            : ", the last one a fault that ends the container");
    answer(c->path, "%s: %" PRIu64 " record%s in %" PRIu32 " message%s, %" PRIu64 " bytes",
           found, c->records, plural(c->records), c->messages, plural(c->messages), c->size);
}

static void begin_json(const char *path)
{
    printf("{\"file\": ");
    jsonout_text(stdout, path, strlen(path));
    printf(", \"findings\": [");
}

static void end_json(const struct check *c, const char *verdict)
{
    printf("], \"deviations\": %" PRIu64 ", \"faults\": %" PRIu64 ", \"records\": %" PRIu64
           ", \"messages\": %" PRIu32 ", \"size\": %" PRIu64 ", \"verdict\": \"%s\"}",
           c->deviations, c->faults, c->records, c->messages, c->size, verdict);
}

static const char *verdict(const struct check *c)
{
    if (!is_container(c))
        return "not-a-container";
    return c->faults ? "fault" : c->deviations ? "deviations" : "good";
}

static int check_one(const char *path, const struct options *options)
{
    struct check check = {.path = path, .options = options};
    struct limefile_fd file;
    int fd = open_with_message(path, O_RDONLY);
    if (options->json)
        begin_json(path);
    int err = fd < 0 ? fd : 0;
    if (!err) {
        limefile_fd_init(&file, fd);
        err = scan_all(&check, &file.source);
        if (err)
            message_code(path, "check", err);
        close(fd);
    }
    if (options->json)
        end_json(&check, err ? "unreadable" : verdict(&check));
    else if (!err && !options->quiet)
        print_summary(&check);
    if (err || !is_container(&check))
        return TOOL_UNUSABLE;
    return check.deviations + check.faults ? TOOL_BAD : TOOL_GOOD;
}

static int check_all(int count, char **paths, struct options *o)
{
    int worst = TOOL_GOOD;
    o->several = count > 1;
    if (o->json && o->several)
        fputs("[", stdout);
    for (int i = 0; i < count; i++) {
        if (o->json && i > 0)
            fputs(",\n", stdout);
        int status = check_one(paths[i], o);
        worst = status > worst ? status : worst;
    }
    if (o->json)
        fputs(o->several ? "]\n" : "\n", stdout);
    return worst;
}

static int run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"quiet", no_argument, NULL, 'q'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {0};
    for (int opt; (opt = getopt_long(argc, argv, "q", longs, NULL)) != -1;) {
        if (opt == 'q')
            o.quiet = true;
        else if (opt == 'j')
            o.json = true;
        else
            return opt == 'H' ? print_help(&cmd_check) : option_error(&cmd_check, argv);
    }
    if (optind == argc)
        return usage_error(&cmd_check, "no file named");
    return check_all(argc - optind, argv + optind, &o);
}

const struct command cmd_check = {"check", "name every deviation from the format", help, run};
