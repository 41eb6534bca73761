/* cmd_repair.c - lime repair: cut an unfinished tail, and repair headers and padding */
#define _GNU_SOURCE
#include "check.h"
#include "container.h"
#include "edit.h"
#include "files.h"
#include "limeedit.h"
#include "limecleanup.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct repair {
    const char *path;
    int fd;
    struct limefile_fd file;
    bool dry_run; /* print what is to be done, change nothing */
    bool force;   /* cut whatever follows a fault */
    uint64_t changes;
    uint64_t lost_records; /* records that the cut loses; each is printed */
    struct progress progress;
    struct file_task *task;
};

/* Counts a change and prints it on stdout as "FILE: text", with a mark in a dry run; with
 * --json, adds it to the file's list. */
__attribute__((format(printf, 2, 3))) static void repair_note(struct repair *repair,
                                                              const char *format, ...)
{
    va_list args;
    char *text;
    repair->changes++;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (repair->task->json)
        json_array_append_new(json_object_get(repair->task->members, "changes"),
                              jsonout_string(len < 0 ? "changed" : text));
    else
        print_line(repair->path, "%s%s", len < 0 ? "changed" : text,
                   repair->dry_run ? " (dry run)" : "");
    if (len >= 0)
        free(text);
}

static void repair_progress(void *context, uint64_t done, uint64_t size)
{
    struct repair *repair = context;
    (void)size;
    progress_to(&repair->progress, done);
}

/* Returns true for a fault that an unfinished record at the end of a file can cause. */
static bool is_cut_fault(int code)
{
    return code == LIMEFILE_E_HEADER_CUT || code == LIMEFILE_E_DATA_CUT ||
           code == LIMEFILE_E_TRAILING || code == LIMEFILE_E_LENGTH;
}

/* Returns true if the tail needs no copy: lime or limefs left it, or the file is all zeros. */
static bool is_own_tail(const struct limefile_survey *survey)
{
    return survey->tail == LIMEFILE_TAIL_UNFINISHED || survey->tail == LIMEFILE_TAIL_RESIZED ||
           survey->tail == LIMEFILE_TAIL_REMOVED || survey->tail == LIMEFILE_TAIL_REDO ||
           (survey->tail == LIMEFILE_TAIL_ZEROS && survey->end == 0);
}

/* found: what looks like a whole record in the tail; or NULL. */
static void report_refusal(const struct repair *repair, const struct limefile_survey *survey,
                           const struct limefile_salvage *found)
{
    char where[TYPE_TEXT_MAX + 120] = "", type[TYPE_TEXT_MAX];
    if (found)
        snprintf(where, sizeof where,
                 ", and at offset %" PRIu64 " there may be an intact record (type '%s', "
                 "%" PRIu64 " bytes)",
                 found->offset, format_type(found->header.type, found->header.type_len, type),
                 found->header.bytes);
    message(repair->path,
            "repair: not an unfinished record: %" PRIu64 " bytes from offset %" PRIu64
            "%s; nothing was changed",
            survey->size - survey->end, survey->end, where);
    message(repair->path, "repair: use --force to cut these bytes; a copy is kept");
}

/* Returns TOOL_GOOD if the tail may be cut, or TOOL_BAD after a message. */
static int check_tail(struct repair *repair, const struct limefile_survey *survey)
{
    struct limefile_salvage found;
    if (limefile_is_errno(survey->fault.code)) {
        message(repair->path, "repair: the file cannot be read there; nothing was changed");
        return TOOL_BAD;
    }
    if (repair->force || survey->resizing || is_own_tail(survey))
        return TOOL_GOOD;
    progress_begin(&repair->progress, "search", survey->size - survey->end);
    int hit = limefile_salvage_find(&repair->file.source, survey->end, survey->size,
                                    repair_progress, repair, &found);
    progress_end(&repair->progress);
    if (hit < 0) {
        message_code(repair->path, "read", hit);
        return TOOL_BAD;
    }
    if (hit == 0 && is_cut_fault(survey->fault.code))
        return TOOL_GOOD;
    report_refusal(repair, survey, hit ? &found : NULL);
    return TOOL_BAD;
}

/* Reads the header at `at`; bytes after the end of the file count as zeros. */
static int read_tail_header(struct repair *repair, uint64_t at, unsigned char *raw,
                            struct limefile_header *header)
{
    ssize_t got = limefile_read_full(&repair->file.source, raw, LIMEFILE_HEADER_BYTES, at);
    if (got < 0)
        return (int)got;
    memset(raw + got, 0, LIMEFILE_HEADER_BYTES - (size_t)got);
    limefile_header_decode(raw, header);
    return 0;
}

static const char *header_type(const struct limefile_header *header, char buf[TYPE_TEXT_MAX])
{
    return format_type(header->type, header->type_len, buf);
}

/* Returns the length of the type in a header's type field; 0 unless the field is printable
 * text, followed by NULs up to the end. */
static size_t find_type_length(const unsigned char *type)
{
    size_t len = 0;
    while (len < LIMEFILE_TYPE_BYTES && type[len] >= 0x20 && type[len] <= 0x7e)
        len++;
    for (size_t i = len; i < LIMEFILE_TYPE_BYTES; i++)
        if (type[i])
            return 0;
    return len < LIMEFILE_TYPE_BYTES ? len : 0;
}

/* Prints and counts a record whose header is damaged, if its last field, the type, is intact.
 */
static void report_damaged_record(struct repair *repair, const struct limefile_survey *survey,
                                  const unsigned char *raw)
{
    enum { AT = LIMEFILE_HEADER_BYTES - LIMEFILE_TYPE_BYTES };
    char buf[TYPE_TEXT_MAX];
    size_t len = find_type_length(raw + AT);
    if (len == 0 || survey->tail == LIMEFILE_TAIL_RESIZED_RECORD ||
        survey->size - survey->end < LIMEFILE_HEADER_BYTES)
        return;
    repair->lost_records++;
    message(repair->path,
            "repair: record %" PRIu64 " is lost: type '%s', its header is damaged",
            survey->records + 1, format_type((const char *)raw + AT, len, buf));
}

/* Prints and counts the record at the beginning of the tail. Returns 0 or an error. */
static int report_first_lost(struct repair *repair, const struct limefile_survey *survey)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    char buf[TYPE_TEXT_MAX];
    uint64_t n = survey->size - survey->end, ordinal = survey->records + 1;
    int err = read_tail_header(repair, survey->end, raw, &header);
    if (err)
        return err;
    switch (survey->fault.code) {
    case LIMEFILE_E_HEADER_CUT:
        message(repair->path,
                "repair: record %" PRIu64 " is lost: the file had %" PRIu64
                " of the %d bytes of its header",
                ordinal, n, LIMEFILE_HEADER_BYTES);
        break;
    case LIMEFILE_E_DATA_CUT:
        message(repair->path,
                "repair: record %" PRIu64 " is lost: type '%s', the file had %" PRIu64
                " of its %" PRIu64 " bytes",
                ordinal, header_type(&header, buf), n - LIMEFILE_HEADER_BYTES, header.bytes);
        break;
    case LIMEFILE_E_LENGTH:
        message(repair->path,
                "repair: record %" PRIu64 " is lost: type '%s', no file can have its length",
                ordinal, header_type(&header, buf));
        break;
    case LIMEFILE_E_VERSION:
        message(repair->path, "repair: record %" PRIu64 " is lost: type '%s', version %u",
                ordinal, header_type(&header, buf), header.version);
        break;
    default:
        report_damaged_record(repair, survey, raw);
        return 0;
    }
    repair->lost_records++;
    return 0;
}

/* Prints and counts the records that cutting the tail would lose. Returns 0 or an error. */
static int report_lost_records(struct repair *repair, const struct limefile_survey *survey)
{
    struct limefile_salvage found;
    char buf[TYPE_TEXT_MAX];
    uint64_t from = survey->end, data_end, next;
    int err = report_first_lost(repair, survey), hit = 0;
    if (err || !(repair->force || survey->tail == LIMEFILE_TAIL_RESIZED_RECORD))
        return err;
    progress_begin(&repair->progress, "search", survey->size - survey->end);
    while ((hit = limefile_salvage_find(&repair->file.source, from, survey->size,
                                        repair_progress, repair, &found)) > 0) {
        repair->lost_records++;
        message(repair->path,
                "repair: a complete record is cut: type '%s', %" PRIu64
                " bytes, offset %" PRIu64,
                header_type(&found.header, buf), found.header.bytes, found.offset);
        if (limefile_record_end(found.offset, found.header.bytes, &data_end, &next) != 0)
            break;
        from = next;
    }
    progress_end(&repair->progress);
    return hit < 0 ? hit : 0;
}

/* Syncs the directory of the file, so that the file's name is on the disk. */
static int sync_parent(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int err = fd < 0 || (fsync(fd) != 0 && errno != EINVAL) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    free(copy);
    return err;
}

/* Copies the tail and syncs both the copy and its directory. */
static int fill_copy(const struct repair *repair, const struct limefile_survey *survey, int fd,
                     const char *path)
{
    struct progress progress;
    struct limefile_copy copy = {
        .in = repair->fd,
        .in_offset = survey->end,
        .out = fd,
        .out_offset = 0,
        .left = survey->size - survey->end,
        .progress = progress_add,
        .context = &progress,
    };
    progress_begin(&progress, "copy", copy.left);
    int err = limefile_copy(&copy);
    progress_end(&progress);
    if (!err && fsync(fd) != 0)
        err = -errno;
    return err ? err : sync_parent(path);
}

/* Copies the tail to a new file. The caller frees *path. Returns 0 or an error. */
static int save_tail(struct repair *repair, const struct limefile_survey *survey, char **path)
{
    sigset_t before;
    limefile_cleanup_block(&before);
    int fd = limefile_create_cut_file(AT_FDCWD, repair->path, survey->end, repair->fd, path);
    if (fd >= 0)
        limefile_cleanup_add(AT_FDCWD, *path);
    limefile_cleanup_unblock(&before);
    if (fd < 0)
        return fd;
    int err = fill_copy(repair, survey, fd, *path);
    if (close(fd) != 0 && !err)
        err = -errno;
    if (err)
        unlink(*path);
    limefile_cleanup_clear();
    return err;
}

static int cut_file_tail(struct repair *repair, const struct limefile_survey *survey)
{
    int err = limefile_survey_repair(&repair->file.source, survey);
    if (err)
        message_code(repair->path, "cut", err);
    return err;
}

static int save_and_cut(struct repair *repair, const struct limefile_survey *survey)
{
    char *path = NULL;
    int err = save_tail(repair, survey, &path);
    if (err) {
        message_code(path ? path : repair->path, "keep a copy", err);
    } else {
        err = cut_file_tail(repair, survey);
        if (!err)
            repair_note(repair, "offset %" PRIu64 ": %" PRIu64 " bytes cut, kept in %s",
                        survey->end, survey->size - survey->end, path);
    }
    free(path);
    return err;
}

/* Cuts the bytes after the last whole record if check_tail() allows it, and completes a
 * replacement that was killed. Unless is_own_tail(), keeps a copy of the bytes and prints the
 * records that are lost with them. Returns an exit status, after a message if not TOOL_GOOD. */
static int repair_tail(struct repair *repair, const struct limefile_survey *survey)
{
    char text[LIMEFILE_NAME_MAX + 128];
    int status = check_tail(repair, survey);
    if (status != TOOL_GOOD)
        return status;
    int err = is_own_tail(survey) ? 0 : report_lost_records(repair, survey);
    if (err)
        return report_error(repair->path, "read", err);
    if (!repair->dry_run)
        err =
            is_own_tail(survey) ? cut_file_tail(repair, survey) : save_and_cut(repair, survey);
    if (err)
        return TOOL_BAD;
    limefile_survey_text(survey, text, sizeof text);
    if (repair->dry_run || is_own_tail(survey))
        repair_note(repair, "%s", text);
    /* In a dry run limefile_repair_headers() reports the ME flag. */
    if (!repair->dry_run && survey->cut_sets_me)
        repair_note(repair, "offset %" PRIu64 ": record %" PRIu64 ": flags: ME set",
                    survey->last + 6, survey->records);
    return TOOL_GOOD;
}

static const char help[] =
    "Usage: lime repair [OPTION]... FILE...\n"
    "       lime repair [OPTION]... -r DIR...\n"
    "       lime repair [OPTION]... --files-from LIST [-0]\n"
    "Cut off an unfinished end that a crash has left, and correct message flags,\n"
    "reserved bits and padding. The cut bytes are kept in FILE.cut-OFFSET, except an\n"
    "unfinished record of lime or limefs; lost records are printed. Data and record\n"
    "types are never changed, except that a 'lime replace' that was killed is\n"
    "completed. Data are not verified: 'lime check --data' does that.\n"
    "\n"
    "  -n, --dry-run          print what would be done; change nothing\n"
    "      --force            cut even if more than an unfinished record follows\n" FILES_HELP
    "\n"
    "Message flags: if one of two neighbours states that a message ends or begins\n"
    "between them, both state it afterwards; the first record begins a message and\n"
    "the last ends one.\n"
    "\n"
    "Examples:\n"
    "  lime check conf.0042 || lime repair -n conf.0042\n"
    "  lime repair -n -q -r /data/runs\n"
    "\n"
    "Exit status: that of 'lime check' on the repaired FILE, or 1 if records are\n"
    "lost: 0 the structure is good; 1 it is not, or records are lost; 2 FILE cannot\n"
    "be opened or is not a container, or wrong usage.\n";

static uint64_t get_file_size(const struct repair *repair)
{
    struct stat st;
    return fstat(repair->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void note_mended(void *context, const char *text)
{
    repair_note(context, "%s", text);
}

static int survey_file(struct repair *repair, struct limefile_survey *survey)
{
    progress_begin(&repair->progress, "check", get_file_size(repair));
    int err = limefile_survey_scan(&repair->file.source, repair_progress, repair, survey);
    progress_end(&repair->progress);
    return err;
}

static int mend_structure(struct repair *repair)
{
    progress_begin(&repair->progress, "mend", get_file_size(repair));
    int err = limefile_repair_headers(&repair->file.source, repair->dry_run, note_mended,
                                      repair_progress, repair);
    progress_end(&repair->progress);
    return err;
}

/* Runs lime check on the file as it is now. Returns the exit status of lime check. quiet: do
 * not print the findings; with --json, they are never printed. */
static int check_now(struct repair *repair, bool quiet, struct check *check)
{
    const struct check_options options = {.threads = 1};
    quiet = quiet || repair->task->json;
    *check = (struct check){.path = repair->path,
                            .options = &options,
                            .task = quiet ? NULL : repair->task,
                            .progress = &repair->progress};
    progress_begin(&repair->progress, "check", get_file_size(repair));
    check_file(check);
    progress_end(&repair->progress);
    snprintf(repair->task->error, sizeof repair->task->error, "%s", check->first_text);
    return verdict_status(check->verdict);
}

/* Prints the findings of lime check. */
static void report_remaining(struct repair *repair)
{
    struct check check;
    check_now(repair, false, &check);
    uint64_t rest = check.deviations + check.faults;
    message(repair->path,
            "repair: %" PRIu64 " deviation%s cannot be repaired without changing a record",
            rest, plural(rest));
}

static void print_good_structure(const struct repair *repair, const struct check *check)
{
    char lost[48] = "";
    if (repair->lost_records)
        snprintf(lost, sizeof lost, ", %" PRIu64 " record%s lost", repair->lost_records,
                 repair->lost_records == 1 ? " is" : "s are");
    print_line(repair->path,
               "structure good%s%s: %" PRIu64 " record%s in %" PRIu32 " message%s, %" PRIu64
               " bytes; data not examined (lime check --data)",
               repair->dry_run   ? ""
               : repair->changes ? " now"
                                 : ", nothing to do",
               lost, check->records, plural(check->records), check->messages,
               plural(check->messages), check->size);
}

/* Prints the results of the repair and of a lime check after it. Returns the exit status. */
static int print_conclusion(struct repair *repair)
{
    struct check check;
    int err = repair->dry_run ? 0 : repair->file.source.ops->sync(&repair->file.source);
    if (err)
        return report_error(repair->path, "repair", err);
    int status = check_now(repair, true, &check);
    if (repair->dry_run && repair->changes && status == TOOL_UNUSABLE)
        status = TOOL_BAD; /* the file holds only an unfinished record */
    bool has_left_changes = repair->dry_run && repair->changes;
    if (has_left_changes && !repair->task->json)
        print_line(repair->path, "%" PRIu64 " change%s to make, nothing was changed",
                   repair->changes, plural(repair->changes));
    else if (!has_left_changes && status != TOOL_GOOD)
        report_remaining(repair);
    if (status == TOOL_GOOD && !repair->task->json)
        print_good_structure(repair, &check);
    return worse_status(status, repair->lost_records ? TOOL_BAD : TOOL_GOOD);
}

/* Prints the findings of lime check on a file that does not begin with a record header. Returns
 * the exit status of lime check. */
static int report_not_container(struct repair *repair)
{
    struct check check;
    if (container_report_format(repair->path, &repair->file.source))
        return TOOL_UNUSABLE;
    int status = check_now(repair, false, &check);
    message(repair->path,
            status == TOOL_BAD
                ? "repair: the first record header cannot be repaired; nothing was changed"
                : "repair: nothing was changed");
    return status;
}

static int repair_opened(struct repair *repair)
{
    struct limefile_survey survey;
    int err = survey_file(repair, &survey);
    if (err)
        return report_error(repair->path, "read", err);
    if (!survey.is_container)
        return report_not_container(repair);
    if (survey.fault.code)
        message_finding(repair->path, &survey.fault, false);
    if (limefile_survey_check(&survey) == LIMEFILE_E_MIXED) {
        message(repair->path,
                "repair: record %" PRIu64 " has the mark of a replacement that was killed, and "
                "the new data after it are missing or damaged; a record may be part old, part "
                "new; nothing was changed",
                survey.replacing);
        return TOOL_BAD;
    }
    if (survey.resizing)
        message(repair->path,
                "repair: record %" PRIu64 " was being resized by a program that was killed; it "
                "keeps the data that were committed",
                survey.resizing);
    int status = survey.fault.code ? repair_tail(repair, &survey) : TOOL_GOOD;
    if (status != TOOL_GOOD)
        return status;
    err = mend_structure(repair);
    if (err)
        return report_error(repair->path, "write", err);
    return print_conclusion(repair);
}

static struct repair options;
static struct files_options files;

static const struct option_rule rules[] = {
    FLAG_RULE("dry-run", 'n', &options.dry_run),
    FLAG_RULE("force", 0, &options.force),
    FILES_RULES(files),
    {NULL},
};

/* Returns true for FILE.cut-OFFSET, or such a name with a number, which save_tail() gives. */
static bool is_saved_tail(const char *path)
{
    const char *cut = strstr(path, ".cut-");
    return cut && !cut[strspn(cut, ".cut-0123456789")];
}

static int repair_file(struct file_task *task)
{
    if (task->is_optional && is_saved_tail(task->path)) {
        task->skipped = "bytes that lime repair has cut off";
        return TOOL_GOOD;
    }
    struct repair repair = options;
    repair.path = task->path;
    repair.task = task;
    task->members =
        json_pack("{s:b, s:[], s:i}", "dry_run", repair.dry_run, "changes", "lost_records", 0);
    int status = edit_open_locked(repair.path, repair.dry_run, &repair.fd);
    if (status != TOOL_GOOD)
        return status;
    limefile_fd_init(&repair.file, repair.fd);
    status = repair_opened(&repair);
    json_object_set_new(task->members, "lost_records", jsonout_integer(repair.lost_records));
    close(repair.fd);
    return status;
}

static int run_repair(int count, char **paths)
{
    const struct files_command command = {
        .command = &cmd_repair, .skips_others = true, .examine = repair_file};
    return files_command(&command, &files, count, paths);
}

const struct command cmd_repair = {
    "repair", "cut an unfinished end, correct flags", help, run_repair, rules, ANY_OPERANDS,
    NULL};
