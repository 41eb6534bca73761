/* cmd_repair.c - lime repair: cuts an unfinished tail, mends what surrounds the data */
#define _GNU_SOURCE
#include "edit.h"
#include "repair.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime repair [-n] [--force] FILE\n"
    "Cut an unfinished tail off a LIME container, as a crash leaves it, and mend\n"
    "what surrounds the data: message flags, reserved bits, padding. Data and record\n"
    "types are never changed, and the bytes that are cut are kept in\n"
    "FILE.cut-OFFSET, but for a record that lime or limefs had not finished.\n"
    "\n"
    "  -n, --dry-run  say what would be done; change nothing\n"
    "      --force    cut even where more than an unfinished record follows\n"
    "      --help     this text\n"
    "\n"
    "Message flags: where one of two neighbours says that a message ends or begins\n"
    "between them, both say it afterwards; the first record begins one and the last\n"
    "ends one.\n"
    "\n"
    "Example: lime check conf.0042 || lime repair -n conf.0042\n"
    "\n"
    "Exit status: 0 FILE is good now, or with -n already; 1 it is not (what is left\n"
    "is named); 2 FILE cannot be opened or is no container, or wrong usage.\n";

void repair_note(struct repair *repair, const char *format, ...)
{
    va_list args;
    char *text;
    repair->changes++;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    answer(repair->path, "%s%s", len < 0 ? "changed" : text, repair->dry ? " (dry run)" : "");
    if (len >= 0)
        free(text);
}

static uint64_t size_of(const struct repair *repair)
{
    struct stat st;
    return fstat(repair->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void repair_progress(void *context, uint64_t done, uint64_t size)
{
    struct repair *repair = context;
    (void)size;
    progress_to(&repair->progress, done);
}

static void note(void *context, const char *text)
{
    repair_note(context, "%s", text);
}

static void name_hopeless(void *context, const struct limefile_finding *finding)
{
    struct repair *repair = context;
    finding_message(repair->path, finding);
    repair->hopeless++;
}

static int look(struct repair *repair, struct limefile_survey *survey)
{
    progress_begin(&repair->progress, "check", size_of(repair));
    int err = limefile_survey_take(&repair->file.source, repair_progress, repair, survey);
    progress_end(&repair->progress);
    return err;
}

static int mend(struct repair *repair)
{
    progress_begin(&repair->progress, "mend", size_of(repair));
    int err = limefile_mend(&repair->file.source, repair->dry, note, name_hopeless,
                            repair_progress, repair);
    progress_end(&repair->progress);
    return err;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Looks again at what is there now. */
static int conclude(struct repair *repair)
{
    struct limefile_survey now;
    int err = repair->file.source.ops->sync(&repair->file.source);
    if (!err)
        err = look(repair, &now);
    if (err) {
        message_code(repair->path, "repair", err);
        return TOOL_BAD;
    }
    if (now.fault.code || now.deviations) {
        message(repair->path,
                "repair: %" PRIu64 " deviation%s cannot be mended without changing a record",
                now.deviations, plural(now.deviations));
        return TOOL_BAD;
    }
    answer(repair->path, "%s: %" PRIu64 " record%s in %" PRIu32 " message%s, %" PRIu64 " bytes",
           repair->changes ? "good now" : "good, nothing to do", now.records,
           plural(now.records), now.messages, plural(now.messages), now.size);
    return repair->hopeless ? TOOL_BAD : TOOL_GOOD;
}

static int conclude_dry(const struct repair *repair)
{
    if (repair->changes)
        answer(repair->path, "%" PRIu64 " thing%s to do, nothing was changed", repair->changes,
               plural(repair->changes));
    else if (!repair->hopeless)
        answer(repair->path, "good, nothing to do");
    if (repair->hopeless)
        message(repair->path,
                "repair: %" PRIu64 " deviation%s cannot be mended without changing a record",
                repair->hopeless, plural(repair->hopeless));
    return repair->changes || repair->hopeless ? TOOL_BAD : TOOL_GOOD;
}

static int repair_opened(struct repair *repair)
{
    struct limefile_survey survey;
    int status = edit_lock(repair->path, repair->fd, repair->dry);
    if (status != TOOL_GOOD)
        return status;
    int err = look(repair, &survey);
    if (err) {
        message_code(repair->path, "read", err);
        return TOOL_BAD;
    }
    if (survey.fault.code)
        finding_message(repair->path, &survey.fault);
    if (!survey.is_container) {
        message(repair->path, "not a LIME container; nothing was changed");
        return TOOL_UNUSABLE;
    }
    if (survey.fault.code)
        status = repair_tail(repair, &survey);
    if (status != TOOL_GOOD)
        return status;
    err = mend(repair);
    if (err) {
        message_code(repair->path, "write", err);
        return TOOL_BAD;
    }
    return repair->dry ? conclude_dry(repair) : conclude(repair);
}

static int run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"dry-run", no_argument, NULL, 'n'},
        {"force", no_argument, NULL, 'F'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    struct repair repair = {0};
    for (int opt; (opt = read_option(argc, argv, "n", longs, NULL)) != -1;) {
        if (opt == 'n')
            repair.dry = true;
        else if (opt == 'F')
            repair.force = true;
        else
            return opt == 'H' ? print_help(&cmd_repair) : option_error(&cmd_repair, argv);
    }
    if (argc - optind != 1)
        return usage_error(&cmd_repair, "exactly one file is wanted");
    repair.path = argv[optind];
    repair.fd = open_with_message(repair.path, repair.dry ? O_RDONLY : O_RDWR);
    if (repair.fd < 0)
        return TOOL_UNUSABLE;
    limefile_fd_init(&repair.file, repair.fd);
    int status = repair_opened(&repair);
    close(repair.fd);
    return status;
}

const struct command cmd_repair = {"repair", "cut an unfinished tail, mend flags and padding",
                                   help, run};
