/* options.c - the command line of limefs-io */
#include "options.h"
#include "complete.h"
#include "option.h"
#include "report.h"
#include "suggest.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum {
    USAGE = 2,
    STRIPE_MAX = 1 << 30, /* Lemon's limit, in bytes */
    SHOWN_MAX = 4096,     /* bytes of an argument that a message shows */
};

static const char help[] =
    "usage: mpirun -n N limefs-io --socket PATH [option ...]\n"
    "       limefs-io --stop PATH\n"
    "       limefs-io --status [--bytes | --json] PATH\n"
    "\n"
    "The MPI job that reads and writes containers for limefs, all ranks together. It\n"
    "serves the mounts of its own user until --stop or a signal ends it.\n"
    "\n"
    "  --socket PATH     where clients find it; mode 0600\n"
    "  --stripe BYTES    ranks divide extents at multiples of it (K, M: units;\n"
    "                    default: as the file states, or 1M)\n"
    "  --io METHOD       auto (default), posix, or MPI-IO: independent, collective\n"
    "  --hint KEY=VALUE  for MPI_File_open; may be repeated\n"
    "  --ready FD        write \"ready\" to rank 0's descriptor FD once it serves\n"
    "                    (mpirun forwards only 1 and 2)\n"
    "  --lifeline FD     end when rank 0's descriptor FD is closed (0: when the\n"
    "                    standard input of mpirun is closed)\n"
    "  --stop PATH       end the job that serves PATH, and wait for it\n"
    "  --status PATH     show job status\n"
    "  --bytes           with --status: exact sizes\n"
    "  --json            with --status: as JSON, for programs\n"
    "  -h, --help        print this\n"
    "  --version         print the version\n";

/* Prints "what: reason". Returns the exit status. */
static int usage_error(const char *what, const char *reason)
{
    job_report("%.*s: %s; try limefs-io --help", SHOWN_MAX, what, reason);
    return USAGE;
}

static int parse_hint(const void *context, char *text)
{
    struct job_options *options = *(struct job_options *const *)context;
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return usage_error(text, "hint must be KEY=VALUE");
    if (options->hint_count == JOB_HINTS_MAX)
        return usage_error(text, "too many hints");
    *equals = '\0';
    options->hint_keys[options->hint_count] = text;
    options->hint_values[options->hint_count++] = equals + 1;
    return 0;
}

static int set_path(const void *context, const char *path)
{
    struct job_options *options = *(struct job_options *const *)context;
    if (options->socket_path)
        return usage_error(path, "unexpected argument");
    if (!*path || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return usage_error(path, "socket path must have 1 to 107 bytes");
    options->socket_path = path;
    return 0;
}

/* path: NULL unless given as --OPTION=PATH. */
static int select_mode(const void *context, enum job_mode mode, const char *path)
{
    struct job_options *options = *(struct job_options *const *)context;
    if (options->mode)
        return usage_error("--socket, --stop, --status", "give only one of them");
    options->mode = mode;
    return path ? set_path(context, path) : 0;
}

static int set_serve_mode(const void *context, char *path)
{
    return select_mode(context, JOB_SERVE, path);
}

static int set_stop_mode(const void *context, char *path)
{
    return select_mode(context, JOB_STOP, path);
}

static int set_status_mode(const void *context, char *path)
{
    return select_mode(context, JOB_STATUS, path);
}

int job_options_parse(struct job_options *options, int argc, char **argv)
{
    bool version = false;
    char reason[OPTION_ERROR_BYTES];
    const struct option_rule rules[] = {
        {"socket", 0, OPTION_CALL_TEXT, .handle = set_serve_mode},
        {"stop", 0, OPTION_CALL_OPTIONAL, .handle = set_stop_mode},
        {"status", 0, OPTION_CALL_OPTIONAL, .handle = set_status_mode},
        {"stripe", 0, OPTION_SIZE, &options->stripe_bytes, 1, .most = STRIPE_MAX},
        {"io", 0, OPTION_WORD, &options->io, .words = limejob_io_names},
        {"hint", 0, OPTION_CALL_TEXT, .handle = parse_hint},
        {"ready", 0, OPTION_UNSIGNED, &options->ready_fd, 0, .most = INT_MAX},
        {"lifeline", 0, OPTION_UNSIGNED, &options->lifeline_fd, 0, .most = INT_MAX},
        {"bytes", 0, OPTION_FLAG, .value = &limefile_sizes_are_exact},
        {"json", 0, OPTION_FLAG, .value = &options->json},
        {"version", 0, OPTION_STOP, .value = &version},
        {NULL},
    };
    *options = (struct job_options){.io = LIMEJOB_IO_AUTO, .ready_fd = -1, .lifeline_fd = -1};
    if (limefile_complete_requested(argc, argv)) {
        struct limefile_completion c;
        limefile_complete(rules, help, argc - 2, argv + 2, stdout, &c);
        return 0;
    }
    int status = limefile_options_parse(rules, argc, argv, set_path, &options, reason);
    if (status == OPTION_HELP) {
        fputs(help, stdout);
        return 0;
    }
    if (version) {
        printf("limefs-io %s\n", LIMEFS_VERSION);
        return 0;
    }
    if (status == OPTION_INVALID)
        job_report("%s%s", reason, limefile_suggest_or(reason, "; try limefs-io --help"));
    if (status != 0)
        return USAGE;
    if (!options->mode && options->socket_path)
        return usage_error(options->socket_path, "unexpected argument");
    if (!options->mode)
        return usage_error("no --socket, --stop or --status", "give one of them");
    return options->socket_path ? -1 : usage_error("missing socket path", "give one");
}
