/* options.c - the command line of limefs */
#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <limits.h>
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
    char *verify, *readahead, *window, *extent, *forward_from, *stripe;
    bool rw, writable, by_mount; /* given; given; mount(8) has put words of its own there */
};

enum {
    KEY_RW,
    KEY_RO,
    KEY_WRITABLE,
    KEY_BY_MOUNT,
    KEY_SUBMOUNT, /* options of mount(8) and fstab that mean nothing to us */
};

#define OPTION(template, field)                             \
    {                                                       \
        template, offsetof(struct limefs_options, field), 0 \
    }

static const struct fuse_opt number_table[] = {
    OPTION("attr_timeout=%lf", attr_timeout),
    OPTION("entry_timeout=%lf", entry_timeout),
    OPTION("max_open=%u", max_open),
    OPTION("ranks=%u", ranks),
    OPTION("job=%s", job),
    OPTION("mpirun=%s", mpirun),
    OPTION("job_timeout=%lf", job_timeout),
    {"faces", offsetof(struct limefs_options, faces), 1},
    {"formats", offsetof(struct limefs_options, formats), 1},
    {"direct_io", offsetof(struct limefs_options, direct_io), 1},
    {"ino32", offsetof(struct limefs_options, ino32), 1},
    {"mkdir=container", offsetof(struct limefs_options, mkdir_container), 1},
    {"mkdir=folder", offsetof(struct limefs_options, mkdir_container), 0},
    {"allow_other", offsetof(struct limefs_options, shared), 1},
    {"allow_root", offsetof(struct limefs_options, shared), 1},
    FUSE_OPT_KEY("allow_other", FUSE_OPT_KEY_KEEP), /* these three are libfuse's, too */
    FUSE_OPT_KEY("allow_root", FUSE_OPT_KEY_KEEP),
    OPTION("max_read=%u", max_read),
    FUSE_OPT_KEY("max_read=", FUSE_OPT_KEY_KEEP),
    FUSE_OPT_END,
};

static const struct fuse_opt table[] = {
    {"verify=%s", offsetof(struct parsed, verify), 0},
    {"readahead=%s", offsetof(struct parsed, readahead), 0},
    {"window=%s", offsetof(struct parsed, window), 0},
    {"extent=%s", offsetof(struct parsed, extent), 0},
    {"forward_from=%s", offsetof(struct parsed, forward_from), 0},
    {"stripe=%s", offsetof(struct parsed, stripe), 0},
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
    "                           too (one that is mounted itself is always shown so), and\n"
    "                           complete sets of QIO's volumes NAME.vol0000 ... as NAME\n"
    "    -o verify=WHEN         verify data that have a checksum: open (before they are\n"
    "                           opened; if bad, that fails), stream (while they are read;\n"
    "                           if bad, the end is an error) or off (only on request:\n"
    "                           lime verify FILE)\n"
    "    -V   --version         print the version\n"
    "    -h   --help            print this text\n"
    "    --status [--json] MOUNTPOINT   what a mount has read, and how its job does\n"
    "\n"
    "options for parallel reads by an MPI job:\n"
    "    -o ranks=N             start a job of N ranks with the mount\n"
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
        return 1;
    }
}

static int read_size(const char *text, uint64_t *size)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (*end == 'k' || *end == 'K')
        shift = 10;
    else if (*end == 'm' || *end == 'M')
        shift = 20;
    else if (*end == 'g' || *end == 'G')
        shift = 30;
    if (end == text || errno || text[0] == '-' || end[shift ? 1 : 0] != '\0' ||
        value > UINT64_MAX >> 31)
        return -EINVAL;
    *size = (uint64_t)value << shift;
    return 0;
}

/* What is wrong with one of them, or NULL. Frees the texts. */
static const char *read_sizes(struct parsed *parsed)
{
    struct limefs_options *options = parsed->options;
    const struct {
        char *text;
        uint64_t *size;
        const char *wrong;
    } sizes[] = {
        {parsed->readahead, &options->readahead, "readahead: not a size"},
        {parsed->window, &options->window, "window: not a size"},
        {parsed->extent, &options->extent, "extent: not a size"},
        {parsed->forward_from, &options->forward_from, "forward_from: not a size"},
        {parsed->stripe, &options->stripe, "stripe: not a size"},
    };
    const char *wrong = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].text && read_size(sizes[i].text, sizes[i].size) != 0)
            wrong = sizes[i].wrong;
        free(sizes[i].text);
    }
    return wrong;
}

/* What is wrong with it, or NULL. Frees the text. */
static const char *read_verify(struct parsed *parsed)
{
    static const char *const words[] = {
        [LIMEFS_VERIFY_OFF] = "off",
        [LIMEFS_VERIFY_OPEN] = "open",
        [LIMEFS_VERIFY_STREAM] = "stream",
    };
    bool known = !parsed->verify;
    for (unsigned i = 0; i < sizeof words / sizeof *words && !known; i++)
        if (strcmp(parsed->verify, words[i]) == 0) {
            parsed->options->verify = (enum limefs_verify)i;
            known = true;
        }
    free(parsed->verify);
    return known ? NULL : "verify: open, stream or off";
}

/* The daemon will be in another folder. */
static int make_absolute(char **path)
{
    char cwd[PATH_MAX], *absolute;
    if (!*path || (*path)[0] == '/')
        return 0;
    if (!getcwd(cwd, sizeof cwd) || asprintf(&absolute, "%s/%s", cwd, *path) < 0)
        return -1;
    free(*path);
    *path = absolute;
    return 0;
}

static const char *check_job(const struct limefs_options *options)
{
    if (options->ranks && options->job)
        return "ranks= starts a job, job= uses another: give one of them";
    if (options->ranks > 100000)
        return "ranks: too many";
    if (options->extent < 1 << 20 || options->extent > 1 << 30 || options->extent % 4096)
        return "extent: 1M to 1G, a multiple of 4K";
    if (options->stripe > 1 << 30)
        return "stripe: at most 1G";
    if (options->window < 2 * options->extent)
        return "window: it must hold two extents";
    if (!(options->job_timeout >= 0.1 && options->job_timeout <= 86400))
        return "job_timeout: not a time from 0.1 s to a day";
    return NULL;
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
    if (fuse_opt_parse(&command->args, options, number_table, NULL) != 0 ||
        fuse_opt_parse(&command->args, &parsed, table, on_argument) != 0 ||
        fuse_parse_cmdline(&command->args, &command->fuse) != 0) {
        read_sizes(&parsed);
        read_verify(&parsed);
        return complain("nothing was mounted"); /* libfuse has said why */
    }
    const char *wrong = read_sizes(&parsed), *verify = read_verify(&parsed);
    if (!wrong)
        wrong = verify;
    if (!wrong)
        wrong = make_absolute(&options->job) == 0 ? check_job(options) : "job: no such path";
    if (wrong)
        return complain(wrong);
    if (!(options->attr_timeout >= 0 && options->entry_timeout >= 0)) /* nor NaN */
        return complain("attr_timeout, entry_timeout: not a time");
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
