/* main.c - limefs-run: run a command that reads records without the mount */
#define _GNU_SOURCE
#include "complete.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "liblimefs-run.so"

enum {
    FAILED = 125, /* exit statuses, as those of env(1) */
    CANNOT_RUN = 126,
    NOT_FOUND = 127,
};

static const char help[] =
    "usage: limefs-run COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND, which reads large records in limefs mounts directly from the\n"
    "container, without FUSE, if its user may read the container and no program\n"
    "writes to it through the mount. Other requests go through the mount.\n"
    "Programs that are static, or set-user-id or set-group-id, are not affected.\n"
    "\n"
    "  -h, --help     print this\n"
    "  --version      print the version\n"
    "\n"
    "Environment:\n"
    "  LIMEFS_RUN_REPORT=1    print at exit how many bytes were read directly\n"
    "  LIMEFS_RUN_FROM=BYTES  read smaller records through the mount (default 65536)\n";

static int print_error(int status, const char *object, const char *action, const char *reason)
{
    char text[PATH_MAX];
    snprintf(text, sizeof text, "%s", object);
    limefile_text_sanitize(text, "");
    fprintf(stderr, "limefs-run: %s: %s: %s\n", text, action, reason);
    return status;
}

static int report_unknown_option(const char *option)
{
    char text[PATH_MAX];
    snprintf(text, sizeof text, "%s", option);
    limefile_text_sanitize(text, "");
    fprintf(stderr, "limefs-run: unknown option '%s'; see limefs-run --help\n", text);
    return FAILED;
}

/* Finds the library in this program's directory (installed) or in ../lib (a build). */
static bool find_library(char path[PATH_MAX])
{
    static const char *const places[] = {LIBRARY, "../lib/" LIBRARY};
    char self[PATH_MAX], place[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    for (int i = 0; slash && i < 2; i++) {
        int len = snprintf(place, PATH_MAX, "%.*s/%s", (int)(slash - self), self, places[i]);
        if (len < PATH_MAX && realpath(place, path) && access(path, R_OK) == 0)
            return true;
    }
    snprintf(path, PATH_MAX, LIBRARY);
    return false;
}

/* Puts the library before those that LD_PRELOAD has already. */
static int preload(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *all;
    if (strpbrk(library, " :"))
        return print_error(FAILED, library, "preload",
                           "a path with a space or colon is not allowed; install elsewhere");
    if (asprintf(&all, "%s%s%s", library, others && *others ? ":" : "", others ? others : "") <
        0)
        return print_error(FAILED, library, "preload", "out of memory");
    int err = setenv("LD_PRELOAD", all, 1);
    free(all);
    return err ? print_error(FAILED, library, "preload", strerror(errno)) : 0;
}

int main(int argc, char **argv)
{
    static const struct option_rule rules[] = {{"version", .kind = OPTION_FLAG}, {NULL}};
    char library[PATH_MAX];
    if (limefile_complete_requested(argc, argv)) {
        struct limefile_completion c;
        limefile_complete(rules, help, argc - 2, argv + 2, stdout, &c);
        return fflush(stdout) == 0 ? 0 : FAILED;
    }
    if (argc > 1 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
        fputs(help, stdout);
        return fflush(stdout) == 0 ? 0 : FAILED;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("limefs-run " LIMEFS_VERSION);
        return fflush(stdout) == 0 ? 0 : FAILED;
    }
    char **command = argv + 1;
    if (*command && strcmp(*command, "--") == 0)
        command++;
    else if (*command && **command == '-')
        return report_unknown_option(*command);
    if (!*command) {
        fputs("limefs-run: no command given; see limefs-run --help\n", stderr);
        return FAILED;
    }
    if (!find_library(library))
        return print_error(FAILED, library, "find",
                           "no such file; run 'make' or reinstall limefs");
    int err = preload(library);
    if (err)
        return err;
    execvp(*command, command);
    return print_error(errno == ENOENT ? NOT_FOUND : CANNOT_RUN, *command, "run",
                       strerror(errno));
}
