/* options.c - the command line of limefs-io */
#include "options.h"
#include "optionerror.h"
#include "say.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum {
    USAGE = 2,
    STRIPE_MAX = 1 << 30, /* Lemon's */
    WORD_MAX = 4096,      /* bytes of an argument that a message repeats */
};

static const char help[] =
    "usage: mpirun -n N limefs-io --socket PATH [option ...]\n"
    "       limefs-io --stop PATH\n"
    "       limefs-io --status [--json] PATH\n"
    "\n"
    "The MPI job that reads and writes containers for limefs, all ranks together. It\n"
    "serves the mounts of its own user until it is told to stop.\n"
    "\n"
    "  --socket PATH     where clients find it; mode 0600\n"
    "  --stripe BYTES    ranks divide extents at multiples of it (K, M: units;\n"
    "                    default: what the file says, or 1M)\n"
    "  --hint KEY=VALUE  for MPI_File_open; may be repeated\n"
    "  --ready FD        write \"ready\" to rank 0's descriptor FD once it serves\n"
    "                    (mpirun forwards only 1 and 2)\n"
    "  --lifeline FD     end when rank 0's descriptor FD is at its end (0: when the\n"
    "                    standard input of mpirun is closed)\n"
    "  --stop PATH       end the job that serves PATH, and wait for it\n"
    "  --status PATH     show job status; --json: for programs\n"
    "  --help, --version\n";

/* Prints "what: reason". */
static int wrong(const char *what, const char *reason)
{
    job_say("%.*s: %s; try limefs-io --help", WORD_MAX, what, reason);
    return USAGE;
}

/* 1 .. most, with a unit if there may be one; -1 if it is none. */
static int64_t number(const char *text, int64_t most, bool units)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    int64_t unit = 1;
    if (end == text || errno || value < 0 || *text < '0' || *text > '9')
        return -1;
    if (units && (*end == 'K' || *end == 'k'))
        unit = 1024, end++;
    else if (units && (*end == 'M' || *end == 'm'))
        unit = 1024 * 1024, end++;
    return *end || value > most / unit ? -1 : value * unit;
}

static int take_hint(struct job_options *options, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return wrong(text, "a hint is KEY=VALUE");
    if (options->hints == JOB_HINTS_MAX)
        return wrong(text, "too many hints");
    *equals = '\0';
    options->hint_keys[options->hints] = text;
    options->hint_values[options->hints++] = equals + 1;
    return -1;
}

static int take_descriptor(int *fd, const char *text)
{
    int64_t value = number(text, INT_MAX, false);
    if (value < 0)
        return wrong(text, "not a file descriptor");
    *fd = (int)value;
    return -1;
}

static int take_stripe(struct job_options *options, const char *text)
{
    options->stripe = number(text, STRIPE_MAX, true);
    return options->stripe > 0 ? -1 : wrong(text, "a stripe is 1 byte to 1024M");
}

static int take_path(struct job_options *options, const char *path)
{
    if (options->socket)
        return wrong(path, "unexpected argument");
    if (!*path || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return wrong(path, "a socket's path has 1 to 107 bytes");
    options->socket = path;
    return -1;
}

/* path: NULL if it was not given as --OPTION=PATH. */
static int take_mode(struct job_options *options, enum job_mode mode, const char *path)
{
    if (options->mode)
        return wrong("--socket, --stop, --status", "only one of them can be given");
    options->mode = mode;
    return path ? take_path(options, path) : -1;
}

static const char shorts[] = "-"; /* arguments come as options 1 in their order */

static int refuse(char **argv, const struct option *all)
{
    char text[WORD_MAX];
    limefile_option_error(text, sizeof text, argv, shorts, all);
    job_say("%s; try limefs-io --help", text);
    return USAGE;
}

static int take(struct job_options *options, int option)
{
    switch (option) {
    case 's':
        return take_mode(options, JOB_SERVE, optarg);
    case 'q':
        return take_mode(options, JOB_STOP, optarg);
    case 't':
        return take_mode(options, JOB_STATUS, optarg);
    case 'b':
        return take_stripe(options, optarg);
    case 'i':
        return take_hint(options, optarg);
    case 'r':
        return take_descriptor(&options->ready, optarg);
    case 'l':
        return take_descriptor(&options->lifeline, optarg);
    case 'j':
        options->json = true;
        return -1;
    case 'h':
        fputs(help, stdout);
        return 0;
    case 'v':
        printf("limefs-io %s\n", LIMEFS_VERSION);
        return 0;
    default: /* 1: an argument */
        return take_path(options, optarg);
    }
}

int job_options_parse(struct job_options *options, int argc, char **argv)
{
    static const struct option all[] = {
        {"socket", required_argument, NULL, 's'},
        {"stop", optional_argument, NULL, 'q'},
        {"status", optional_argument, NULL, 't'},
        {"stripe", required_argument, NULL, 'b'},
        {"hint", required_argument, NULL, 'i'},
        {"ready", required_argument, NULL, 'r'},
        {"lifeline", required_argument, NULL, 'l'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct job_options){.ready = -1, .lifeline = -1};
    int option;
    opterr = 0; /* getopt prints words as they are */
    while ((option = getopt_long(argc, argv, shorts, all, NULL)) != -1) {
        int code = option == '?' ? refuse(argv, all) : take(options, option);
        if (code >= 0)
            return code;
    }
    while (optind < argc) { /* after "--" */
        int code = take_path(options, argv[optind++]);
        if (code >= 0)
            return code;
    }
    if (!options->mode && options->socket)
        return wrong(options->socket, "no --socket, --stop or --status before it");
    if (!options->mode)
        return wrong("no --socket, --stop or --status", "give one of them");
    return options->socket ? -1 : wrong("no path of a socket", "give one");
}
