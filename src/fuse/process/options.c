/* options.c - parse the command line of limefs */
#define _GNU_SOURCE
#include "options.h"
#include "complete.h"
#include "limejob.h"
#include "option.h"
#include "suggest.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

enum {
    ERROR_MAX = 512, /* bytes of an error message */
    RANKS_MAX = 4096,
};

enum mount_option_kind {
    KIND_VALUE, /* has a value, as its rule describes */
    KIND_PATH,
    KIND_FLAG, /* sets an int; this kind and those below take no value */
    KIND_RW,
    KIND_RO,
    KIND_WRITABLE,
    KIND_OVER_MOUNT,
    KIND_FROM_MOUNT8, /* options that mount(8) adds */
    KIND_IGNORED,     /* options of mount(8) and fstab without a meaning here */
};

/* Options with a value, which is parsed after the whole command line is read. */
enum {
    READAHEAD,
    WINDOW,
    EXTENT,
    FORWARD_FROM,
    IO,
    STRIPE,
    RANKS,
    MAX_OPEN,
    MAX_READ,
    MAX_THREADS,
    MAX_IDLE_THREADS,
    ATTR_TIMEOUT,
    ENTRY_TIMEOUT,
    JOB_TIMEOUT,
    VERIFY,
    MKDIR,
    JOB,
    MPIRUN,
    VALUE_COUNT,
};

#define SETS(field) .offset = 1 + offsetof(struct limefs_options, field)
#define FOR_LIBFUSE .is_for_libfuse = true

static const char *const verify_words[] = {
    [LIMEFS_VERIFY_OFF] = "off",
    [LIMEFS_VERIFY_OPEN] = "open",
    [LIMEFS_VERIFY_STREAM] = "stream",
    NULL,
};
static const char *const mkdir_words[] = {"directory", "container", NULL};

static const struct mount_option {
    struct option_rule rule; /* its `value` is set by parse_value(), from `offset` */
    size_t offset;           /* 1 + offset in struct limefs_options; 0: not stored */
    enum mount_option_kind kind;
    bool is_for_libfuse; /* libfuse gets it, too */
} option_table[] = {
    [READAHEAD] = {{"readahead", 0, OPTION_SIZE, NULL, 0, 1 << 30,
                    .expected = "0, or 4K to 1G"},
                   SETS(readahead)},
    [WINDOW] = {{"window", 0, OPTION_SIZE, NULL, 2 << 20, .most = 0x1p40}, SETS(window)},
    [EXTENT] = {{"extent", 0, OPTION_SIZE, NULL, 1 << 20, 1 << 30,
                 .expected = "1M to 1G, a multiple of 4K"},
                SETS(extent)},
    [FORWARD_FROM] = {{"forward_from", 0, OPTION_SIZE, NULL, 0, .most = 0x1p40},
                      SETS(forward_from)},
    [STRIPE] = {{"stripe", 0, OPTION_SIZE, NULL, 1, .most = 1 << 30}, SETS(stripe)},
    [IO] = {{"io", 0, OPTION_WORD, .words = limejob_io_names}, SETS(io)},
    [RANKS] = {{"ranks", 0, OPTION_UNSIGNED, NULL, 1, .most = RANKS_MAX}, SETS(ranks)},
    [MAX_OPEN] = {{"max_open", 0, OPTION_UNSIGNED, NULL, 0, .most = 1000000}, SETS(max_open)},
    [MAX_READ] = {{"max_read", 0, OPTION_UNSIGNED, NULL, 4096, 1 << 20,
                   .expected = "bytes, 4096 to 1048576"},
                  SETS(max_read),
                  FOR_LIBFUSE},
    [MAX_THREADS] = {{"max_threads", 0, OPTION_UNSIGNED, NULL, 1, .most = 100000}, FOR_LIBFUSE},
    [MAX_IDLE_THREADS] = {{"max_idle_threads", 0, OPTION_UNSIGNED, NULL, 0, .most = 100000},
                          FOR_LIBFUSE},
    [ATTR_TIMEOUT] = {{"attr_timeout", 0, OPTION_REAL, NULL, 0, 1e9,
                       .expected = "seconds, from 0"},
                      SETS(attr_timeout)},
    [ENTRY_TIMEOUT] = {{"entry_timeout", 0, OPTION_REAL, NULL, 0, 1e9,
                        .expected = "seconds, from 0"},
                       SETS(entry_timeout)},
    [JOB_TIMEOUT] = {{"job_timeout", 0, OPTION_REAL, NULL, 0.1, 86400,
                      .expected = "seconds, 0.1 to 86400"},
                     SETS(job_timeout)},
    [VERIFY] = {{"verify", 0, OPTION_WORD, .words = verify_words}, SETS(verify)},
    [MKDIR] = {{"mkdir", 0, OPTION_WORD, .words = mkdir_words}, SETS(mkdir_container)},
    [JOB] = {{.name = "job"}, .kind = KIND_PATH},
    [MPIRUN] = {{.name = "mpirun"}, .kind = KIND_PATH},
    {{.name = "over_mount"}, .kind = KIND_OVER_MOUNT},
    {{.name = "job_required"}, SETS(job_required), KIND_FLAG},
    {{.name = "faces"}, SETS(list_exports), KIND_FLAG},
    {{.name = "formats"}, SETS(formats), KIND_FLAG},
    {{.name = "direct_io"}, SETS(direct_io), KIND_FLAG},
    {{.name = "ino32"}, SETS(ino32), KIND_FLAG},
    {{.name = "allow_other"}, SETS(serves_others), KIND_FLAG, FOR_LIBFUSE},
    {{.name = "allow_root"}, SETS(serves_others), KIND_FLAG, FOR_LIBFUSE},
    {{.name = "rw"}, .kind = KIND_RW},
    {{.name = "ro"}, .kind = KIND_RO},
    {{.name = "writable"}, .kind = KIND_WRITABLE},
    {{.name = "dev"}, .kind = KIND_FROM_MOUNT8, FOR_LIBFUSE},
    {{.name = "nodev"}, .kind = KIND_FROM_MOUNT8, FOR_LIBFUSE},
    {{.name = "suid"}, .kind = KIND_FROM_MOUNT8, FOR_LIBFUSE},
    {{.name = "nosuid"}, .kind = KIND_FROM_MOUNT8, FOR_LIBFUSE},
    {{.name = "auto"}, .kind = KIND_IGNORED},
    {{.name = "noauto"}, .kind = KIND_IGNORED},
    {{.name = "user"}, .kind = KIND_IGNORED},
    {{.name = "users"}, .kind = KIND_IGNORED},
    {{.name = "nofail"}, .kind = KIND_IGNORED},
    {{.name = "_netdev"}, .kind = KIND_IGNORED},
    {{.name = "defaults"}, .kind = KIND_IGNORED},
};

enum { TABLE_SIZE = sizeof option_table / sizeof *option_table };

/* Other options of the command line, for completion and suggestions. */
static const char command_help[] = "-o  mount options, with commas between them\n"
                                   "-f  stay in the foreground\n"
                                   "-d  print each request, and stay in the foreground\n"
                                   "-s  use only one thread\n"
                                   "-u  unmount a mount point\n"
                                   "--run      run a command, and unmount when it ends\n"
                                   "--status   print the statistics of a mount\n"
                                   "--bytes    with --status: exact sizes\n"
                                   "--json     with --status: as JSON\n"
                                   "--version  print the version\n"
                                   "--help     print the usage\n";
static const struct option_rule command_rules[] = {
    {NULL, 'o', .kind = OPTION_TEXT},
    {NULL, 'f', .kind = OPTION_FLAG},
    {NULL, 'd', .kind = OPTION_FLAG},
    {NULL, 's', .kind = OPTION_FLAG},
    {"version", 'V', .kind = OPTION_FLAG},
    {"status", .kind = OPTION_FLAG},
    {"json", .kind = OPTION_FLAG},
    {"bytes", .kind = OPTION_FLAG},
    {NULL, 'u', .kind = OPTION_FLAG},
    {"run", .kind = OPTION_FLAG},
    {NULL},
};

struct parse_state {
    struct limefs_options *options;
    struct limefs_command *command;
    char *text[VALUE_COUNT];       /* as given; NULL: not given */
    bool rw, writable, has_mount8; /* given: "rw" after any "ro"; "writable"; mount(8) option */
    const char *mountpoint;        /* as given; NULL: not given */
    char error[ERROR_MAX];
};

__attribute__((format(printf, 2, 3))) static int set_error(char error[ERROR_MAX],
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, ERROR_MAX, format, args);
    va_end(args);
    return -1;
}

/* ---- values ---- */

static int parse_value(const struct mount_option *option, const char *text,
                       struct limefs_options *options, char error[ERROR_MAX])
{
    char reason[OPTION_ERROR_BYTES];
    int64_t ignored;
    struct option_rule rule = option->rule;
    rule.value = option->offset ? (char *)options + option->offset - 1 : (void *)&ignored;
    if (limefile_option_parse(&rule, rule.name, text, reason))
        return 0;
    return set_error(error, "%s", reason);
}

/* Moves or copies the text to *path, as an absolute path, because the daemon changes to "/". */
static int parse_path(const struct mount_option *option, char **text, char **path,
                      char error[ERROR_MAX])
{
    char cwd[PATH_MAX];
    if (!**text)
        return set_error(error, "option '%s' requires a value", option->rule.name);
    if (**text != '/') {
        if (!getcwd(cwd, sizeof cwd) || asprintf(path, "%s/%s", cwd, *text) < 0) {
            *path = NULL;
            return set_error(error, "%s: %s", option->rule.name, strerror(errno));
        }
        return 0;
    }
    *path = *text;
    *text = NULL;
    return 0;
}

static int parse_job(char **text, struct limefs_options *options, char error[ERROR_MAX])
{
    const struct mount_option *job = &option_table[JOB];
    if (parse_path(job, text, &options->job, error) != 0)
        return -1;
    if (strlen(options->job) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return set_error(error, "job: %.100s...: path longer than 107 bytes", options->job);
    return 0;
}

/* Makes the command's path absolute. Keeps a name without a slash, which is found by PATH. */
static int parse_mpirun(char **text, struct limefs_options *options, char error[ERROR_MAX])
{
    const struct mount_option *mpirun = &option_table[MPIRUN];
    memmove(*text, *text + strspn(*text, " "), strlen(*text + strspn(*text, " ")) + 1);
    char *slash = strchr(*text, '/');
    if (!**text || (slash && slash < *text + strcspn(*text, " ")))
        return parse_path(mpirun, text, &options->mpirun, error);
    options->mpirun = *text;
    *text = NULL;
    return 0;
}

/* ---- options that depend on each other ---- */

static int check_combinations(const struct limefs_options *options, char error[ERROR_MAX])
{
    if (options->readahead && options->readahead < 4096)
        return set_error(error, "readahead: invalid value '%llu' (0, or 4K to 1G)",
                         (unsigned long long)options->readahead);
    if (options->ranks && options->job)
        return set_error(error, "options 'ranks' and 'job' cannot be used together");
    if (options->job_required && !options->ranks && !options->job)
        return set_error(error, "option 'job_required' requires 'ranks' or 'job'");
    if (options->extent % 4096)
        return set_error(error, "extent: invalid value '%llu' (1M to 1G, a multiple of 4K)",
                         (unsigned long long)options->extent);
    if (options->window < 2 * options->extent)
        return set_error(error, "window: too small for two extents (at least %lluK)",
                         (unsigned long long)options->extent / 512);
    return 0;
}

/* If the mount has no job, warns of options that concern a job. */
static void warn_no_effect(char *const text[VALUE_COUNT], const struct limefs_options *options)
{
    static const struct {
        int value;
        bool needs_ranks; /* has an effect only on a job that the mount starts */
    } job_options[] = {
        {WINDOW, false}, {EXTENT, false}, {JOB_TIMEOUT, false}, {STRIPE, true}, {IO, true}};
    for (size_t i = 0; i < sizeof job_options / sizeof *job_options; i++)
        if (text[job_options[i].value] && !options->ranks &&
            (job_options[i].needs_ranks || !options->job))
            limefs_log(LOG_WARNING, "%s: no effect without ranks=%s",
                       option_table[job_options[i].value].rule.name,
                       job_options[i].needs_ranks ? "" : " or job=");
    if (options->mpirun && !options->ranks)
        limefs_log(LOG_WARNING, "mpirun: no effect without ranks=");
}

static int parse_values(char *text[VALUE_COUNT], struct limefs_options *options,
                        char error[ERROR_MAX])
{
    for (int i = 0; i < VALUE_COUNT; i++)
        if (text[i] && option_table[i].kind == KIND_VALUE &&
            parse_value(&option_table[i], text[i], options, error) != 0)
            return -1;
    if (text[JOB] && parse_job(&text[JOB], options, error) != 0)
        return -1;
    if (text[MPIRUN] && parse_mpirun(&text[MPIRUN], options, error) != 0)
        return -1;
    if (check_combinations(options, error) != 0)
        return -1;
    warn_no_effect(text, options);
    return 0;
}

/* ---- the command line ---- */

/* Finds the option of a word "NAME" or "NAME=VALUE". NULL: limefs has no such option. */
static const struct mount_option *find_option(const char *word)
{
    size_t len = strcspn(word, "=");
    for (const struct mount_option *i = option_table; i < option_table + TABLE_SIZE; i++)
        if (strlen(i->rule.name) == len && strncmp(i->rule.name, word, len) == 0)
            return i;
    return NULL;
}

static int store_value(struct parse_state *state, const struct mount_option *option,
                       const char *value)
{
    char **text = &state->text[option - option_table];
    if (!value)
        return set_error(state->error, "option '%s' requires a value", option->rule.name);
    free(*text);
    *text = strdup(value + 1);
    return *text ? 0 : -1;
}

/* Returns true for a mount option that limefs --status shows as given. */
static bool is_shown(const struct mount_option *option, const char *arg)
{
    return arg[0] != '-' && (!option || (option->kind != KIND_RW && option->kind != KIND_RO &&
                                         option->kind != KIND_WRITABLE));
}

/* Callback of fuse_opt_parse(): the first word that is not an option is the source. Returns 1
 * to pass the word on to libfuse, 0 to drop it, -1 on error. */
static int handle_argument(void *data, const char *arg, int key, struct fuse_args *out)
{
    struct parse_state *state = data;
    (void)out;
    if (key == FUSE_OPT_KEY_NONOPT) {
        if (state->command->source) {
            state->mountpoint = state->mountpoint ? state->mountpoint : arg;
            return 1;
        }
        state->command->source = strdup(arg);
        return state->command->source ? 0 : -1;
    }
    const struct mount_option *option = find_option(arg);
    const char *value = strchr(arg, '=');
    if (is_shown(option, arg) && fuse_opt_add_opt_escaped(&state->options->given, arg) != 0)
        return -1;
    if (!option)
        return 1;
    if (option - option_table < VALUE_COUNT) {
        if (store_value(state, option, value) != 0)
            return -1;
    } else if (value) {
        return set_error(state->error, "option '%s' takes no value", option->rule.name);
    } else if (option->kind == KIND_FLAG) {
        *(int *)((char *)state->options + option->offset - 1) = 1;
    } else if (option->kind == KIND_RW || option->kind == KIND_RO) {
        state->rw = option->kind == KIND_RW; /* the last one given counts */
    } else {
        state->writable |= option->kind == KIND_WRITABLE;
        state->command->over_mount |= option->kind == KIND_OVER_MOUNT;
        state->has_mount8 |= option->kind == KIND_FROM_MOUNT8;
    }
    return option->is_for_libfuse;
}

static const char usage[] =
    "usage: limefs [options] CONTAINER|DIRECTORY MOUNTPOINT [--run COMMAND [ARGUMENT...]]\n"
    "\n"
    "Shows each record of a LIME container as a file. If given a directory, limefs shows\n"
    "the whole tree below it, with each container as a directory of its records.\n"
    "\n"
    "    limefs conf.0100 /mnt/cfg          mount; the records are NNN-type\n"
    "    cat /mnt/cfg/ildg-format           a type that occurs once needs no number\n"
    "    limefs -u /mnt/cfg                 unmount\n"
    "    limefs runs /tmp/runs --run ls -R /tmp/runs      mount, run a command, unmount\n"
    "\n"
    "options of limefs:\n"
    "    -o rw                  allow changing and appending records, and lock the container\n"
    "                           (default: read-only). In mount(8) and fstab: writable\n"
    "    -o mkdir=container     mkdir in a tree creates a container (default: only if the\n"
    "                           name ends in .lime, else a directory)\n"
    "    -o readahead=SIZE      bytes that the kernel reads ahead, K or M; 0: its default\n"
    "                           (default 8M; takes effect when root mounts)\n"
    "    -o attr_timeout=SEC    how long the kernel may cache attributes (default 1.0)\n"
    "    -o entry_timeout=SEC   how long the kernel may cache names (default 1.0)\n"
    "    -o max_open=N          unused containers of a tree to keep open (default 128)\n"
    "    -o ino32               32-bit inode numbers, for old 32-bit programs that fail with\n"
    "                           \"Value too large for defined data type\"\n"
    "    -o direct_io           read and write large records around this mount's page cache:\n"
    "                           less memory, fast for requests of 1 MiB, slow for small ones\n"
    "    -o max_read=BYTES      largest request of the kernel (default 1 MiB)\n"
    "    -o faces               list the exports (.npy, .h5, .zarr, .t) next to each field's\n"
    "                           record; without it they exist, but ls does not show them\n"
    "    -o formats             in a tree, show NERSC, MILC and openQCD files as containers,\n"
    "                           too (if given such a file, limefs always shows it so)\n"
    "    -o verify=WHEN         verify data that have a checksum: open (opening bad data\n"
    "                           fails), stream (reading bad data to the end fails) or off\n"
    "                           (default: only on request, with lime verify FILE)\n"
    "    -o over_mount          mount over another mount, which is refused otherwise\n"
    "    -V, --version          print the version\n"
    "    -h, --help             print this text\n"
    "    -u MOUNTPOINT          unmount\n"
    "    --run COMMAND [ARGUMENT...]   mount, run the command, unmount when it has ended, and\n"
    "                           exit with its status; make the mount point if it is missing\n"
    "    --status [--bytes | --json] MOUNTPOINT   print source, options and uptime of a\n"
    "                           mount, what it has read, and the state of its job\n"
    "\n"
    "options for parallel reads by an MPI job:\n"
    "    -o ranks=N             start a job of N ranks with the mount, 1 to 4096\n"
    "    -o job_required        mount only if the job serves (default: without it, limefs\n"
    "                           reads locally)\n"
    "    -o job=SOCKET          use a running job: see limefs-io(1)\n"
    "    -o mpirun=COMMAND      command and arguments that start the job (default mpirun)\n"
    "    -o forward_from=SIZE   forward sequential reads after SIZE bytes (default 4M)\n"
    "    -o extent=SIZE         bytes that the job reads at once (default 32M)\n"
    "    -o io=METHOD           as --io of limefs-io: auto (default), posix, independent,\n"
    "                           collective\n"
    "    -o stripe=SIZE         align the parts of the ranks to SIZE (default: what MPI\n"
    "                           reports for the file, or 1M); with ranks=\n"
    "    -o window=SIZE         memory for data that the job reads ahead (default 256M)\n"
    "    -o job_timeout=SEC     seconds to wait for the job before reading locally\n"
    "                           (default 5)\n"
    "\n"
    "options of FUSE:\n";

/* Offers an -o option, or its values, for the last item of a list like "rw,ranks=2". */
static void complete_mount_option(struct limefile_completion *c)
{
    char option[64], text[DESCRIPTION_BYTES];
    limefile_complete_list_item(c);
    const char *equals = strchr(c->word, '=');
    const struct mount_option *given = equals ? find_option(c->word) : NULL;
    c->word = equals ? equals + 1 : c->word;
    for (int i = 0; given && given->rule.words && given->rule.words[i]; i++)
        limefile_complete_offer(c, given->rule.words[i], NULL);
    for (int i = 0; !equals && i < TABLE_SIZE; i++) {
        snprintf(option, sizeof option, "-o %s", option_table[i].rule.name);
        const char *description = limefile_complete_description(usage, option, text);
        snprintf(option, sizeof option, "%s%s", option_table[i].rule.name,
                 i < VALUE_COUNT ? "=" : "");
        if (option_table[i].kind < KIND_FROM_MOUNT8)
            limefile_complete_offer(c, option, description);
    }
}

int limefs_options_find_run(int argc, char *const *argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--run") != 0)
        i++;
    return i;
}

void limefs_options_complete(int count, char *const *arguments)
{
    struct limefile_completion c;
    for (int i = 0; i < count - 1; i++)
        if (strcmp(arguments[i], "--run") == 0)
            return; /* file names complete the command */
    limefile_complete(command_rules, command_help, count, arguments, stdout, &c);
    if (c.rule)
        complete_mount_option(&c);
}

/* mount(8) adds "rw" to each mount that is not "ro". There, only "writable" permits writes. */
static void set_rw(const struct parse_state *state)
{
    state->options->rw = state->writable || (state->rw && !state->has_mount8);
    if (state->rw && !state->options->rw)
        limefs_log(LOG_NOTICE,
                   "mounted read-only; to write, use -o writable in mount or fstab");
}

static int print_information(struct limefs_command *command)
{
    if (command->fuse.show_version) {
        printf("limefs %s\nFUSE library version %s\n", LIMEFS_VERSION, fuse_pkgversion());
#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 13)
        printf(
            "without: -o max_threads, and mmap with -o direct_io (built with libfuse %d.%d)\n",
            FUSE_MAJOR_VERSION, FUSE_MINOR_VERSION);
#endif
        return 1;
    }
    if (command->fuse.show_help) {
        static char
            buffer[1 << 15]; /* so that main() makes the only write, and has its errno */
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
        fputs(usage, stdout);
        fuse_cmdline_help();
        fuse_lowlevel_help();
        return 1;
    }
    return 0;
}

static int log_usage_error(const char *problem)
{
    limefs_log(LOG_ERR, "%s%s", problem, limefile_suggest_or(problem, "; see limefs --help"));
    return -1;
}

#define UNKNOWN_OPTION "fuse: unknown option(s): `"

/* word: an unknown option, "name=value" or "--name". */
static void suggest_option(struct limefile_suggestion *near, const char *word)
{
    char name[64], candidate[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "=,'"), word);
    for (int i = 0; i < TABLE_SIZE; i++)
        limefile_suggest(near, name, option_table[i].rule.name);
    for (const struct option_rule *rule = command_rules; rule->kind; rule++) {
        snprintf(candidate, sizeof candidate, "--%s", rule->name ? rule->name : "");
        limefile_suggest(near, name, candidate);
    }
}

int limefs_options_report_error(const char *libfuse_message)
{
    static const struct {
        const char *prefix, *before, *after;
    } messages[] = {
        {UNKNOWN_OPTION, "unknown option '", "'"},
        {"fuse: invalid parameter in option `", "option '", "': not a valid value"},
        {"fuse: missing argument after `", "option '", "' requires a value"},
        {"fuse: invalid argument `", "unexpected argument '", "'"},
        {"fuse: ", "", ""},
        {"", "", ""},
    };
    size_t i = 0;
    while (strncmp(libfuse_message, messages[i].prefix, strlen(messages[i].prefix)) != 0)
        i++;
    const char *word = libfuse_message + strlen(messages[i].prefix);
    if (strncmp(word, "-o ", 3) == 0)
        word += 3;
    size_t len = strcspn(word, "\n");
    if (*messages[i].after && len > 0 && word[len - 1] == '\'')
        len--;
    char text[ERROR_MAX];
    struct limefile_suggestion near = {0};
    if (i == 0)
        suggest_option(&near, word);
    snprintf(text, sizeof text, "%s%.*s%s%s", messages[i].before, (int)(len < 200 ? len : 200),
             word, messages[i].after, limefile_suggest_text(&near));
    return log_usage_error(*word ? text : "nothing was mounted");
}

/* Returns whether the mount point exists. With --run, makes it. */
static bool has_mountpoint(const struct parse_state *state)
{
    if (!state->mountpoint || access(state->mountpoint, F_OK) == 0 || errno != ENOENT)
        return true;
    if (!state->command->run || mkdir(state->mountpoint, 0700) != 0)
        return false;
    state->command->new_mountpoint = realpath(state->mountpoint, NULL);
    return true;
}

/* Returns 0, or -1 after it logged a message. */
static int parse_arguments(struct parse_state *state)
{
    struct limefs_command *command = state->command;
    char message[ERROR_MAX] = "";
    limefs_log_capture_libfuse(message, sizeof message);
    int err = fuse_opt_parse(&command->args, state, NULL, handle_argument);
    if (!err)
        err = parse_values(state->text, state->options, state->error);
    bool exists = err || has_mountpoint(state);
    if (!err && exists)
        err = fuse_parse_cmdline(&command->args, &command->fuse);
    limefs_log_capture_libfuse(NULL, 0);
    if (!err && !exists) {
        limefs_log(LOG_ERR, "%s: no such directory; create it with 'mkdir -p %s'",
                   state->mountpoint, state->mountpoint);
        return -1;
    }
    if (!err)
        return 0;
    return state->error[0] ? log_usage_error(state->error)
                           : limefs_options_report_error(message);
}

int limefs_options_parse(int argc, char *argv[], struct limefs_command *command,
                         struct limefs_options *options)
{
    struct parse_state state = {.options = options, .command = command};
    *options = (struct limefs_options){
        .attr_timeout = 1.0,
        .entry_timeout = 1.0,
        .max_open = 128,
        .readahead = 8 << 20,
        .window = 256 << 20,
        .extent = 32 << 20,
        .forward_from = 4 << 20,
        .io = LIMEJOB_IO_AUTO,
        .job_timeout = 5.0,
    };
    memset(command, 0, sizeof *command);
    int words = limefs_options_find_run(argc, argv);
    command->args = (struct fuse_args)FUSE_ARGS_INIT(words, argv);
    command->run = words < argc ? argv + words + 1 : NULL;
    if (command->run && !*command->run)
        return log_usage_error("option '--run' requires a command");
    int err = parse_arguments(&state);
    for (int i = 0; i < VALUE_COUNT; i++)
        free(state.text[i]);
    if (err)
        return err;
    int status = print_information(command);
    if (status)
        return status;
    set_rw(&state);
    if (!command->source)
        return log_usage_error("no container or directory given");
    if (!command->fuse.mountpoint)
        return log_usage_error("no mount point given");
    return 0;
}

int limefs_options_add_source(struct limefs_command *command, bool rw, const char *source)
{
    char *options = NULL, *name = NULL;
    /* The kernel checks file modes, so allow_other grants no more than the modes grant. */
    int failed = fuse_opt_add_opt(&options, rw ? "rw" : "ro") ||
                 fuse_opt_add_opt(&options, "default_permissions,subtype=limefs");
    if (!failed && asprintf(&name, "fsname=%s", source) < 0)
        failed = 1;
    if (!failed)
        failed = fuse_opt_add_opt_escaped(&options, name) ||
                 fuse_opt_insert_arg(&command->args, 1, "-o") ||
                 fuse_opt_insert_arg(&command->args, 2, options);
    free(name);
    free(options);
    return failed ? -ENOMEM : 0;
}

void limefs_options_release(struct limefs_command *command, struct limefs_options *options)
{
    free(options->job);
    free(options->mpirun);
    free(options->given);
    fuse_opt_free_args(&command->args);
    free(command->fuse.mountpoint);
    free(command->new_mountpoint);
    free(command->source);
}
