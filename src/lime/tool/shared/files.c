/* files.c - run a command on many files: options, order, JSON, summary line, exit status */
#define _GNU_SOURCE
#include "files.h"
#include "container.h"
#include "limedetect.h"
#include "limefile.h"
#include "mounted_container.h"
#include "parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct files_run {
    const struct files_command *command;
    const struct files_options *options;
    struct pathlist list;
    char *results; /* of all files, in memory shared with the child processes */
};

void file_json_begin(struct file_task *task, json_t *members)
{
    json_t *head = json_pack("{s:o}", "file", jsonout_string(task->path));
    json_object_update(head, members);
    json_decref(members);
    jsonout_members("{", head, "");
    task->has_begun = true;
}

/* Prints what is left of the file's JSON object. */
static void end_file_json(struct file_task *task, enum limefile_verdict verdict)
{
    if (!task->has_begun)
        file_json_begin(task, task->members);
    const char *error = task->skipped      ? task->skipped
                        : task->up_to_date ? task->up_to_date
                                           : task->error;
    json_t *end = json_pack("{s:s, s:o}", "status", limefile_verdict_word(verdict), "error",
                            jsonout_string_or_null(verdict == LIMEFILE_GOOD ? NULL : error));
    jsonout_members(", ", end, "}\n");
}

/* ---- one file ---- */

bool file_is_other(const char *path, bool with_formats)
{
    struct limefile_finding finding;
    struct limefile_fd file;
    int fd = limefile_open(path, O_RDONLY);
    if (fd < 0)
        return false;
    limefile_fd_init(&file, fd);
    bool is_other = !(with_formats && container_detect_format(&file.source)) &&
                    limefile_detect_container(&file.source, &finding) == 0;
    close(fd);
    return is_other;
}

/* Returns true for a directory that no mount shows as a container, and false if that is not
 * known, because the user may not read the container. */
static bool is_plain_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && !mounted_is_container(path) &&
           errno != EACCES;
}

/* Examines the file, unless its kind or an error of the list rules that out. */
static int examine_item(const struct files_run *run, const struct pathlist_item *item,
                        struct file_task *task)
{
    task->skipped = item->skipped;
    if (!task->skipped && item->is_optional && run->command->skips_others &&
        file_is_other(item->path, run->command->reads_formats))
        task->skipped = "not a LIME container";
    if (item->error)
        message_code(item->path, "read", -item->error);
    else if (!task->skipped && !item->is_optional && is_plain_directory(item->path))
        message(item->path, "open: Is a directory; use -r for the files in it");
    else
        return task->skipped ? TOOL_GOOD : run->command->examine(task);
    return TOOL_UNUSABLE;
}

static enum limefile_verdict process_file(void *context, const struct pathlist_item *item,
                                          unsigned threads)
{
    const struct files_run *run = context;
    struct progress progress;
    size_t index = (size_t)(item - run->list.items);
    struct file_task task = {
        .path = item->path,
        .index = index,
        .threads = threads,
        .json = run->options->json,
        .several = run->list.open_ended || run->list.count > 1,
        .is_optional = item->is_optional,
        .result = run->results + index * run->command->result_bytes,
    };
    if (run->list.count == 1) {
        progress_begin(&progress, run->command->command->name, item->size);
        task.progress = &progress;
    }
    message_forget();
    int status = examine_item(run, item, &task);
    if (task.progress)
        progress_end(&progress);
    if (!*task.error)
        snprintf(task.error, sizeof task.error, "%s", message_first());
    bool is_skipped = task.skipped || task.up_to_date;
    enum limefile_verdict verdict = is_skipped ? LIMEFILE_SKIPPED : status_verdict(status);
    if (task.json && (!task.skipped || run->options->list_skipped))
        end_file_json(&task, verdict);
    else
        json_decref(task.members);
    if (!task.json && task.skipped && run->options->list_skipped)
        print_line(task.path, "skipped: %s", task.skipped);
    return verdict;
}

static void print_crashed_file(void *context, const struct pathlist_item *item, const char *why)
{
    const struct files_run *run = context;
    struct file_task task = {.path = item->path};
    snprintf(task.error, sizeof task.error, "%s", why);
    if (run->options->json)
        end_file_json(&task, LIMEFILE_UNREADABLE);
}

/* ---- all files ---- */

static const enum limefile_verdict summary_order[] = {
    LIMEFILE_GOOD, LIMEFILE_BAD, LIMEFILE_UNVERIFIED, LIMEFILE_UNREADABLE, LIMEFILE_SKIPPED};
enum { VERDICTS = sizeof summary_order / sizeof summary_order[0] };

const char *files_format_summary(uint64_t count, const uint64_t *verdicts,
                                 char text[SUMMARY_MAX])
{
    size_t used =
        (size_t)snprintf(text, SUMMARY_MAX, "%" PRIu64 " file%s:", count, plural(count));
    for (size_t i = 0; i < VERDICTS; i++)
        used += (size_t)snprintf(text + used, SUMMARY_MAX - used, "%s %" PRIu64 " %s",
                                 i ? "," : "", verdicts[summary_order[i]],
                                 limefile_verdict_word(summary_order[i]));
    return text;
}

static void print_summary(const struct files_run *run, const uint64_t *verdicts,
                          const char *more)
{
    char text[SUMMARY_MAX];
    files_format_summary(run->list.count, verdicts, text);
    if (run->command->prints_table)
        message(NULL, "%s%s", text, more);
    else
        print_line(NULL, "%s%s", text, more);
}

json_t *files_summary_json(uint64_t count, const uint64_t *verdicts)
{
    json_t *summary = json_pack("{s:o}", "files", jsonout_integer(count));
    for (size_t i = 0; i < VERDICTS; i++)
        json_object_set_new(summary, limefile_verdict_word(summary_order[i]),
                            jsonout_integer(verdicts[summary_order[i]]));
    return summary;
}

static void conclude(const struct files_run *run, const struct parallel *parallel)
{
    const struct files_results results = {&run->list, run->results, parallel->verdicts, false};
    const struct files_options *o = run->options;
    char text[SUMMARY_MAX] = "";
    json_t *json = o->json ? files_summary_json(run->list.count, parallel->verdicts) : NULL;
    if (run->command->conclude)
        run->command->conclude(&results, json, text);
    if (o->json && run->list.open_ended) {
        jsonout_print(stdout, json_pack("{s:O}", "summary", json));
        putchar('\n');
    } else if (!o->json && !o->quiet && (run->list.open_ended || run->list.count > 1)) {
        if (parallel->has_printed && run->command->separator)
            fputs(run->command->separator, stdout);
        print_summary(run, parallel->verdicts, text);
    }
    json_decref(json);
}

/* Prints what was done before the signal, and ends the process by it. */
static void conclude_interrupted(const struct files_run *run, const struct parallel *parallel)
{
    const struct files_results results = {&run->list, run->results, parallel->verdicts, true};
    char text[SUMMARY_MAX] = "";
    uint64_t done = 0;
    for (size_t i = 0; i < VERDICTS; i++)
        done += parallel->verdicts[summary_order[i]];
    if (run->command->continues)
        run->command->conclude(&results, NULL, text);
    finish_stdout();
    files_format_summary(done, parallel->verdicts, text);
    message(NULL, "interrupted; %s, %" PRIu64 " not examined%s", text, run->list.count - done,
            run->command->continues ? "; repeat the command to continue" : "");
    signal(parallel->interrupted, SIG_DFL);
    raise(parallel->interrupted);
}

static int process_list(struct files_run *run)
{
    const struct files_options *o = run->options;
    size_t bytes = (run->list.count + 1) * (run->command->result_bytes + 1);
    struct parallel parallel = {
        .list = &run->list,
        .processors = o->jobs,
        .is_io_bound = o->jobs == 0 && run->command->is_io_bound,
        .in_process = run->command->in_process,
        .is_quiet = o->quiet,
        .action = run->command->command->name,
        .separator = o->json ? NULL : run->command->separator,
        .context = run,
        .work = process_file,
        .print_crash = print_crashed_file,
    };
    run->results = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run->results == MAP_FAILED)
        return report_error(parallel.action, "begin", -errno);
    headings_are_bold(); /* decides this before children redirect stdout */
    int status = parallel_run(&parallel);
    if (parallel.interrupted)
        conclude_interrupted(run, &parallel);
    else
        conclude(run, &parallel);
    munmap(run->results, bytes);
    return status;
}

int files_command(const struct files_command *command, const struct files_options *o, int count,
                  char **operands)
{
    struct files_run run = {.command = command, .options = o};
    struct pathlist_options paths = o->paths;
    paths.all = true;
    int status = pathlist_init(&run.list, &paths, command->command, count, operands);
    if (!status && command->prepare)
        status = command->prepare(&run.list);
    run.list.open_ended |= command->is_open_ended;
    if (!status)
        status = process_list(&run);
    pathlist_release(&run.list);
    return status;
}
