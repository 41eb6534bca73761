/* cmd_verify.c - lime verify: let a mount (the daemon or its job) verify its records */
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

enum { STRUCTURE_REASON_MAX = 640, TEXT_MAX = 512 };

struct structure {
    uint64_t bad; /* deviations, without harmless ones */
    bool is_unreadable;
    char first[TEXT_MAX];
};

static void note_finding(void *context, const struct limefile_finding *finding)
{
    struct structure *structure = context;
    if (limefile_is_harmless(finding->code))
        return;
    structure->is_unreadable |= limefile_is_read_error(finding->code);
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
    return err;
}

/* Sets *is_other if the file is not a container and never was one. */
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

/* Examines what 'lime check' examines without --data: the directory that a mount shows a
 * container as, or a file that it shows as a plain one. Such a file is skipped, unless it is
 * the damaged rest of a container. The reason is "" if the verdict is good or skipped. */
static enum limefile_verdict structure_verdict(const char *path,
                                               char reason[STRUCTURE_REASON_MAX])
{
    struct container c;
    struct structure structure = {.bad = 0};
    bool is_other = false;
    *reason = '\0';
    int err = container_open_source(&c, path);
    if (!err) {
        err = examine(&c, &structure, &is_other);
        container_close(&c);
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

/* The daemon's attributes; see limefs(1). */
#define ATTR_CHECKSUM  "user.lime.checksum"
#define ATTR_REASON    "user.lime.reason"
#define ATTR_VERIFY    "user.lime.verify"
#define ATTR_VERIFYING "user.lime.verifying"

enum {
    VALUE_MAX = 512,
    LOOK_MS = 200, /* interval between looks at the progress */
};

struct options {
    bool quiet, json;
    uint64_t seen; /* data records */
};

/* Reads the attribute as a string. Returns its length, or -errno. */
static int attribute(const char *path, const char *name, char value[VALUE_MAX])
{
    ssize_t len = getxattr(path, name, value, VALUE_MAX - 1);
    value[len < 0 ? 0 : len] = '\0';
    return len < 0 ? -errno : (int)len;
}

/* ---- one record ---- */

struct asking {
    const char *path;
    int len;
    char verdict[VALUE_MAX];
};

static void *ask(void *context)
{
    struct asking *asking = context;
    asking->len = attribute(asking->path, ATTR_VERIFY, asking->verdict);
    return NULL;
}

/* Shows progress until the thread has the answer. */
static void watch(pthread_t thread, const char *path, uint64_t bytes)
{
    struct progress progress;
    char value[VALUE_MAX];
    uint64_t done;
    progress_begin(&progress, "verify", bytes);
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT)
            break;
        int len = progress.wanted ? attribute(path, ATTR_VERIFYING, value) : 0;
        if (len > 0 && limefile_text_number(value, (size_t)len, &done))
            progress_to(&progress, done);
    }
    progress_end(&progress);
}

/* Prints the verdict, and the reason unless it is "". Returns the exit status of the
 * verdict. */
static int print(const struct options *o, const char *path, enum limefile_verdict verdict,
                 const char *reason)
{
    const char *word = limefile_verdict_word(verdict);
    if (o->json) {
        jsonout_print(stdout,
                      json_pack("{s:o, s:s, s:o*}", "file", jsonout_string(path), "verdict",
                                word, "reason", *reason ? jsonout_string(reason) : NULL));
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
    struct asking asking = {.path = path};
    pthread_t thread;
    o->seen++;
    if (pthread_create(&thread, NULL, ask, &asking) == 0)
        watch(thread, path, bytes);
    else
        ask(&asking);
    if (asking.len == -EBUSY || asking.len == -ESTALE)
        return print(o, path, LIMEFILE_UNVERIFIED, "the record is being changed");
    if (asking.len < 0)
        return print(o, path, LIMEFILE_UNREADABLE, limefile_strerror(asking.len));
    char reason[VALUE_MAX];
    attribute(path, ATTR_REASON, reason);
    return print(o, path, verdict_of(asking.verdict), reason);
}

/* ---- containers and other files ---- */

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

/* ---- operands ---- */

static int verify_directory(struct options *o, const char *path);

/* True if the file is in the directory of a mounted container. The attributes do not prove it:
 * a copy of a record on another file system can have them, too. */
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

/* Where the files of a directory are. */
enum place { OUTSIDE, IN_TREE, IN_CONTAINER };

struct found {
    struct options *o;
    char *directory; /* the last directory whose place was determined */
    size_t length;
    enum place place;
    int worst;
};

/* Returns the place of the files in the directory named by the first `length` bytes of path. */
static enum place find_place(struct found *found, const char *path, size_t length)
{
    if (found->directory && found->length == length &&
        memcmp(found->directory, path, length) == 0)
        return found->place;
    free(found->directory);
    found->directory = strndup(path, length);
    found->length = length;
    const char *name = found->directory ? found->directory : "";
    found->place = mounted_is(name) ? IN_CONTAINER : is_in_limefs(name) ? IN_TREE : OUTSIDE;
    return found->place;
}

static int verify_file(struct found *found, const struct walk_entry *entry)
{
    char value[VALUE_MAX];
    const char *slash = strrchr(entry->path, '/');
    size_t length = slash ? (size_t)(slash - entry->path) : 0;
    switch (find_place(found, entry->path, length + (length == 0))) {
    case IN_CONTAINER: /* a container may have a million records, most of them without data */
        return attribute(entry->path, ATTR_CHECKSUM, value) == -ENODATA
                   ? TOOL_GOOD
                   : verify_record(found->o, entry->path, (uint64_t)entry->st->st_size);
    case IN_TREE:
        return verify_structure(found->o, entry->path);
    case OUTSIDE:
        break;
    }
    return TOOL_GOOD;
}

static bool verify_entry(void *context, const struct walk_entry *entry)
{
    struct found *found = context;
    int status = TOOL_GOOD;
    if (entry->kind == WALK_FAULT)
        status =
            print(found->o, entry->path, LIMEFILE_UNREADABLE, limefile_strerror(-entry->error));
    else if (entry->kind == WALK_FOLDER &&
             find_place(found, entry->path, strlen(entry->path)) == IN_CONTAINER)
        status = verify_structure(found->o, entry->path);
    else if (entry->kind == WALK_FILE)
        status = verify_file(found, entry);
    found->worst = worse_status(status, found->worst);
    return true;
}

/* limefs shows the working files of commands as containers, too: skip them. */
static bool is_working(const char *directory)
{
    const char *slash = strrchr(directory, '/');
    return walk_is_working_file(slash ? slash + 1 : directory);
}

static int verify_directory(struct options *o, const char *path)
{
    struct found found = {.o = o};
    if (!walk(path, is_working, verify_entry, &found))
        found.worst = TOOL_UNUSABLE;
    free(found.directory);
    return found.worst;
}

/* A directory without data is not good: it may be that limefs is not mounted. */
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

const struct command cmd_verify = {"verify", "verify records of a mount",   help, run,
                                   rules,    {"no file named", 1, INT_MAX}, NULL};
