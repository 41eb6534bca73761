/* status.c - limefs --status: print the statistics of a mount */
#include "status.h"
#include "job.h"
#include "text.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <syslog.h>

static double get_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_size(const char *label, const json_t *stats, const char *key)
{
    char size[LIMEFILE_SIZE_CHARS];
    printf("%-18s %s\n", label, limefile_format_bytes((uint64_t)get_number(stats, key), size));
}

/* Prints a text, which may come from another file system, between `before` and `after`. */
static void print_text(const char *before, const json_t *text, const char *after)
{
    char *copy = strdup(json_is_string(text) ? json_string_value(text) : "?");
    if (copy)
        limefile_text_sanitize(copy, "");
    printf("%s%s%s", before, copy ? copy : "?", after);
    free(copy);
}

static void print_stats(const json_t *stats)
{
    const json_t *job = json_object_get(stats, "job");
    const json_t *reason = json_object_get(job, "reason");
    long uptime = (long)get_number(stats, "uptime_s");
    print_text("source             ", json_object_get(stats, "source"), "\n");
    print_text("options            ", json_object_get(stats, "options"), "\n");
    printf("%-18s %ld:%02ld:%02ld\n", "uptime", uptime / 3600, uptime / 60 % 60, uptime % 60);
    print_text("job                ", json_object_get(job, "state"), "");
    if (get_number(job, "ranks") > 0)
        printf(", %.0f ranks on %.0f host%s", get_number(job, "ranks"),
               get_number(job, "hosts"), get_number(job, "hosts") > 1 ? "s" : "");
    if (reason)
        print_text(": ", reason, "");
    putchar('\n');
    print_size("read by the job", stats, "forwarded_bytes");
    print_size("read locally", stats, "local_bytes");
    print_size("written by the job", stats, "forwarded_written_bytes");
    print_size("written locally", stats, "local_written_bytes");
    printf("%-18s %.0f\n", "requests", get_number(stats, "requests"));
    printf("%-18s %.0f, of which readers waited for %.0f\n", "loads",
           get_number(stats, "loads"), get_number(stats, "waits"));
    print_size("prefetched, unused", stats, "prefetch_wasted_bytes");
}

static int usage_error(const char *problem, const char *arg)
{
    limefs_log(LOG_ERR, "%s '%s'; usage: limefs --status [--bytes | --json] MOUNTPOINT",
               problem, arg);
    return 2;
}

int limefs_status_main(int argc, char *argv[])
{
    char text[LIMEFS_STATS_BYTES];
    bool as_json = false, requested = false;
    const char *mountpoint = NULL;
    for (int i = 1; i < argc; i++)
        requested = requested || strcmp(argv[i], "--status") == 0;
    if (!requested)
        return -1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            as_json = true;
        else if (strcmp(argv[i], "--bytes") == 0)
            limefile_sizes_are_exact = true;
        else if (argv[i][0] == '-' && strcmp(argv[i], "--status") != 0)
            return usage_error("unknown option", argv[i]);
        else if (argv[i][0] != '-' && mountpoint)
            return usage_error("unexpected argument", argv[i]);
        else if (argv[i][0] != '-')
            mountpoint = argv[i];
    }
    if (!mountpoint)
        return usage_error("no mount point after", "--status");
    ssize_t n = getxattr(mountpoint, LIMEFS_STATS_XATTR, text, sizeof text - 1);
    if (n < 0) {
        bool is_mount = errno != ENODATA && errno != EOPNOTSUPP, exists = errno != ENOENT;
        limefs_log(LOG_ERR, "%s: status: %s", mountpoint,
                   is_mount ? strerror(errno) : "not a limefs mount");
        return is_mount && exists ? 1 : 2;
    }
    text[n] = '\0';
    json_t *stats = json_loads(text, 0, NULL);
    if (!stats) {
        limefs_log(LOG_ERR, "%s: status: invalid JSON in reply", mountpoint);
        return 1;
    }
    limefile_text_sanitize(text,
                           ""); /* limefs sends no control characters; another program may */
    if (as_json)
        puts(text);
    else
        print_stats(stats);
    json_decref(stats);
    return 0;
}
