/* cmd_verify.c - lime verify: have a mount verify its records; the daemon or its job reads */
#define _GNU_SOURCE
#include "container.h"
#include "fieldcheck.h"
#include "jsonout.h"
#include "limebeginning.h"
#include "limefile.h"
#include "limeildg.h"
#include "limeverdict.h"
#include "mounted.h"
#include "pathlist.h"
#include "progress.h"
#include "tool.h"

#include <dirent.h>
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

/* Examines what 'lime check' examines without --data: of the directory that a mount shows of a
 * container, or of a file that it shows as a plain one. Such a file is skipped unless it is
 * what damage has left of a container. The reason is "" if the verdict is good or skipped. */
#define STRUCTURE_REASON_MAX 640
enum limefile_verdict structure_verdict(const char *path, char reason[STRUCTURE_REASON_MAX]);

enum { TEXT_MAX = 512 };

struct structure {
    uint64_t bad; /* deviations, but for harmless ones */
    bool is_unreadable;
    char first[TEXT_MAX];
};

static void note_finding(void *context, const struct limefile_finding *finding)
{
    struct structure *structure = context;
    if (limefile_is_harmless(finding->code))
        return;
    structure->is_unreadable |= finding_is_unreadable(finding);
    if (structure->bad++ == 0)
        limefile_finding_text(finding, structure->first, sizeof structure->first);
}

static int examine_container(struct container *c, struct structure *structure)
{
    struct limefile_fields fields;
    struct limefile_finding finding;
    int err = limefile_index_scan(c->source, note_finding, NULL, structure, &c->index);
    if (err)
        return err;
    err = limefile_fields_build(c->source, c->index, &fields);
    if (!err) {
        for (size_t i = 0; limefile_fields_finding(&fields, i, &finding); i++)
            note_finding(structure, &finding);
        limefile_fields_release(&fields);
    }
    limefile_index_free(c->index);
    return err;
}

/* *is_other: the file is not a container, and was never one. */
static int examine(struct container *c, struct structure *structure, bool *is_other)
{
    struct limefile_finding finding;
    int kind = c->mounted ? 1 : limefile_beginning(c->source, &finding);
    *is_other = kind == 0;
    if (kind == 1)
        return examine_container(c, structure);
    if (kind < 0 && !finding.code)
        return kind;
    if (kind < 0)
        note_finding(structure, &finding);
    return 0;
}

enum limefile_verdict structure_verdict(const char *path, char reason[STRUCTURE_REASON_MAX])
{
    struct container c;
    struct structure structure = {.bad = 0};
    bool is_other = false;
    *reason = '\0';
    int err = container_open_source(&c, path);
    if (!err) {
        err = examine(&c, &structure, &is_other);
        container_close_source(&c);
    }
    if (err) {
        snprintf(reason, STRUCTURE_REASON_MAX, "%s", limefile_strerror(err));
        return LIMEFILE_UNREADABLE;
    }
    if (structure.bad > 1)
        snprintf(reason, STRUCTURE_REASON_MAX, "%s, and %" PRIu64 " more", structure.first,
                 structure.bad - 1);
    else
        snprintf(reason, STRUCTURE_REASON_MAX, "%s", structure.first);
    return structure.is_unreadable ? LIMEFILE_UNREADABLE
           : structure.bad         ? LIMEFILE_BAD
           : is_other              ? LIMEFILE_SKIPPED
                                   : LIMEFILE_GOOD;
}

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
    "file, with the checksum, plaquette and link trace in its header. A container is\n"
    "bad if it is damaged, for example cut short; so is a file in another format.\n"
    "\n"
    "The mount reads the data, with the ranks of its job if it has one (-o ranks=N,\n"
    "-o job=SOCKET). It keeps the verdict until the container changes:\n"
    "'getfattr -n user.lime.checksum FILE' shows it. 'lime check --data' verifies\n"
    "containers that are not mounted.\n"
    "\n"
    "Example: lime verify /mnt/cfg && solver /mnt/cfg/ildg-binary-data\n"
    "\n"
    "Exit status: 0 everything is good; 1 something is bad; 2 something cannot be\n"
    "read or FILE is not in a limefs mount, or wrong usage; 3 data have no checksum\n"
    "that they can be compared with, or there are no data. Of several, the worst:\n"
    "2, 1, 3, 0.\n";

/* As the daemon has them; see limefs(1). */
#define ATTR_CHECKSUM  "user.lime.checksum"
#define ATTR_REASON    "user.lime.reason"
#define ATTR_VERIFY    "user.lime.verify"
#define ATTR_VERIFYING "user.lime.verifying"

enum {
    VALUE_MAX = 512,
    LOOK_MS = 200, /* at how far it is */
};

struct options {
    bool quiet, json;
    uint64_t seen; /* data records */
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

/* Shows progress until there is an answer. */
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

/* Prints the verdict, with the reason unless that is "". Returns its exit status. */
static int print(const struct options *o, const char *path, enum limefile_verdict verdict,
                 const char *reason)
{
    const char *word = limefile_verdict_word(verdict);
    if (o->json) {
        json_t *line = json_pack("{s:o, s:s}", "file", jsonout_string(path, strlen(path)),
                                 "verdict", word);
        if (*reason)
            json_object_set_new(line, "reason", jsonout_string(reason, strlen(reason)));
        jsonout_print(stdout, line);
        putchar('\n');
    } else if (!o->quiet || verdict != LIMEFILE_GOOD) {
        answer(path, "%s%s%s", word, *reason ? ": " : "", reason);
    }
    return verdict_status(verdict);
}

static enum limefile_verdict verdict_of(const char *word)
{
    for (enum limefile_verdict v = LIMEFILE_GOOD; v < LIMEFILE_UNREADABLE; v++)
        if (strcmp(word, limefile_verdict_word(v)) == 0)
            return v;
    return LIMEFILE_UNREADABLE;
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
    if (asking.len == -EBUSY || asking.len == -ESTALE)
        return print(o, path, LIMEFILE_UNVERIFIED, "the record is being changed");
    if (asking.len < 0)
        return print(o, path, LIMEFILE_UNREADABLE, limefile_strerror(asking.len));
    char reason[VALUE_MAX];
    attribute(path, ATTR_REASON, reason);
    return print(o, path, verdict_of(asking.verdict), reason);
}

/* ---- a container, or another file ---- */

static int verify_structure(const struct options *o, const char *path)
{
    char reason[STRUCTURE_REASON_MAX];
    enum limefile_verdict verdict = structure_verdict(path, reason);
    if (verdict == LIMEFILE_SKIPPED && gauge_check_damage(path, reason, sizeof reason))
        verdict = LIMEFILE_BAD;
    return verdict == LIMEFILE_GOOD || verdict == LIMEFILE_SKIPPED
               ? TOOL_GOOD
               : print(o, path, verdict, reason);
}

/* ---- what is named ---- */

static int verify_directory(struct options *o, const char *path);

/* True if the file is in the directory of a mounted container. A copy of a record on another
 * file system can have the same attributes. */
static bool is_record(const char *path)
{
    char *real = realpath(path, NULL);
    bool is = real && mounted_is(dirname(real));
    free(real);
    return is;
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
    if (!is_record(path)) {
        message(path,
                "not a record of a limefs mount; 'lime check --data' verifies containers");
        return TOOL_UNUSABLE;
    }
    if (attribute(path, ATTR_CHECKSUM, value) >= 0)
        return verify_record(o, path, (uint64_t)st.st_size);
    return print(o, path, LIMEFILE_UNVERIFIED, "the record is not the data of a field");
}

/* ---- directories ---- */

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

static char *inside(const char *directory, const char *name)
{
    char *path;
    bool slash = directory[0] && directory[strlen(directory) - 1] == '/';
    return asprintf(&path, "%s%s%s", directory, slash ? "" : "/", name) < 0 ? NULL : path;
}

/* What the files of a directory are. */
enum place { OUTSIDE, IN_TREE, IN_CONTAINER };

static enum place place_of(const char *directory)
{
    return mounted_is(directory) ? IN_CONTAINER : is_in_limefs(directory) ? IN_TREE : OUTSIDE;
}

/* True if there is nothing to examine: there may be a million. */
static bool is_skipped(const char *path, unsigned char type, enum place place)
{
    struct stat st;
    char value[VALUE_MAX];
    if (type == DT_UNKNOWN && lstat(path, &st) == 0)
        type = IFTODT(st.st_mode);
    if (type != DT_REG)
        return type != DT_DIR && type != DT_UNKNOWN;
    return place == OUTSIDE ||
           (place == IN_CONTAINER && attribute(path, ATTR_CHECKSUM, value) == -ENODATA);
}

static int take_entry(struct names *names, const char *directory, enum place place,
                      const struct dirent *entry)
{
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
        walk_is_working_file(entry->d_name))
        return 0;
    char *path = inside(directory, entry->d_name);
    int err = !path                                    ? -ENOMEM
              : is_skipped(path, entry->d_type, place) ? 0
                                                       : add_name(names, entry->d_name);
    free(path);
    return err;
}

/* In the order of their names. */
static int read_directory(const char *path, enum place place, struct names *names)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int err = dir ? 0 : -errno;
    while (!err && (errno = 0, entry = readdir(dir)))
        err = take_entry(names, path, place, entry);
    if (!err && errno)
        err = -errno;
    if (dir)
        closedir(dir);
    if (!err && names->count)
        qsort(names->name, names->count, sizeof *names->name, by_name);
    return err;
}

static int verify_found(struct options *o, const char *directory, enum place place,
                        const char *name)
{
    struct stat st;
    char *path = inside(directory, name);
    int status = TOOL_GOOD, err = !path ? -ENOMEM : lstat(path, &st) != 0 ? -errno : 0;
    if (err)
        status = print(o, path ? path : directory, LIMEFILE_UNREADABLE, limefile_strerror(err));
    else if (S_ISDIR(st.st_mode))
        status = verify_directory(o, path);
    else if (S_ISREG(st.st_mode) && place == IN_CONTAINER)
        status = verify_record(o, path, (uint64_t)st.st_size);
    else if (S_ISREG(st.st_mode) && place == IN_TREE)
        status = verify_structure(o, path);
    free(path);
    return status;
}

static int verify_directory(struct options *o, const char *path)
{
    struct names names = {.count = 0};
    enum place place = place_of(path);
    int worst = place == IN_CONTAINER ? verify_structure(o, path) : TOOL_GOOD;
    int err = read_directory(path, place, &names);
    if (err)
        worst = print(o, path, LIMEFILE_UNREADABLE, limefile_strerror(err));
    for (size_t i = 0; i < names.count; i++) {
        int status = err ? worst : verify_found(o, path, place, names.name[i]);
        worst = worse_status(status, worst);
        free(names.name[i]);
    }
    free(names.name);
    return worst;
}

/* If nothing is mounted, by mistake perhaps, nothing is good. */
static int nothing_found(const struct options *o, const char *directory)
{
    if (is_in_limefs(directory))
        return print(o, directory, LIMEFILE_UNVERIFIED, "no record with data to verify");
    message(directory, "not in a limefs mount; 'lime check --data -r' verifies containers");
    return TOOL_UNUSABLE;
}

static int verify_named(struct options *o, const char *path)
{
    uint64_t before = o->seen;
    int status = verify_path(o, path);
    return status == TOOL_GOOD && o->seen == before ? nothing_found(o, path) : status;
}

static struct options options;

static const struct option_rule rules[] = {
    FLAG_RULE("quiet", 'q', &options.quiet),
    FLAG_RULE("json", 0, &options.json),
    {NULL},
};

static int run(int count, char **paths)
{
    int worst = TOOL_GOOD;
    for (int i = 0; i < count; i++)
        worst = worse_status(verify_named(&options, paths[i]), worst);
    return worst;
}

const struct command cmd_verify = {
    "verify",       "verify records of a mount", help,       run,
    .rules = rules, .usage = "no file named",    .least = 1, .most = INT_MAX};
