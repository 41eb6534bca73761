/* options.c - the command line of limefs */
#define _GNU_SOURCE
#include "options.h"
#include "values.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

/* What fuse_opt_parse() fills in. */
struct parsed {
    struct limefs_options *options;
    struct limefs_command *command;
    struct limefs_values values;
    bool rw, writable, by_mount; /* given; given; mount(8) has put words of its own there */
    char wrong[LIMEFS_WRONG_MAX];
};

enum {
    KEY_RW,
    KEY_RO,
    KEY_WRITABLE,
    KEY_BY_MOUNT,
    KEY_SUBMOUNT, /* options of mount(8) and fstab that mean nothing to us */
};

#define OPTION(template, field, value)                          \
    {                                                           \
        template, offsetof(struct limefs_options, field), value \
    }

static const struct fuse_opt flag_table[] = {
    OPTION("faces", faces, 1),
    OPTION("formats", formats, 1),
    OPTION("direct_io", direct_io, 1),
    OPTION("ino32", ino32, 1),
    OPTION("allow_other", shared, 1),
    OPTION("allow_root", shared, 1),
    FUSE_OPT_KEY("allow_other", FUSE_OPT_KEY_KEEP), /* these are libfuse's, too */
    FUSE_OPT_KEY("allow_root", FUSE_OPT_KEY_KEEP),
    FUSE_OPT_END,
};

#define VALUE(name, row)                                         \
    {                                                            \
        name "=%s", offsetof(struct parsed, values.text[row]), 0 \
    }

static const struct fuse_opt table[] = {
    VALUE("verify", LIMEFS_VALUE_VERIFY),
    VALUE("mkdir", LIMEFS_VALUE_MKDIR),
    VALUE("readahead", LIMEFS_VALUE_READAHEAD),
    VALUE("window", LIMEFS_VALUE_WINDOW),
    VALUE("extent", LIMEFS_VALUE_EXTENT),
    VALUE("forward_from", LIMEFS_VALUE_FORWARD_FROM),
    VALUE("stripe", LIMEFS_VALUE_STRIPE),
    VALUE("ranks", LIMEFS_VALUE_RANKS),
    VALUE("max_open", LIMEFS_VALUE_MAX_OPEN),
    VALUE("max_read", LIMEFS_VALUE_MAX_READ),
    VALUE("max_threads", LIMEFS_VALUE_MAX_THREADS),
    VALUE("max_idle_threads", LIMEFS_VALUE_MAX_IDLE_THREADS),
    VALUE("attr_timeout", LIMEFS_VALUE_ATTR_TIMEOUT),
    VALUE("entry_timeout", LIMEFS_VALUE_ENTRY_TIMEOUT),
    VALUE("job_timeout", LIMEFS_VALUE_JOB_TIMEOUT),
    VALUE("job", LIMEFS_VALUE_JOB),
    VALUE("mpirun", LIMEFS_VALUE_MPIRUN),
    FUSE_OPT_KEY("max_read=", FUSE_OPT_KEY_KEEP), /* these are libfuse's, too */
    FUSE_OPT_KEY("max_threads=", FUSE_OPT_KEY_KEEP),
    FUSE_OPT_KEY("max_idle_threads=", FUSE_OPT_KEY_KEEP),
    FUSE_OPT_KEY("rw", KEY_RW),
    FUSE_OPT_KEY("ro", KEY_RO),
    FUSE_OPT_KEY("writable", KEY_WRITABLE),
    FUSE_OPT_KEY("dev", KEY_BY_MOUNT),
    FUSE_OPT_KEY("nodev", KEY_BY_MOUNT),
    FUSE_OPT_KEY("suid", KEY_BY_MOUNT),
    FUSE_OPT_KEY("nosuid", KEY_BY_MOUNT),
    FUSE_OPT_KEY("auto", KEY_SUBMOUNT),
    FUSE_OPT_KEY("noauto", KEY_SUBMOUNT),
    FUSE_OPT_KEY("user", KEY_SUBMOUNT),
    FUSE_OPT_KEY("users", KEY_SUBMOUNT),
    FUSE_OPT_KEY("nofail", KEY_SUBMOUNT),
    FUSE_OPT_KEY("_netdev", KEY_SUBMOUNT),
    FUSE_OPT_KEY("defaults", KEY_SUBMOUNT),
    FUSE_OPT_END,
};

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

/* The first word is the source; what follows is for fuse_parse_cmdline(). */
static int on_argument(void *data, const char *arg, int key, struct fuse_args *out)
{
    struct parsed *parsed = data;
    (void)out;
    switch (key) {
    case FUSE_OPT_KEY_NONOPT:
        if (parsed->command->source)
            return 1;
        parsed->command->source = strdup(arg);
        return parsed->command->source ? 0 : -1;
    case KEY_RW:
    case KEY_RO: /* the last one counts */
        parsed->rw = key == KEY_RW;
        return 0;
    case KEY_WRITABLE:
        parsed->writable = true;
        return 0;
    case KEY_BY_MOUNT: /* for libfuse, too */
        parsed->by_mount = true;
        return 1;
    case KEY_SUBMOUNT:
        return 0;
    default:
        return limefs_values_misused(arg, parsed->wrong) ? -1 : 1;
    }
}

/* mount(8) says "rw" for whatever is not "ro"; nobody has asked for writing by that. */
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
    char text[LIMEFS_WRONG_MAX];
    snprintf(text, sizeof text, "%s%.*s%s", words[i].before, (int)(len < 200 ? len : 200), word,
             words[i].after);
    return complain(*word ? text : "nothing was mounted");
}

/* 0, or -1 after a message. */
static int parse(struct parsed *parsed)
{
    struct limefs_command *command = parsed->command;
    char said[LIMEFS_WRONG_MAX] = "";
    limefs_log_collect(said, sizeof said);
    int err = fuse_opt_parse(&command->args, parsed->options, flag_table, NULL) != 0 ||
              fuse_opt_parse(&command->args, parsed, table, on_argument) != 0;
    if (!err && limefs_values_read(&parsed->values, parsed->options, parsed->wrong) != 0)
        err = -1;
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
    limefs_values_release(&parsed.values);
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
    /* The kernel checks modes, so that allow_other shows nobody more than the files do. */
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
