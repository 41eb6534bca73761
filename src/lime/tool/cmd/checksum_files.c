/* checksum_files.c - write lists of the sums of files, and verify files by such lists */
#define _GNU_SOURCE
#include "checksum_files.h"
#include "container.h"
#include "mounted_container.h"
#include "sums_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The command that is running. */
static struct {
    struct sums_output output; /* --write */
    enum stage_sum_kind kind;
    struct sums_list list; /* --verify */
    struct stat list_stat;
    int status; /* of the list */
    char **paths;
    size_t count, capacity; /* of `paths` */
} run;

/* Reads a file once, or the file that a mount shows as a container. Returns an exit status. */
static int compute_file_sums(struct file_task *task, unsigned kinds, struct stage_digest *out)
{
    char *file = mounted_is_container(task->path) ? mounted_file(task->path) : NULL;
    int fd = open_or_report(file ? file : task->path, O_RDONLY);
    free(file);
    if (fd < 0)
        return TOOL_UNUSABLE;
    int err = 0;
    if (run.output.name && limefile_output_is_target(&run.output.file, fd))
        task->skipped = "the list of sums";
    else
        err = stage_sums_file(fd, kinds, progress_count, task->progress, out);
    close(fd);
    if (err == -ESTALE)
        message(task->path, "read: the file has more bytes than its size");
    else if (err)
        message_code(task->path, "read", err);
    return err ? TOOL_UNUSABLE : TOOL_GOOD;
}

static const char *kind_word(enum stage_sum_kind kind)
{
    return sum_words[__builtin_ctz(kind)];
}

/* ---- --write ---- */

static int examine_to_write(struct file_task *task)
{
    struct stage_digest digest;
    char *sum = task->result;
    int status = compute_file_sums(task, run.kind, &digest);
    if (status || task->skipped)
        return status;
    stage_digest_format(&digest, run.kind, sum);
    if (task->json)
        task->members = json_pack("{s:o, s:s, s:s}", "bytes", jsonout_integer(digest.bytes),
                                  "kind", kind_word(run.kind), "sum", sum);
    else if (!run.output.is_stdout)
        print_line(NULL, "%s  %s", sum, task->path);
    return TOOL_GOOD;
}

static void write_list(const struct files_results *results, json_t *summary,
                       char text[SUMMARY_MAX])
{
    for (size_t i = 0; i < results->list->count; i++) {
        const char *sum = results->result + i * STAGE_SUM_CHARS;
        if (*sum && !sums_output_set(&run.output, results->list->items[i].path, run.kind, sum))
            run.status = TOOL_BAD;
    }
    int status = sums_output_commit(&run.output);
    run.status = worse_status(run.status, status);
    if (summary && !status)
        json_object_set_new(summary, "list", jsonout_string(run.output.name));
    else if (!status && !run.output.is_stdout)
        snprintf(text, SUMMARY_MAX, "; see %s", run.output.name);
}

int checksum_files_write(const struct command *command, const struct files_options *options,
                         const char *name, enum stage_sum_kind kind, bool force, int count,
                         char **operands)
{
    const struct files_command task = {.command = command,
                                       .is_io_bound = true,
                                       .prints_table = strcmp(name, "-") == 0,
                                       .result_bytes = STAGE_SUM_CHARS,
                                       .examine = examine_to_write,
                                       .conclude = write_list};
    run.kind = kind;
    int status = sums_output_open(&run.output, name, false, force);
    if (!status)
        status = files_command(&task, options, count, operands);
    return worse_status(status, run.status);
}

/* ---- --verify ---- */

/* Compares the digest with all sums of the file in the list, the entries from sorted[first] on.
 * Returns an exit status. */
static int compare_listed_sums(struct file_task *task, const struct stage_digest *digest,
                               size_t first, size_t count)
{
    char found[STAGE_SUM_CHARS];
    for (size_t i = first; i < first + count; i++) {
        const struct sums_entry *entry = &run.list.entries[run.list.sorted[i]];
        stage_digest_format(digest, entry->kind, found);
        bool matches = strcmp(found, entry->sum) == 0;
        if (task->json && (!matches || i == first)) {
            json_decref(task->members);
            task->members =
                json_pack("{s:o, s:s, s:s, s:s}", "bytes", jsonout_integer(digest->bytes),
                          "kind", kind_word(entry->kind), "sum", found, "listed", entry->sum);
        }
        if (!matches) {
            message(task->path, "the %s is %s, the list has %s", kind_word(entry->kind), found,
                    entry->sum);
            return TOOL_BAD;
        }
    }
    return TOOL_GOOD;
}

static int examine_to_verify(struct file_task *task)
{
    struct stage_digest digest;
    unsigned kinds = 0;
    size_t first, count = sums_list_find(&run.list, task->path, &first);
    if (!count)
        task->skipped = "not in the list";
    if (task->skipped)
        return TOOL_GOOD;
    for (size_t i = first; i < first + count; i++)
        kinds |= run.list.entries[run.list.sorted[i]].kind;
    int status = compute_file_sums(task, kinds, &digest);
    if (!status)
        status = compare_listed_sums(task, &digest, first, count);
    if (!task->json)
        print_line(task->path, "%s",
                   status == TOOL_GOOD  ? "good"
                   : status == TOOL_BAD ? "bad"
                                        : "unreadable");
    return status;
}

/* Takes ownership of `path`. */
static bool add_verify_path(char *path)
{
    if (path && limefile_reserve(&run.paths, &run.capacity, run.count + 1, sizeof *run.paths)) {
        run.paths[run.count++] = path;
        return true;
    }
    free(path);
    report_error("checksum", "list", -ENOMEM);
    return false;
}

/* Adds a file that the list does not name, so that it is counted. */
static bool add_unlisted_file(void *context, const struct walk_entry *entry)
{
    (void)context;
    size_t first;
    if (entry->kind == WALK_ERROR) {
        message_code(entry->path, "read", -entry->error);
        run.status = TOOL_UNUSABLE;
    }
    bool is_list = entry->st && entry->st->st_dev == run.list_stat.st_dev &&
                   entry->st->st_ino == run.list_stat.st_ino;
    bool is_file = entry->kind == WALK_FILE || entry->kind == WALK_OPAQUE;
    return !is_file || is_list || sums_list_find(&run.list, entry->path, &first) ||
           add_verify_path(strdup(entry->path));
}

/* Fills run.paths: each file of the list once, then files below `directory`, unless NULL. */
static bool list_paths_to_verify(const char *directory)
{
    bool good = true;
    for (size_t i = 0; good && i < run.list.count; i++) {
        const char *path = run.list.entries[i].path;
        size_t first;
        sums_list_find(&run.list, path, &first);
        if (run.list.sorted[first] == i)
            good = add_verify_path(strdup(path));
    }
    return good &&
           (!directory || walk_tree(directory, mounted_is_container, add_unlisted_file, NULL));
}

int checksum_files_verify(const struct command *command, const struct files_options *options,
                          const char *name, const char *directory)
{
    const struct files_command task = {.command = command,
                                       .is_io_bound = true,
                                       .is_open_ended = true,
                                       .examine = examine_to_verify};
    const char *slash = strrchr(name, '/');
    struct stat st;
    char *own = strndup(name, slash ? (size_t)(slash - name) + 1 : 0);
    int status = own ? sums_list_read(&run.list, name) : report_error(name, "read", -ENOMEM);
    stat(name, &run.list_stat);
    int err = !directory                  ? 0
              : stat(directory, &st) != 0 ? -errno
              : !S_ISDIR(st.st_mode)      ? -ENOTDIR
                                          : 0;
    if (err) {
        message_code(directory, "open", err);
        status = TOOL_UNUSABLE;
    } else if (run.list.count &&
               sums_list_resolve(&run.list, directory ? directory : own, directory) &&
               list_paths_to_verify(directory))
        status = worse_status(status, files_command(&task, options, (int)run.count, run.paths));
    else
        status = worse_status(status, TOOL_BAD);
    for (size_t i = 0; i < run.count; i++)
        free(run.paths[i]);
    free(run.paths);
    sums_list_release(&run.list);
    free(own);
    return worse_status(status, run.status);
}
