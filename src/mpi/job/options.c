/* options.c - the command line of limefs-io */
#include "options.h"
#include "option.h"
#include "say.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum {
    USAGE = 2,
    STRIPE_MAX = 1 << 30, /* Lemon's limit, in bytes */
    WORD_MAX = 4096,      /* bytes of an argument that a message shows */
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

/* Prints "what: reason". Returns the exit status. */
static int wrong(const char *what, const char *reason)
{
    job_say("%.*s: %s; try limefs-io --help", WORD_MAX, what, reason);
    return USAGE;
}

static int take_hint(const void *context, char *text)
{
    struct job_options *options = *(struct job_options *const *)context;
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return wrong(text, "a hint is KEY=VALUE");
    if (options->hints == JOB_HINTS_MAX)
        return wrong(text, "too many hints");
    *equals = '\0';
    options->hint_keys[options->hints] = text;
    options->hint_values[options->hints++] = equals + 1;
    return 0;
}

static int take_path(const void *context, const char *path)
{
    struct job_options *options = *(struct job_options *const *)context;
    if (options->socket)
        return wrong(path, "unexpected argument");
    if (!*path || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return wrong(path, "a socket's path has 1 to 107 bytes");
    options->socket = path;
    return 0;
}

/* path: NULL unless given as --OPTION=PATH. */
static int take_mode(const void *context, enum job_mode mode, const char *path)
{
    struct job_options *options = *(struct job_options *const *)context;
    if (options->mode)
        return wrong("--socket, --stop, --status", "only one of them can be given");
    options->mode = mode;
    return path ? take_path(context, path) : 0;
}

static int take_socket(const void *context, char *path)
{
    return take_mode(context, JOB_SERVE, path);
}

static int take_stop(const void *context, char *path)
{
    return take_mode(context, JOB_STOP, path);
}

static int take_status(const void *context, char *path)
{
    return take_mode(context, JOB_STATUS, path);
}

int job_options_parse(struct job_options *options, int argc, char **argv)
{
    bool version = false;
    char why[OPTION_WHY_BYTES];
    const struct option_rule rules[] = {
        {"socket", 0, OPTION_CALL_TEXT, .take = take_socket},
        {"stop", 0, OPTION_CALL_EITHER, .take = take_stop},
        {"status", 0, OPTION_CALL_EITHER, .take = take_status},
        {"stripe", 0, OPTION_SIZE, &options->stripe, 1, .most = STRIPE_MAX},
        {"hint", 0, OPTION_CALL_TEXT, .take = take_hint},
        {"ready", 0, OPTION_UNSIGNED, &options->ready, 0, .most = INT_MAX},
        {"lifeline", 0, OPTION_UNSIGNED, &options->lifeline, 0, .most = INT_MAX},
        {"json", 0, OPTION_FLAG, .value = &options->json},
        {"version", 0, OPTION_LAST, .value = &version},
        {NULL},
    };
    *options = (struct job_options){.ready = -1, .lifeline = -1};
    int status = limefile_options_read(rules, argc, argv, take_path, &options, why);
    if (status == OPTION_ASKS_HELP) {
        fputs(help, stdout);
        return 0;
    }
    if (version) {
        printf("limefs-io %s\n", LIMEFS_VERSION);
        return 0;
    }
    if (status == OPTION_IS_WRONG)
        job_say("%s; try limefs-io --help", why);
    if (status != 0)
        return USAGE;
    if (!options->mode && options->socket)
        return wrong(options->socket, "no --socket, --stop or --status before it");
    if (!options->mode)
        return wrong("no --socket, --stop or --status", "give one of them");
    return options->socket ? -1 : wrong("no path of a socket", "give one");
}
