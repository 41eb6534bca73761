/* cmd_verify.c - lime verify: let a mount (the daemon or its job) verify its records */
#define _GNU_SOURCE
#include "check.h"
#include "container.h"
#include "files.h"
#include "limefile.h"
#include "limeildg.h"
#include "limeverdict.h"
#include "mounted_container.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime verify [OPTION]... FILE...\n"
    "       lime verify [OPTION]... --files-from LIST [-0]\n"
    "Verify the data of records in a limefs mount. FILE is a record, or a directory:\n"
    "then all data records in it and below it, and the structure of each container.\n"
    "\n" FILES_HELP "\n"
    "-r is not needed. By default one file is verified at a time, as the mount uses\n"
    "all its processors for it.\n"
    "\n"
    "The verdict on a record is good, bad, unverified or unreadable, with a reason.\n"
    "Data are compared with their SciDAC checksum; those of a NERSC, MILC or openQCD\n"
    "file, with the checksum, plaquette and link trace in its header. A container\n"
    "or a file in another format is bad if it is damaged, for example cut short.\n"
    "\n"
    "The mount reads the data, with the ranks of its job if it has one (-o ranks=N,\n"
    "-o job=SOCKET). It keeps the verdict until the container changes:\n"
    "'getfattr -n user.lime.checksum FILE' shows it. 'lime check --data' verifies\n"
    "containers that are not mounted.\n"
    "\n"
    "Example: lime verify /mnt/cfg && solver /mnt/cfg/ildg-binary-data\n"
    "\n"
    "Exit status, the worst of all records: 0 good; 3 data without a checksum that\n"
    "can be compared, or no data; 1 something is bad; 2 something cannot be read,\n"
    "FILE is not in a limefs mount, or wrong usage.\n";

/* The daemon's attributes; see limefs(1). */
#define ATTR_CHECKSUM  "user.lime.checksum"
#define ATTR_REASON    "user.lime.reason"
#define ATTR_VERIFY    "user.lime.verify"
#define ATTR_VERIFYING "user.lime.verifying"

enum {
    VALUE_MAX = 512,
    REASON_MAX = 640,
    POLL_MS = 200, /* interval between reads of ATTR_VERIFYING */
};

static const char no_data[] = "no record with data to verify";

/* Reads the attribute as a string. Returns its length, or -errno. */
static int read_attribute(const char *path, const char *name, char value[VALUE_MAX])
{
    ssize_t len = getxattr(path, name, value, VALUE_MAX - 1);
    value[len < 0 ? 0 : len] = '\0';
    return len < 0 ? -errno : (int)len;
}

struct verify_request {
    const char *path;
    int len; /* of the verdict, or -errno */
    char verdict[VALUE_MAX];
};

static void *request_verdict(void *context)
{
    struct verify_request *request = context;
    request->len = read_attribute(request->path, ATTR_VERIFY, request->verdict);
    return NULL;
}

/* Shows progress until the thread ends, and joins it. bytes: the record's length. */
static void show_verify_progress(pthread_t thread, const char *path, uint64_t bytes)
{
    struct progress progress;
    char value[VALUE_MAX];
    uint64_t done;
    progress_begin(&progress, "verify", bytes);
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT)
            break;
        int len = progress.is_shown ? read_attribute(path, ATTR_VERIFYING, value) : 0;
        if (len > 0 && limefile_parse_number(value, (size_t)len, &done))
            progress_to(&progress, done);
    }
    progress_end(&progress);
}

/* Prints the verdict on a record of the task's file or on the file, and the reason unless it is
 * "". Returns the exit status. */
static int report_verdict(struct file_task *task, const char *path,
                          enum limefile_verdict verdict, const char *reason)
{
    const char *word = limefile_verdict_word(verdict), *slash = strrchr(path, '/');
    if (!*task->error)
        snprintf(task->error, sizeof task->error, "%s", reason);
    if (task->json)
        json_array_append_new(
            json_object_get(task->members, "records"),
            json_pack("{s:o, s:s, s:o}", "name",
                      jsonout_string_or_null(path == task->path ? NULL : slash + 1), "status",
                      word, "error", jsonout_string_or_null(reason)));
    else
        print_line(path, "%s%s%s", word, *reason ? ": " : "", reason);
    return verdict_status(verdict);
}

static enum limefile_verdict parse_verdict(const char *word)
{
    for (enum limefile_verdict v = LIMEFILE_GOOD; v < LIMEFILE_UNREADABLE; v++)
        if (strcmp(word, limefile_verdict_word(v)) == 0)
            return v;
    return LIMEFILE_UNREADABLE;
}

/* Lets the mount verify a record of `bytes` bytes, and prints its verdict. */
static int verify_record(struct file_task *task, const char *path, uint64_t bytes)
{
    struct verify_request request = {.path = path};
    pthread_t thread;
    if (pthread_create(&thread, NULL, request_verdict, &request) == 0)
        show_verify_progress(thread, path, bytes);
    else
        request_verdict(&request);
    if (request.len == -EBUSY || request.len == -ESTALE)
        return report_verdict(task, path, LIMEFILE_UNVERIFIED, "the record is being changed");
    if (request.len < 0)
        return report_verdict(task, path, LIMEFILE_UNREADABLE, limefile_strerror(request.len));
    char reason[VALUE_MAX];
    read_attribute(path, ATTR_REASON, reason);
    return report_verdict(task, path, parse_verdict(request.verdict), reason);
}

static const char not_mounted[] =
    "a file in another format; -o formats mounts it as a container";

/* Examines the structure of a container or a plain file. Prints the verdict if it is not good.
 * Skips a file that was found in a directory and is neither a container nor a damaged file of
 * another format. */
static int verify_structure(struct file_task *task)
{
    char reason[REASON_MAX];
    const struct check_options structure = {.data = false};
    struct check check = {
        .path = task->path, .options = &structure, .is_optional = task->is_optional};
    check_file(&check);
    uint64_t bad = check.deviations + check.faults;
    int n = snprintf(reason, sizeof reason, "%s", check.error ? check.error : check.first_text);
    if (bad > 1 && !check.error)
        snprintf(reason + n, sizeof reason - (size_t)n, ", and %" PRIu64 " more", bad - 1);
    if (check.verdict == LIMEFILE_SKIPPED)
        task->skipped = check.skipped;
    else if (check.verdict == LIMEFILE_GOOD && check.format &&
             !mounted_is_container(task->path)) {
        if (!task->is_optional)
            return report_verdict(task, task->path, LIMEFILE_UNREADABLE, not_mounted);
        task->skipped = not_mounted;
    }
    return check.verdict == LIMEFILE_GOOD || check.verdict == LIMEFILE_SKIPPED
               ? TOOL_GOOD
               : report_verdict(task, task->path, check.verdict, reason);
}

/* The directory of a container whose records are verified. */
struct verify_directory {
    struct file_task *task;
    uint64_t records; /* number of data records seen */
    int worst;
};

/* Verifies an entry of the directory if it is a data record. Returns 0. */
static int verify_entry(void *context, const char *name)
{
    struct verify_directory *directory = context;
    struct file_task *task = directory->task;
    struct stat st;
    char *path, value[VALUE_MAX];
    if (asprintf(&path, "%s%s%s", task->path,
                 task->path[strlen(task->path) - 1] == '/' ? "" : "/", name) < 0)
        return -ENOMEM;
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
        read_attribute(path, ATTR_CHECKSUM, value) != -ENODATA) {
        int status = verify_record(task, path, (uint64_t)st.st_size);
        directory->worst = worse_status(status, directory->worst);
        directory->records++;
    }
    free(path);
    return 0;
}

static int verify_container(struct file_task *task)
{
    struct verify_directory directory = {task, 0, verify_structure(task)};
    int err = directory_each(AT_FDCWD, task->path, 0, verify_entry, &directory);
    if (err)
        return worse_status(
            directory.worst,
            report_verdict(task, task->path, LIMEFILE_UNREADABLE, limefile_strerror(err)));
    if (directory.records || directory.worst != TOOL_GOOD)
        return directory.worst;
    return report_verdict(task, task->path, LIMEFILE_UNVERIFIED, no_data);
}

/* Returns the directory of the file; the caller frees it. NULL: the file does not exist. */
static char *find_directory(const char *path)
{
    char *real = realpath(path, NULL), *directory = real ? strdup(dirname(real)) : NULL;
    free(real);
    return directory;
}

static int verify_file(struct file_task *task, const char *directory)
{
    struct stat st;
    char value[VALUE_MAX];
    /* Attributes do not prove that a file is a record: even a copy elsewhere can have them. */
    bool is_record = mounted_is_container(directory);
    if (stat(task->path, &st) != 0) {
        message_code(task->path, "open", -errno);
        return TOOL_UNUSABLE;
    }
    if (!is_record && is_in_limefs(directory) &&
        (task->is_optional || !file_is_other(task->path, true)))
        return verify_structure(task);
    if (!is_record && task->is_optional) {
        task->skipped = "not in a limefs mount";
        return TOOL_GOOD;
    }
    if (!is_record) {
        message(task->path, "not a record in a limefs mount; use 'lime check --data'");
        return TOOL_UNUSABLE;
    }
    if (read_attribute(task->path, ATTR_CHECKSUM, value) >= 0)
        return verify_record(task, task->path, (uint64_t)st.st_size);
    return report_verdict(task, task->path, LIMEFILE_UNVERIFIED,
                          "the record is not the data of a field");
}

static int verify_task(struct file_task *task)
{
    task->members = json_pack("{s:[]}", "records");
    if (mounted_is_container(task->path))
        return verify_container(task);
    char *directory = find_directory(task->path);
    int status = verify_file(task, directory ? directory : "");
    free(directory);
    return status;
}

static struct files_options files;
static bool has_files;    /* the list is not empty */
static bool has_verified; /* some file was not skipped */
static bool is_mounted;   /* the first file is in a limefs mount */

static void note_verified(const struct files_results *results, json_t *summary,
                          char text[SUMMARY_MAX])
{
    (void)summary, (void)text;
    has_files = results->list->count > 0;
    has_verified = results->verdicts[LIMEFILE_SKIPPED] < results->list->count;
    is_mounted = has_files && is_in_limefs(results->list->items[0].path);
}

static const struct option_rule rules[] = {
    FILES_RULES(files),
    {NULL},
};

static int run_verify(int count, char **paths)
{
    const struct files_command command = {
        .command = &cmd_verify, .examine = verify_task, .conclude = note_verified};
    struct stat st;
    for (int i = 0; i < count; i++) /* a directory always means the tree below it */
        if (stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode) && !mounted_is_container(paths[i]))
            files.paths.recursive = true;
    files.jobs = files.jobs ? files.jobs : 1;
    int status = files_command(&command, &files, count, paths);
    if (status != TOOL_GOOD || has_verified || (count == 0 && !has_files))
        return status;
    /* Not good, because the mount may be missing. */
    message(count > 0 ? paths[0] : NULL, "%s",
            is_mounted
                ? no_data
                : "nothing was verified: not in a limefs mount; mount it with limefs, or "
                  "use 'lime check --data -r'");
    return is_mounted ? TOOL_UNVERIFIED : TOOL_UNUSABLE;
}

const struct command cmd_verify = {
    "verify", "verify records of a mount", help, run_verify, rules, ANY_OPERANDS, NULL};
