/* cmd_verify.c - lime verify: let a mount (the daemon or its job) verify its records */
#define _GNU_SOURCE
#include "check.h"
#include "container.h"
#include "jsonout.h"
#include "limefile.h"
#include "limeildg.h"
#include "limeverdict.h"
#include "mounted_container.h"
#include "pathlist.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <limits.h>
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
    "Usage: lime verify [-q] [--json] FILE...\n"
    "Verify the data of records in a limefs mount. FILE is a record, or a directory:\n"
    "then all data records in it and below it, and the structure of each container.\n"
    "\n"
    "  -q, --quiet  print only what is not good\n"
    "      --json   print an object on a line for each record, for scripts\n"
    "      --help   print this text\n"
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

struct options {
    bool quiet, json;
    uint64_t records_seen; /* number of data records that were verified */
};

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

/* Prints the verdict, and the reason unless it is "". Returns the exit status. */
static int print_verdict(const struct options *o, const char *path,
                         enum limefile_verdict verdict, const char *reason)
{
    const char *word = limefile_verdict_word(verdict);
    if (o->json) {
        jsonout_print(stdout,
                      json_pack("{s:o, s:s, s:o*}", "file", jsonout_string(path), "verdict",
                                word, "reason", *reason ? jsonout_string(reason) : NULL));
        putchar('\n');
    } else if (!o->quiet || verdict != LIMEFILE_GOOD) {
        print_line(path, "%s%s%s", word, *reason ? ": " : "", reason);
    }
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
static int verify_record(struct options *o, const char *path, uint64_t bytes)
{
    struct verify_request request = {.path = path};
    pthread_t thread;
    o->records_seen++;
    if (pthread_create(&thread, NULL, request_verdict, &request) == 0)
        show_verify_progress(thread, path, bytes);
    else
        request_verdict(&request);
    if (request.len == -EBUSY || request.len == -ESTALE)
        return print_verdict(o, path, LIMEFILE_UNVERIFIED, "the record is being changed");
    if (request.len < 0)
        return print_verdict(o, path, LIMEFILE_UNREADABLE, limefile_strerror(request.len));
    char reason[VALUE_MAX];
    read_attribute(path, ATTR_REASON, reason);
    return print_verdict(o, path, parse_verdict(request.verdict), reason);
}

/* Prints the verdict on a container or a plain file unless the verdict is good or skipped. */
static int verify_structure(const struct options *o, const char *path)
{
    char reason[REASON_MAX];
    const struct check_options structure = {.data = false};
    struct check check = {.path = path, .options = &structure, .is_optional = true};
    check_file(&check);
    uint64_t bad = check.deviations + check.faults;
    int n = snprintf(reason, sizeof reason, "%s", check.error ? check.error : check.first_text);
    if (bad > 1 && !check.error)
        snprintf(reason + n, sizeof reason - (size_t)n, ", and %" PRIu64 " more", bad - 1);
    if (check.verdict == LIMEFILE_SKIPPED && gauge_check_damage(path, reason, sizeof reason))
        check.verdict = LIMEFILE_BAD;
    return check.verdict == LIMEFILE_GOOD || check.verdict == LIMEFILE_SKIPPED
               ? TOOL_GOOD
               : print_verdict(o, path, check.verdict, reason);
}

static int verify_directory(struct options *o, const char *path);

/* True if the file is in the directory of a mounted container. Attributes do not prove that:
 * even a copy of a record on another file system can have them. */
static bool is_mounted_record(const char *path)
{
    char *real = realpath(path, NULL);
    bool is_record = real && mounted_is_container(dirname(real));
    free(real);
    return is_record;
}

static int verify_path(struct options *o, const char *path)
{
    struct stat st;
    char value[VALUE_MAX];
    if (stat(path, &st) != 0) {
        message_code(path, "open", -errno);
        return TOOL_UNUSABLE;
    }
    if (S_ISDIR(st.st_mode))
        return verify_directory(o, path);
    if (!is_mounted_record(path)) {
        message(path, "not a record in a limefs mount; use 'lime check --data'");
        return TOOL_UNUSABLE;
    }
    if (read_attribute(path, ATTR_CHECKSUM, value) >= 0)
        return verify_record(o, path, (uint64_t)st.st_size);
    return print_verdict(o, path, LIMEFILE_UNVERIFIED, "the record is not the data of a field");
}

/* Where the files of a directory are: outside of mounts, in a mount but not in a container, or
 * in a container that a mount shows as this directory. */
enum location { OUTSIDE, IN_TREE, IN_CONTAINER };

struct verify_walk {
    struct options *o;
    char *directory; /* the argument of the latest find_location(), or NULL */
    size_t length;   /* of `directory` */
    enum location location;
    int worst;
};

/* Returns the location of the directory named by the first `length` bytes of path. */
static enum location find_location(struct verify_walk *walk, const char *path, size_t length)
{
    if (walk->directory && walk->length == length && memcmp(walk->directory, path, length) == 0)
        return walk->location;
    free(walk->directory);
    walk->directory = strndup(path, length);
    walk->length = length;
    const char *name = walk->directory ? walk->directory : "";
    walk->location = mounted_is_container(name) ? IN_CONTAINER
                     : is_in_limefs(name)       ? IN_TREE
                                                : OUTSIDE;
    return walk->location;
}

/* Verifies the data of a record, or the structure of a plain file in a mount. */
static int verify_file(struct verify_walk *walk, const struct walk_entry *entry)
{
    char value[VALUE_MAX];
    const char *slash = strrchr(entry->path, '/');
    size_t length = slash ? (size_t)(slash - entry->path) : 0;
    switch (find_location(walk, entry->path, length + (length == 0))) {
    case IN_CONTAINER: /* print nothing for records without data: there may be a million */
        return read_attribute(entry->path, ATTR_CHECKSUM, value) == -ENODATA
                   ? TOOL_GOOD
                   : verify_record(walk->o, entry->path, (uint64_t)entry->st->st_size);
    case IN_TREE:
        return verify_structure(walk->o, entry->path);
    case OUTSIDE:
        break;
    }
    return TOOL_GOOD;
}

static bool verify_entry(void *context, const struct walk_entry *entry)
{
    struct verify_walk *walk = context;
    int status = TOOL_GOOD;
    if (entry->kind == WALK_ERROR)
        status = print_verdict(walk->o, entry->path, LIMEFILE_UNREADABLE,
                               limefile_strerror(-entry->error));
    else if (entry->kind == WALK_DIRECTORY &&
             find_location(walk, entry->path, strlen(entry->path)) == IN_CONTAINER)
        status = verify_structure(walk->o, entry->path);
    else if (entry->kind == WALK_FILE)
        status = verify_file(walk, entry);
    walk->worst = worse_status(status, walk->worst);
    return true;
}

/* Returns true for the temporary file of a command, if limefs shows it as a directory. */
static bool is_temporary(const char *directory)
{
    const char *slash = strrchr(directory, '/');
    return walk_is_temporary(slash ? slash + 1 : directory);
}

static int verify_directory(struct options *o, const char *path)
{
    struct verify_walk walk = {.o = o};
    if (!walk_tree(path, is_temporary, verify_entry, &walk))
        walk.worst = TOOL_UNUSABLE;
    free(walk.directory);
    return walk.worst;
}

/* Reports that no data were verified. This is not good, because the mount may be missing. */
static int report_no_data(const struct options *o, const char *directory)
{
    if (is_in_limefs(directory))
        return print_verdict(o, directory, LIMEFILE_UNVERIFIED,
                             "no record with data to verify");
    message(directory, "not in a limefs mount; use 'lime check --data -r'");
    return TOOL_UNUSABLE;
}

static int verify_named(struct options *o, const char *path)
{
    uint64_t before = o->records_seen;
    int status = verify_path(o, path);
    return status == TOOL_GOOD && o->records_seen == before ? report_no_data(o, path) : status;
}

static struct options options;

static const struct option_rule rules[] = {
    FLAG_RULE("quiet", 'q', &options.quiet),
    FLAG_RULE("json", 0, &options.json),
    {NULL},
};

static int run_verify(int count, char **paths)
{
    int worst = TOOL_GOOD;
    for (int i = 0; i < count; i++)
        worst = worse_status(verify_named(&options, paths[i]), worst);
    return worst;
}

const struct command cmd_verify = {"verify", "verify records of a mount",   help, run_verify,
                                   rules,    {"no FILE given", 1, INT_MAX}, NULL};
