/* status.c - limefs --status: print the statistics of a mount */
#include "status.h"
#include "job.h"
#include "text.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <syslog.h>

static void print_size(const char *label, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    printf("%-18s %.*f %s\n", label, unit ? 1 : 0, bytes, units[unit]);
}

static double get_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_stats(const json_t *stats)
{
    const json_t *job = json_object_get(stats, "job");
    const char *value = json_string_value(json_object_get(job, "state"));
    char state[64];
    snprintf(state, sizeof state, "%s", value ? value : "?");
    limefile_text_sanitize(state, ""); /* the attribute may be another file system's */
    printf("%-18s %s", "job", state);
    if (get_number(job, "ranks") > 0)
        printf(", %.0f ranks on %.0f host%s", get_number(job, "ranks"),
               get_number(job, "hosts"), get_number(job, "hosts") > 1 ? "s" : "");
    const char *reason = json_string_value(json_object_get(job, "reason"));
    char reason_text[256];
    snprintf(reason_text, sizeof reason_text, "%s", reason ? reason : "");
    limefile_text_sanitize(reason_text, "");
    printf("%s%s\n", *reason_text ? ": " : "", reason_text);
    print_size("read by the job", get_number(stats, "forwarded_bytes"));
    print_size("read locally", get_number(stats, "local_bytes"));
    print_size("written by the job", get_number(stats, "forwarded_written_bytes"));
    print_size("written locally", get_number(stats, "local_written_bytes"));
    printf("%-18s %.0f\n", "requests", get_number(stats, "requests"));
    printf("%-18s %.0f, of which readers waited for %.0f\n", "loads",
           get_number(stats, "loads"), get_number(stats, "waits"));
    print_size("prefetched, unused", get_number(stats, "prefetch_wasted_bytes"));
}

static int usage_error(const char *problem, const char *arg)
{
    limefs_log(LOG_ERR, "%s '%s'; usage: limefs --status [--json] MOUNTPOINT", problem, arg);
    return 2;
}

int limefs_status_main(int argc, char *argv[])
{
    char text[4096];
    bool as_json = false, requested = false;
    const char *mountpoint = NULL;
    for (int i = 1; i < argc; i++)
        requested = requested || strcmp(argv[i], "--status") == 0;
    if (!requested)
        return -1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            as_json = true;
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
        limefs_log(LOG_ERR, "%s: status: %s", mountpoint,
                   errno == ENODATA || errno == EOPNOTSUPP ? "not a limefs mount point"
                                                           : strerror(errno));
        return 1;
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
