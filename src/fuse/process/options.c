/* options.c - parse the command line of limefs */
#define _GNU_SOURCE
#include "options.h"
#include "option.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

enum {
    WRONG_MAX = 512, /* bytes of an error message */
    RANKS_MAX = 4096,
    RANKS_EACH = 16, /* most ranks for each processor of this host, unless mpirun= is given */
};

enum kind {
    KIND_VALUE, /* has a value, as its rule describes */
    KIND_PATH,
    KIND_FLAG, /* sets an int; this kind and those below take no value */
    KIND_RW,
    KIND_RO,
    KIND_WRITABLE,
    KIND_BY_MOUNT, /* options that mount(8) adds */
    KIND_SUBMOUNT, /* options of mount(8) and fstab without a meaning here */
};

/* Options with a value, which is parsed after the whole command line is read. */
enum {
    READAHEAD,
    WINDOW,
    EXTENT,
    FORWARD_FROM,
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
    VALUES,
};

#define AT(field)   .where = 1 + offsetof(struct limefs_options, field)
#define FOR_LIBFUSE .is_libfuses = true

static const char *const verify_words[] = {
    [LIMEFS_VERIFY_OFF] = "off",
    [LIMEFS_VERIFY_OPEN] = "open",
    [LIMEFS_VERIFY_STREAM] = "stream",
    NULL,
};
static const char *const mkdir_words[] = {"folder", "container", NULL};

static const struct mount_option {
    struct option_rule rule; /* its `value` is set by read_value(), from `where` */
    size_t where;            /* 1 + offset in struct limefs_options; 0: not stored */
    enum kind kind;
    bool is_libfuses; /* libfuse gets it, too */
} table[] = {
    [READAHEAD] = {{"readahead", 0, OPTION_SIZE, NULL, 0, 1 << 30,
                    .expected = "0, or 4K to 1G"},
                   AT(readahead)},
    [WINDOW] = {{"window", 0, OPTION_SIZE, NULL, 2 << 20, .most = 0x1p40}, AT(window)},
    [EXTENT] = {{"extent", 0, OPTION_SIZE, NULL, 1 << 20, 1 << 30,
                 .expected = "1M to 1G, a multiple of 4K"},
                AT(extent)},
    [FORWARD_FROM] = {{"forward_from", 0, OPTION_SIZE, NULL, 0, .most = 0x1p40},
                      AT(forward_from)},
    [STRIPE] = {{"stripe", 0, OPTION_SIZE, NULL, 1, .most = 1 << 30}, AT(stripe)},
    [RANKS] = {{"ranks", 0, OPTION_UNSIGNED, NULL, 1, .most = RANKS_MAX}, AT(ranks)},
    [MAX_OPEN] = {{"max_open", 0, OPTION_UNSIGNED, NULL, 0, .most = 1000000}, AT(max_open)},
    [MAX_READ] = {{"max_read", 0, OPTION_UNSIGNED, NULL, 4096, 1 << 20,
                   .expected = "bytes, 4096 to 1048576"},
                  AT(max_read),
                  FOR_LIBFUSE},
    [MAX_THREADS] = {{"max_threads", 0, OPTION_UNSIGNED, NULL, 1, .most = 100000}, FOR_LIBFUSE},
    [MAX_IDLE_THREADS] = {{"max_idle_threads", 0, OPTION_UNSIGNED, NULL, 0, .most = 100000},
                          FOR_LIBFUSE},
    [ATTR_TIMEOUT] = {{"attr_timeout", 0, OPTION_REAL, NULL, 0, 1e9,
                       .expected = "seconds, from 0"},
                      AT(attr_timeout)},
    [ENTRY_TIMEOUT] = {{"entry_timeout", 0, OPTION_REAL, NULL, 0, 1e9,
                        .expected = "seconds, from 0"},
                       AT(entry_timeout)},
    [JOB_TIMEOUT] = {{"job_timeout", 0, OPTION_REAL, NULL, 0.1, 86400,
                      .expected = "seconds, 0.1 to 86400"},
                     AT(job_timeout)},
    [VERIFY] = {{"verify", 0, OPTION_WORD, .words = verify_words}, AT(verify)},
    [MKDIR] = {{"mkdir", 0, OPTION_WORD, .words = mkdir_words}, AT(mkdir_container)},
    [JOB] = {{.name = "job"}, .kind = KIND_PATH},
    [MPIRUN] = {{.name = "mpirun"}, .kind = KIND_PATH},
    {{.name = "faces"}, AT(faces), KIND_FLAG},
    {{.name = "formats"}, AT(formats), KIND_FLAG},
    {{.name = "direct_io"}, AT(direct_io), KIND_FLAG},
    {{.name = "ino32"}, AT(ino32), KIND_FLAG},
    {{.name = "allow_other"}, AT(shared), KIND_FLAG, FOR_LIBFUSE},
    {{.name = "allow_root"}, AT(shared), KIND_FLAG, FOR_LIBFUSE},
    {{.name = "rw"}, .kind = KIND_RW},
    {{.name = "ro"}, .kind = KIND_RO},
    {{.name = "writable"}, .kind = KIND_WRITABLE},
    {{.name = "dev"}, .kind = KIND_BY_MOUNT, FOR_LIBFUSE},
    {{.name = "nodev"}, .kind = KIND_BY_MOUNT, FOR_LIBFUSE},
    {{.name = "suid"}, .kind = KIND_BY_MOUNT, FOR_LIBFUSE},
    {{.name = "nosuid"}, .kind = KIND_BY_MOUNT, FOR_LIBFUSE},
    {{.name = "auto"}, .kind = KIND_SUBMOUNT},
    {{.name = "noauto"}, .kind = KIND_SUBMOUNT},
    {{.name = "user"}, .kind = KIND_SUBMOUNT},
    {{.name = "users"}, .kind = KIND_SUBMOUNT},
    {{.name = "nofail"}, .kind = KIND_SUBMOUNT},
    {{.name = "_netdev"}, .kind = KIND_SUBMOUNT},
    {{.name = "defaults"}, .kind = KIND_SUBMOUNT},
};

enum {
    OPTIONS = sizeof table / sizeof *table,
};

/* State while fuse_opt_parse() reads the command line. */
struct parsed {
    struct limefs_options *options;
    struct limefs_command *command;
    char *text[VALUES];          /* as given; NULL: not given */
    bool rw, writable, by_mount; /* rw, not ro, came last; writable; options of mount(8) */
    char wrong[WRONG_MAX];
};

__attribute__((format(printf, 2, 3))) static int refuse(char wrong[WRONG_MAX],
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(wrong, WRONG_MAX, format, args);
    va_end(args);
    return -1;
}

/* ---- values ---- */

static int read_value(const struct mount_option *option, const char *text,
                      struct limefs_options *options, char wrong[WRONG_MAX])
{
    char why[OPTION_WHY_BYTES];
    int64_t ignored;
    struct option_rule rule = option->rule;
    rule.value = option->where ? (char *)options + option->where - 1 : (void *)&ignored;
    return limefile_option_value(&rule, rule.name, text, why) ? 0 : refuse(wrong, "%s", why);
}

/* Moves or copies the text to *path, as an absolute path: the daemon changes its directory. */
static int read_path(const struct mount_option *option, char **text, char **path,
                     char wrong[WRONG_MAX])
{
    char cwd[PATH_MAX];
    if (!**text)
        return refuse(wrong, "option '%s' requires a value", option->rule.name);
    if (**text != '/') {
        if (!getcwd(cwd, sizeof cwd) || asprintf(path, "%s/%s", cwd, *text) < 0) {
            *path = NULL;
            return refuse(wrong, "%s: %s", option->rule.name, strerror(errno));
        }
        return 0;
    }
    *path = *text;
    *text = NULL;
    return 0;
}

static int read_job(char **text, struct limefs_options *options, char wrong[WRONG_MAX])
{
    const struct mount_option *job = &table[JOB];
    if (read_path(job, text, &options->job, wrong) != 0)
        return -1;
    if (strlen(options->job) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return refuse(wrong, "job: %.100s...: the path of a socket has at most 107 bytes",
                      options->job);
    return 0;
}

/* Like a shell, searches PATH for a name without a slash. */
static int read_mpirun(char **text, struct limefs_options *options, char wrong[WRONG_MAX])
{
    const struct mount_option *mpirun = &table[MPIRUN];
    memmove(*text, *text + strspn(*text, " "), strlen(*text + strspn(*text, " ")) + 1);
    char *slash = strchr(*text, '/');
    if (!**text || (slash && slash < *text + strcspn(*text, " ")))
        return read_path(mpirun, text, &options->mpirun, wrong);
    options->mpirun = *text;
    *text = NULL;
    return 0;
}

/* ---- options that depend on each other ---- */

static int check_together(const struct limefs_options *options, char wrong[WRONG_MAX])
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN), most = processors * RANKS_EACH;
    if (options->readahead && options->readahead < 4096)
        return refuse(wrong, "readahead: invalid value '%llu' (0, or 4K to 1G)",
                      (unsigned long long)options->readahead);
    if (options->ranks && options->job)
        return refuse(wrong, "ranks= starts a job, job= uses another: give one of them");
    if (options->ranks && !options->mpirun && options->ranks > (unsigned long)most)
        return refuse(wrong,
                      "ranks: %u ranks for %ld processors of this host; at most %ld, unless "
                      "mpirun= starts them on other hosts, too",
                      options->ranks, processors, most);
    if (options->extent % 4096)
        return refuse(wrong, "extent: invalid value '%llu' (1M to 1G, a multiple of 4K)",
                      (unsigned long long)options->extent);
    if (options->window < 2 * options->extent)
        return refuse(wrong, "window: it must hold two extents, %lluK",
                      (unsigned long long)options->extent / 512);
    return 0;
}

/* Warns of options that concern a job if the mount has no job. */
static void warn_of_no_effect(char *const text[VALUES], const struct limefs_options *options)
{
    static const struct {
        int value;
        bool needs_ranks; /* has an effect only on a job that the mount starts */
    } of_job[] = {
        {WINDOW, false},
        {EXTENT, false},
        {JOB_TIMEOUT, false},
        {STRIPE, true},
    };
    for (size_t i = 0; i < sizeof of_job / sizeof *of_job; i++)
        if (text[of_job[i].value] && !options->ranks &&
            (of_job[i].needs_ranks || !options->job))
            limefs_log(LOG_WARNING, "%s: no effect without ranks=%s",
                       table[of_job[i].value].rule.name,
                       of_job[i].needs_ranks ? "" : " or job=");
    if (options->mpirun && !options->ranks)
        limefs_log(LOG_WARNING, "mpirun: no effect without ranks=");
}

static int read_values(char *text[VALUES], struct limefs_options *options,
                       char wrong[WRONG_MAX])
{
    for (int i = 0; i < VALUES; i++)
        if (text[i] && table[i].kind == KIND_VALUE &&
            read_value(&table[i], text[i], options, wrong) != 0)
            return -1;
    if (text[JOB] && read_job(&text[JOB], options, wrong) != 0)
        return -1;
    if (text[MPIRUN] && read_mpirun(&text[MPIRUN], options, wrong) != 0)
        return -1;
    if (check_together(options, wrong) != 0)
        return -1;
    warn_of_no_effect(text, options);
    return 0;
}

/* ---- the command line ---- */

/* Finds the option of a word "NAME" or "NAME=VALUE". NULL: limefs has no such option. */
static const struct mount_option *find_option(const char *word)
{
    size_t len = strcspn(word, "=");
    for (int i = 0; i < OPTIONS; i++)
        if (strlen(table[i].rule.name) == len && strncmp(table[i].rule.name, word, len) == 0)
            return &table[i];
    return NULL;
}

static int take_value(struct parsed *parsed, const struct mount_option *option,
                      const char *value)
{
    char **text = &parsed->text[option - table];
    if (!value)
        return refuse(parsed->wrong, "option '%s' requires a value", option->rule.name);
    free(*text);
    *text = strdup(value + 1);
    return *text ? 0 : -1;
}

/* Callback of fuse_opt_parse(): the first word is the source, the others are for
 * fuse_parse_cmdline(). Returns 1 to pass the word on to libfuse, 0 to drop it, -1 on error. */
static int on_argument(void *data, const char *arg, int key, struct fuse_args *out)
{
    struct parsed *parsed = data;
    (void)out;
    if (key == FUSE_OPT_KEY_NONOPT) {
        if (parsed->command->source)
            return 1;
        parsed->command->source = strdup(arg);
        return parsed->command->source ? 0 : -1;
    }
    const struct mount_option *option = find_option(arg);
    const char *value = strchr(arg, '=');
    if (!option)
        return 1;
    if (option - table < VALUES) {
        if (take_value(parsed, option, value) != 0)
            return -1;
    } else if (value) {
        return refuse(parsed->wrong, "option '%s' takes no value", option->rule.name);
    } else if (option->kind == KIND_FLAG) {
        *(int *)((char *)parsed->options + option->where - 1) = 1;
    } else if (option->kind == KIND_RW || option->kind == KIND_RO) {
        parsed->rw = option->kind == KIND_RW; /* the last one counts */
    } else {
        parsed->writable |= option->kind == KIND_WRITABLE;
        parsed->by_mount |= option->kind == KIND_BY_MOUNT;
    }
    return option->is_libfuses;
}

static const char usage[] =
    "usage: limefs [options] CONTAINER|DIRECTORY MOUNTPOINT\n"
    "\n"
    "Shows each record of a LIME container as a file. Of a directory, each container\n"
    "below it becomes such a directory; other files stay as they are.\n"
    "\n"
    "    limefs conf.0100 /mnt/cfg          mount; the records are NNN-type\n"
    "    cat /mnt/cfg/ildg-format           a type that occurs once needs no number\n"
    "    fusermount3 -u /mnt/cfg            unmount\n"
    "\n"
    "options of limefs:\n"
    "    -o rw                  records can be changed and appended (without it nothing is\n"
    "                           ever written); the container is locked meanwhile. By\n"
    "                           mount(8) and fstab: writable\n"
    "    -o mkdir=container     mkdir in a tree makes a container of any name; without it\n"
    "                           only of one that ends in .lime, else a folder\n"
    "    -o readahead=SIZE      how far the kernel reads ahead, K or M; 0 leaves its own\n"
    "                           setting (8M; takes effect when mounted by root)\n"
    "    -o attr_timeout=SEC    how long the kernel may keep attributes (1.0)\n"
    "    -o entry_timeout=SEC   how long the kernel may keep names (1.0)\n"
    "    -o max_open=N          containers of a tree kept open for later (128)\n"
    "    -o ino32               inode numbers of 32 bits, for 32-bit programs that know no\n"
    "                           larger ones (\"Value too large for defined data type\")\n"
    "    -o direct_io           read and write large records around this mount's page cache:\n"
    "                           less memory, fast for requests of 1 MiB, slow for small ones\n"
    "    -o max_read=BYTES      the largest request of the kernel (1 MiB)\n"
    "    -o faces               list the files in other forms that are beside each field's\n"
    "                           record (.npy, .h5, .zarr, .t); they are there without it\n"
    "    -o formats             in a tree, show NERSC, MILC and openQCD files as containers,\n"
    "                           too (one that is mounted itself is always shown so)\n"
    "    -o verify=WHEN         verify data that have a checksum: open (before they are\n"
    "                           opened; if bad, that fails), stream (while they are read;\n"
    "                           if bad, the end is an error) or off (only on request:\n"
    "                           lime verify FILE)\n"
    "    -V   --version         print the version\n"
    "    -h   --help            print this text\n"
    "    --status [--json] MOUNTPOINT   print what a mount has read, and the state of its job\n"
    "\n"
    "options for parallel reads by an MPI job:\n"
    "    -o ranks=N             start a job of N ranks with the mount, 1 to 4096\n"
    "    -o job=SOCKET          use one that runs: see limefs-io(1)\n"
    "    -o mpirun=COMMAND      what starts the job (mpirun); words are separated by spaces\n"
    "    -o forward_from=SIZE   a reader that has gone on for so long is forwarded (4M)\n"
    "    -o extent=SIZE         what the job reads at once (32M)\n"
    "    -o stripe=SIZE         the ranks' parts begin at multiples of it (what MPI knows of\n"
    "                           the file, or 1M); with ranks=\n"
    "    -o window=SIZE         memory for what it reads ahead (256M)\n"
    "    -o job_timeout=SEC     wait so long for it, then read locally (5)\n"
    "\n"
    "options of FUSE:\n";

/* mount(8) adds "rw" to every mount that is not "ro", so it does not ask for writing. */
static void decide_on_writing(const struct parsed *parsed)
{
    parsed->options->rw = parsed->writable || (parsed->rw && !parsed->by_mount);
    if (parsed->rw && !parsed->options->rw)
        limefs_log(LOG_NOTICE, "mounted read-only; with mount(8) and fstab, -o writable mounts "
                               "for writing");
}

static int show(struct limefs_command *command)
{
    if (command->fuse.show_version) {
        printf("limefs %s\n", LIMEFS_VERSION);
        printf("FUSE library version %s\n", fuse_pkgversion());
        return 1;
    }
    if (command->fuse.show_help) {
        fputs(usage, stdout);
        fuse_cmdline_help();
        fuse_lowlevel_help();
        return 1;
    }
    return 0;
}

static int complain(const char *what)
{
    limefs_log(LOG_ERR, "%s; see limefs --help", what);
    return -1;
}

int limefs_options_complain(const char *from_libfuse)
{
    static const struct {
        const char *theirs, *before, *after;
    } words[] = {
        {"fuse: unknown option(s): `", "unknown option '", "'"},
        {"fuse: invalid parameter in option `", "option '", "': not a valid value"},
        {"fuse: missing argument after `", "option '", "' requires a value"},
        {"fuse: invalid argument `", "unexpected argument '", "'"},
        {"fuse: ", "", ""},
        {"", "", ""},
    };
    size_t i = 0;
    while (strncmp(from_libfuse, words[i].theirs, strlen(words[i].theirs)) != 0)
        i++;
    const char *word = from_libfuse + strlen(words[i].theirs);
    if (strncmp(word, "-o ", 3) == 0)
        word += 3;
    size_t len = strcspn(word, "\n");
    if (*words[i].after && len > 0 && word[len - 1] == '\'')
        len--;
    char text[WRONG_MAX];
    snprintf(text, sizeof text, "%s%.*s%s", words[i].before, (int)(len < 200 ? len : 200), word,
             words[i].after);
    return complain(*word ? text : "nothing was mounted");
}

/* Returns 0, or -1 after it logged a message. */
static int parse(struct parsed *parsed)
{
    struct limefs_command *command = parsed->command;
    char said[WRONG_MAX] = "";
    limefs_log_collect(said, sizeof said);
    int err = fuse_opt_parse(&command->args, parsed, NULL, on_argument);
    if (!err)
        err = read_values(parsed->text, parsed->options, parsed->wrong);
    if (!err)
        err = fuse_parse_cmdline(&command->args, &command->fuse);
    limefs_log_collect(NULL, 0);
    if (!err)
        return 0;
    return parsed->wrong[0] ? complain(parsed->wrong) : limefs_options_complain(said);
}

int limefs_options_read(int argc, char *argv[], struct limefs_command *command,
                        struct limefs_options *options)
{
    struct parsed parsed = {.options = options, .command = command};
    *options = (struct limefs_options){
        .attr_timeout = 1.0,
        .entry_timeout = 1.0,
        .max_open = 128,
        .readahead = 8 << 20,
        .window = 256 << 20,
        .extent = 32 << 20,
        .forward_from = 4 << 20,
        .job_timeout = 5.0,
    };
    memset(command, 0, sizeof *command);
    struct fuse_args given = FUSE_ARGS_INIT(argc, argv);
    command->args = given;
    int err = parse(&parsed);
    for (int i = 0; i < VALUES; i++)
        free(parsed.text[i]);
    if (err)
        return err;
    int done = show(command);
    if (done)
        return done;
    decide_on_writing(&parsed);
    if (!command->source)
        return complain("no container or directory given");
    if (!command->fuse.mountpoint)
        return complain("no mount point given");
    return 0;
}

int limefs_options_finish(struct limefs_command *command, bool rw, const char *source)
{
    char *options = NULL, *name = NULL;
    /* The kernel checks modes, so allow_other grants other users no more than the files do. */
    int bad = fuse_opt_add_opt(&options, rw ? "rw" : "ro") ||
              fuse_opt_add_opt(&options, "default_permissions,subtype=limefs");
    if (!bad && asprintf(&name, "fsname=%s", source) < 0)
        bad = 1;
    if (!bad)
        bad = fuse_opt_add_opt_escaped(&options, name) ||
              fuse_opt_insert_arg(&command->args, 1, "-o") ||
              fuse_opt_insert_arg(&command->args, 2, options);
    free(name);
    free(options);
    return bad ? -ENOMEM : 0;
}

void limefs_options_release(struct limefs_command *command, struct limefs_options *options)
{
    free(options->job);
    free(options->mpirun);
    fuse_opt_free_args(&command->args);
    free(command->fuse.mountpoint);
    free(command->source);
}
