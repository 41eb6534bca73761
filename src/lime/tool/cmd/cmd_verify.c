/* cmd_verify.c - lime verify: has a mount verify its records; the daemon, or its job, reads */
#define _GNU_SOURCE
#include "jsonout.h"
#include "nameorder.h"
#include "progress.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime verify [-q] [--json] FILE...\n"
    "Verify records of a limefs mount by their SciDAC checksums. FILE is a record,\n"
    "or a folder: then all records in it, and below it, that have a checksum.\n"
    "\n"
    "  -q, --quiet  say nothing of what is right\n"
    "      --json   for scripts: an object on a line for each record\n"
    "      --help   this text\n"
    "\n"
    "The mount's job reads and sums, where it has one (-o ranks=N, -o job=SOCKET):\n"
    "each rank its share. What was found is remembered until the container changes:\n"
    "'getfattr -n user.lime.checksum FILE' tells it. 'lime check --data' verifies\n"
    "containers that are not mounted.\n"
    "\n"
    "A record whose checksum cannot be compared is 'unverified', with the reason:\n"
    "nothing says how many bytes a site has, for example.\n"
    "\n"
    "Example: lime verify /mnt/cfg && solver /mnt/cfg/ildg-binary-data\n"
    "\n"
    "Exit status, the worst of all: 0 right; 1 a record is bad, unverified, cannot\n"
    "be read, or has no checksum although it is named; 2 FILE is in no limefs mount,\n"
    "or wrong usage.\n";

/* As the daemon has them; see limefs(1). */
#define ATTR_TYPE      "user.lime.type"
#define ATTR_CHECKSUM  "user.lime.checksum"
#define ATTR_REASON    "user.lime.reason"
#define ATTR_VERIFY    "user.lime.verify"
#define ATTR_VERIFYING "user.lime.verifying"

enum {
    VALUE_MAX = 128,
    LOOK_MS = 200, /* at how far it is */
};

struct options {
    bool quiet, json;
    uint64_t seen; /* records with a checksum */
};

/* The attribute as a string: its length, or -errno. */
static int attribute(const char *path, const char *name, char value[VALUE_MAX])
{
    ssize_t len = getxattr(path, name, value, VALUE_MAX - 1);
    value[len < 0 ? 0 : len] = '\0';
    return len < 0 ? -errno : (int)len;
}

/* ---- one record ---- */

struct asking {
    const char *path;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool done;
    int len;
    char verdict[VALUE_MAX];
};

static void *ask(void *context)
{
    struct asking *asking = context;
    char verdict[VALUE_MAX];
    int len = attribute(asking->path, ATTR_VERIFY, verdict);
    pthread_mutex_lock(&asking->lock);
    asking->len = len;
    memcpy(asking->verdict, verdict, sizeof verdict);
    asking->done = true;
    pthread_cond_signal(&asking->answered);
    pthread_mutex_unlock(&asking->lock);
    return NULL;
}

static void look(const char *path, struct progress *progress)
{
    char value[VALUE_MAX];
    uint64_t done;
    int len = attribute(path, ATTR_VERIFYING, value);
    if (len > 0 && number_parse(value, (size_t)len, &done))
        progress_to(progress, done);
}

/* Until there is an answer. */
static void watch(struct asking *asking, uint64_t bytes)
{
    struct progress progress;
    progress_begin(&progress, "verify", bytes);
    pthread_mutex_lock(&asking->lock);
    while (!asking->done) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&asking->answered, &asking->lock, &until) == ETIMEDOUT &&
            progress.wanted) {
            pthread_mutex_unlock(&asking->lock);
            look(asking->path, &progress);
            pthread_mutex_lock(&asking->lock);
        }
    }
    pthread_mutex_unlock(&asking->lock);
    progress_end(&progress);
}

/* reason: "" if the sum tells */
static void print(const struct options *o, const char *path, const char *verdict,
                  const char *reason)
{
    if (o->json) {
        fputs("{\"file\": ", stdout);
        jsonout_text(stdout, path, strlen(path));
        fputs(", \"checksum\": ", stdout);
        jsonout_text(stdout, verdict, strlen(verdict));
        if (*reason) {
            fputs(", \"reason\": ", stdout);
            jsonout_text(stdout, reason, strlen(reason));
        }
        puts("}");
    } else if (!o->quiet || strcmp(verdict, "ok") != 0) {
        answer(path, "%s%s%s", verdict, *reason ? ": " : "", reason);
    }
}

static int verify_record(struct options *o, const char *path, uint64_t bytes)
{
    struct asking asking = {
        .path = path, .lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    o->seen++;
    if (pthread_create(&thread, NULL, ask, &asking) == 0) {
        watch(&asking, bytes);
        pthread_join(thread, NULL);
    } else {
        ask(&asking);
    }
    if (asking.len < 0) {
        message_code(path, "verify", asking.len);
        if (!o->quiet)
            print(o, path, "unverified", "");
        return TOOL_BAD;
    }
    char reason[VALUE_MAX];
    attribute(path, ATTR_REASON, reason);
    print(o, path, asking.verdict, reason);
    return strcmp(asking.verdict, "ok") == 0 ? TOOL_GOOD : TOOL_BAD;
}

/* ---- what is named ---- */

static int has_no_checksum(const char *path)
{
    char value[VALUE_MAX];
    if (attribute(path, ATTR_TYPE, value) >= 0) {
        message(path, "verify: the record has no checksum; 'lime info' tells more of the "
                      "container");
        return TOOL_BAD;
    }
    message(path, "verify: not a record of a limefs mount; 'lime check --data' verifies "
                  "containers");
    return TOOL_UNUSABLE;
}

static int verify_folder(struct options *o, const char *path);

static int verify_path(struct options *o, const char *path)
{
    struct stat st;
    char value[VALUE_MAX];
    if (stat(path, &st) != 0) {
        message_code(path, "verify", -errno);
        return TOOL_UNUSABLE;
    }
    if (S_ISDIR(st.st_mode))
        return verify_folder(o, path);
    if (S_ISREG(st.st_mode) && attribute(path, ATTR_CHECKSUM, value) >= 0)
        return verify_record(o, path, (uint64_t)st.st_size);
    return has_no_checksum(path);
}

/* ---- folders ---- */

struct names {
    char **name;
    size_t count, capacity;
};

static int add_name(struct names *names, const char *name)
{
    if (names->count == names->capacity) {
        size_t more = names->capacity + names->capacity / 2 + 16;
        void *bigger = reallocarray(names->name, more, sizeof *names->name);
        if (!bigger)
            return -ENOMEM;
        names->name = bigger;
        names->capacity = more;
    }
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    names->name[names->count++] = copy;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return name_compare(*(char *const *)a, *(char *const *)b);
}

static char *inside(const char *folder, const char *name)
{
    char *path;
    bool slash = folder[0] && folder[strlen(folder) - 1] == '/';
    return asprintf(&path, "%s%s%s", folder, slash ? "" : "/", name) < 0 ? NULL : path;
}

/* True of what is neither a folder nor a record with a checksum: there may be a million. */
static bool is_passed_over(const char *path, unsigned char type)
{
    struct stat st;
    char value[VALUE_MAX];
    if (type == DT_UNKNOWN && lstat(path, &st) == 0)
        type = IFTODT(st.st_mode);
    if (type != DT_REG)
        return type != DT_DIR && type != DT_UNKNOWN;
    int len = attribute(path, ATTR_CHECKSUM, value);
    return len == -ENODATA || len == -ENOTSUP;
}

static int take_entry(struct names *names, const char *folder, const struct dirent *entry)
{
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return 0;
    char *path = inside(folder, entry->d_name);
    int err = !path                                 ? -ENOMEM
              : is_passed_over(path, entry->d_type) ? 0
                                                    : add_name(names, entry->d_name);
    free(path);
    return err;
}

/* In the order of their names. */
static int read_folder(const char *path, struct names *names)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int err = dir ? 0 : -errno;
    while (!err && (errno = 0, entry = readdir(dir)))
        err = take_entry(names, path, entry);
    if (!err && errno)
        err = -errno;
    if (dir)
        closedir(dir);
    if (!err && names->count)
        qsort(names->name, names->count, sizeof *names->name, by_name);
    return err;
}

static int verify_found(struct options *o, const char *folder, const char *name)
{
    struct stat st;
    char *path = inside(folder, name);
    int status = TOOL_GOOD, err = !path ? -ENOMEM : lstat(path, &st) != 0 ? -errno : 0;
    if (err) {
        message_code(path ? path : folder, "verify", err);
        status = TOOL_BAD;
    } else if (S_ISDIR(st.st_mode)) {
        status = verify_folder(o, path);
    } else if (S_ISREG(st.st_mode)) {
        status = verify_record(o, path, (uint64_t)st.st_size);
    }
    free(path);
    return status;
}

static int verify_folder(struct options *o, const char *path)
{
    struct names names = {.count = 0};
    int worst = TOOL_GOOD, err = read_folder(path, &names);
    if (err) {
        message_code(path, "verify", err);
        worst = TOOL_BAD;
    }
    for (size_t i = 0; i < names.count; i++) {
        int status = err ? worst : verify_found(o, path, names.name[i]);
        worst = worse_status(status, worst);
        free(names.name[i]);
    }
    free(names.name);
    return worst;
}

/* Where nothing is mounted, by mistake perhaps, nothing is right. */
static int nothing_found(const struct options *o, const char *folder)
{
    if (!is_in_limefs(folder)) {
        message(folder, "verify: no limefs mount; 'lime check --data -r' verifies containers");
        return TOOL_UNUSABLE;
    }
    if (!o->quiet && !o->json)
        answer(folder, "no record with a checksum in it");
    return TOOL_GOOD;
}

static int verify_named(struct options *o, const char *path)
{
    uint64_t before = o->seen;
    int status = verify_path(o, path);
    return status == TOOL_GOOD && o->seen == before ? nothing_found(o, path) : status;
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
    int worst = TOOL_GOOD;
    for (int opt; (opt = read_option(argc, argv, "q", longs, NULL)) != -1;) {
        if (opt == 'q')
            o.quiet = true;
        else if (opt == 'j')
            o.json = true;
        else
            return opt == 'H' ? print_help(&cmd_verify) : option_error(&cmd_verify, argv);
    }
    if (optind == argc)
        return usage_error(&cmd_verify, "no file named");
    for (; optind < argc; optind++) {
        int status = verify_named(&o, argv[optind]);
        worst = worse_status(status, worst);
    }
    return worst;
}

const struct command cmd_verify = {"verify", "verify records of a mount", help, run};
