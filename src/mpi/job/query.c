/* query.c - limefs-io --stop and --status */
#include "options.h"
#include "report.h"
#include "text.h"
#include "limejob.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPLY_MS = 10 * 1000,
    END_MS = 30 * 1000, /* time limit for the job's end */
};

static int show_error(const struct job_options *options, const char *action, const char *reason)
{
    job_report("%s: %s: %s", options->socket_path, action, reason);
    return 1;
}

static int connect_to_job(const struct job_options *options, struct limejob_channel *channel)
{
    struct limejob_hello_reply greeting;
    char text[LIMEJOB_TEXT_MAX];
    int err = limejob_connect(channel, options->socket_path, -1, 0, REPLY_MS, &greeting, text);
    if (err == -ECONNREFUSED || err == -ENOENT)
        return show_error(
            options, "connect",
            "no job is running there; start one: mpirun -n N limefs-io --socket PATH");
    return err ? show_error(options, "connect", text) : 0;
}

/* ---- status ---- */

/* Copies a name without control characters: any program of this user could be the server. */
static const char *printable(const json_t *text, char out[LIMEJOB_PATH_MAX])
{
    const char *value = json_string_value(text);
    snprintf(out, LIMEJOB_PATH_MAX, "%s", value ? value : "?");
    limefile_text_sanitize(out, "");
    return out;
}

static double get_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_hosts(const json_t *hosts)
{
    size_t i, k;
    json_t *host, *rank;
    char name[LIMEJOB_PATH_MAX];
    json_array_foreach(hosts, i, host)
    {
        const json_t *ranks = json_object_get(host, "ranks");
        printf("%-12s %s: rank%s", i ? "" : "hosts",
               printable(json_object_get(host, "name"), name),
               json_array_size(ranks) == 1 ? "" : "s");
        json_array_foreach(ranks, k, rank)
        {
            printf(" %lld", (long long)json_integer_value(rank));
        }
        printf("\n");
    }
}

static void print_files(const json_t *status)
{
    const json_t *files = json_object_get(status, "open_files");
    size_t i;
    json_t *file;
    char path[LIMEJOB_PATH_MAX];
    printf("%-12s %.0f\n", "open files", get_number(status, "open_file_count"));
    json_array_foreach(files, i, file)
    {
        printf("%-12s %s\n", "", printable(file, path));
    }
}

/* "auto: 2 files posix, 1 file collective" */
static void print_io(const json_t *status)
{
    char name[LIMEJOB_PATH_MAX];
    const char *key, *separator = ": ";
    json_t *count;
    printf("%-12s %s", "I/O", printable(json_object_get(status, "io"), name));
    json_object_foreach(json_object_get(status, "open_files_by_io"), key, count)
    {
        long long n = json_integer_value(count);
        if (n > 0)
            printf("%s%lld file%s %s", separator, n, n == 1 ? "" : "s", key);
        separator = n > 0 ? ", " : separator;
    }
    printf("\n");
}

static const char *format_member(const json_t *status, const char *key,
                                 char text[LIMEFILE_SIZE_CHARS])
{
    return limefile_format_bytes((uint64_t)get_number(status, key), text);
}

static void print_counters(const json_t *status)
{
    char read[LIMEFILE_SIZE_CHARS], written[LIMEFILE_SIZE_CHARS];
    printf("%-12s %s\n", "read", format_member(status, "bytes_read", read));
    printf("%-12s %s, %.0f writes in flight, %.0f syncs\n", "written",
           format_member(status, "bytes_written", written),
           get_number(status, "writes_in_flight"), get_number(status, "syncs"));
    printf("%-12s %.0f, %.0f in flight, %.0f failed\n", "requests",
           get_number(status, "requests"), get_number(status, "in_flight"),
           get_number(status, "errors"));
}

static void print_status(const json_t *status)
{
    char version[LIMEJOB_PATH_MAX], stripe[LIMEFILE_SIZE_CHARS];
    printf("%-12s %s, process %.0f, up %.0f s\n", "limefs-io",
           printable(json_object_get(status, "version"), version), get_number(status, "pid"),
           get_number(status, "uptime_s"));
    printf("%-12s %.0f\n", "ranks", get_number(status, "ranks"));
    print_hosts(json_object_get(status, "hosts"));
    printf("%-12s %s\n", "stripe", format_member(status, "stripe", stripe));
    printf("%-12s %.0f\n", "clients", get_number(status, "clients"));
    print_io(status);
    print_files(status);
    print_counters(status);
}

static int show_status(const struct job_options *options, struct limejob_channel *channel)
{
    static struct limejob_packet reply;
    static char text[LIMEJOB_PAYLOAD_MAX + 1];
    int err = limejob_query(channel, LIMEJOB_STATUS, &reply, REPLY_MS);
    if (err)
        return show_error(options, "status", strerror(-err));
    err = limejob_get_code(&reply, text, sizeof text);
    if (err || limejob_get_text(&reply, text, sizeof text) != 0)
        return show_error(options, "status", err ? text : "invalid reply");
    json_error_t error;
    json_t *status = json_loads(text, 0, &error);
    if (!status)
        return show_error(options, "status", error.text);
    limefile_text_sanitize(text, ""); /* limefs-io sends no control characters */
    if (options->json)
        puts(text);
    else
        print_status(status);
    json_decref(status);
    return 0;
}

/* ---- stop ---- */

/* Waits until the job ends, which closes the connection; END_MS at most. */
static int stop_job(const struct job_options *options, struct limejob_channel *channel)
{
    static struct limejob_packet reply;
    char text[LIMEJOB_TEXT_MAX];
    int err = limejob_query(channel, LIMEJOB_STOP, &reply, REPLY_MS);
    if (!err)
        err = limejob_get_code(&reply, text, sizeof text);
    if (err)
        return show_error(options, "stop",
                          err == -ETIMEDOUT ? "no reply; end its mpirun" : strerror(-err));
    err = limejob_receive(channel, &reply, END_MS);
    return err == -EPIPE ? 0 : show_error(options, "stop", "still running; end its mpirun");
}

int job_query(const struct job_options *options)
{
    struct limejob_channel *channel = malloc(sizeof *channel);
    if (!channel)
        return show_error(options, "connect", strerror(ENOMEM));
    int code = connect_to_job(options, channel);
    if (!code) {
        code = options->mode == JOB_STOP ? stop_job(options, channel)
                                         : show_status(options, channel);
        limejob_channel_close(channel);
    }
    free(channel);
    return code;
}
