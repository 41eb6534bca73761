/* cmd_repair.c - lime repair: cuts an unfinished tail, mends what surrounds the data */
#define _GNU_SOURCE
#include "check.h"
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
    "what surrounds the data: message flags, reserved bits, padding. The bytes that\n"
    "are cut are kept in FILE.cut-OFFSET, but for a record that lime or limefs had\n"
    "not finished; records that are gone are named. Data and record types are never\n"
    "changed, but that a 'lime replace' that was killed is completed. Data are not\n"
    "examined: 'lime check --data' does that.\n"
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
    "Exit status: that of 'lime check' on FILE as it is now, or 1 if records are\n"
    "gone: 0 the structure is good; 1 it is not, or records are gone; 2 FILE cannot\n"
    "be opened or is not a container, or wrong usage.\n";

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
    int err = limefile_mend(&repair->file.source, repair->dry, note, repair_progress, repair);
    progress_end(&repair->progress);
    return err;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* What lime check finds in the file as it is now: an exit status. */
static int check_now(struct repair *repair, bool quiet, struct check *check)
{
    const struct check_options options = {.quiet = quiet, .threads = 1};
    *check = (struct check){
        .path = repair->path, .options = &options, .progress = &repair->progress};
    progress_begin(&repair->progress, "check", size_of(repair));
    check_file(check);
    progress_end(&repair->progress);
    return verdict_status(check->verdict);
}

/* Names what lime check finds. */
static void name_rest(struct repair *repair)
{
    struct check check;
    check_now(repair, false, &check);
    uint64_t rest = check.deviations + check.faults;
    message(repair->path,
            "repair: %" PRIu64 " deviation%s cannot be mended without changing a record", rest,
            plural(rest));
}

static void say_good(const struct repair *repair, const struct check *check)
{
    char lost[48] = "";
    if (repair->lost)
        snprintf(lost, sizeof lost, ", %" PRIu64 " record%s gone", repair->lost,
                 repair->lost == 1 ? " is" : "s are");
    answer(repair->path,
           "structure good%s%s: %" PRIu64 " record%s in %" PRIu32 " message%s, %" PRIu64
           " bytes; data not examined (lime check --data)",
           repair->dry       ? ""
           : repair->changes ? " now"
                             : ", nothing to do",
           lost, check->records, plural(check->records), check->messages,
           plural(check->messages), check->size);
}

/* The verdict of lime check on the file as it is now. */
static int conclude(struct repair *repair)
{
    struct check check;
    int err = repair->dry ? 0 : repair->file.source.ops->sync(&repair->file.source);
    if (err) {
        message_code(repair->path, "repair", err);
        return TOOL_BAD;
    }
    int status = check_now(repair, true, &check);
    if (repair->dry && repair->changes && status == TOOL_UNUSABLE)
        status = TOOL_BAD; /* nothing but an unfinished record */
    if (repair->dry && repair->changes)
        answer(repair->path, "%" PRIu64 " thing%s to do, nothing was changed", repair->changes,
               plural(repair->changes));
    else if (status != TOOL_GOOD)
        name_rest(repair);
    if (status == TOOL_GOOD)
        say_good(repair, &check);
    return worse_status(status, repair->lost ? TOOL_BAD : TOOL_GOOD);
}

/* Gives a file that does not begin with a record header the verdict of lime check. */
static int refuse(struct repair *repair)
{
    struct check check;
    int status = check_now(repair, false, &check);
    message(repair->path,
            status == TOOL_BAD
                ? "repair: the first record header cannot be mended; nothing was changed"
                : "repair: nothing was changed");
    return status;
}

static int repair_opened(struct repair *repair)
{
    struct limefile_survey survey;
    int err = look(repair, &survey);
    if (err) {
        message_code(repair->path, "read", err);
        return TOOL_BAD;
    }
    if (!survey.is_container)
        return refuse(repair);
    if (survey.fault.code)
        finding_message(repair->path, &survey.fault);
    if (limefile_survey_refusal(&survey) == LIMEFILE_E_MIXED) {
        message(repair->path,
                "repair: record %" PRIu64 " has the mark of a replacement that was killed, and "
                "the new data behind it are missing or damaged; a record may be part old, part "
                "new; nothing was changed",
                survey.replacing);
        return TOOL_BAD;
    }
    if (survey.open)
        message(repair->path,
                "repair: record %" PRIu64 " was being resized by a program that was killed; it "
                "keeps the data that were committed",
                survey.open);
    int status = survey.fault.code ? repair_tail(repair, &survey) : TOOL_GOOD;
    if (status != TOOL_GOOD)
        return status;
    err = mend(repair);
    if (err) {
        message_code(repair->path, "write", err);
        return TOOL_BAD;
    }
    return conclude(repair);
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
    int status = edit_open_locked(repair.path, repair.dry, &repair.fd);
    if (status != TOOL_GOOD)
        return status;
    limefile_fd_init(&repair.file, repair.fd);
    status = repair_opened(&repair);
    close(repair.fd);
    return status;
}

const struct command cmd_repair = {"repair", "cut an unfinished tail, mend flags and padding",
                                   help, run};
