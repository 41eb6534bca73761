/* status.c - count requests, and report the job's status as JSON */
#include "control.h"
#include "server.h"
#include "text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    /* Limits that make a reply fit into one packet: */
    PATHS_MAX = 16 * 1024, /* bytes of open files' paths, which JSON may double */
    HOSTS_MAX = 48,        /* number of hosts that the report lists */
    RANKS_MAX = 2048,      /* number of ranks on all these hosts together */
};

int64_t job_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

uint64_t job_realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void job_counters_begin(struct job_counters *counters, uint16_t opcode)
{
    counters->in_flight++;
    counters->writes_in_flight += opcode == JOB_WRITE;
}

void job_counters_end(struct job_counters *counters, uint16_t opcode, uint64_t bytes, bool good)
{
    counters->in_flight--;
    counters->requests++;
    counters->errors += !good;
    if (opcode == JOB_READ) {
        counters->bytes_read += bytes;
    } else if (opcode == JOB_WRITE) {
        counters->writes_in_flight--;
        counters->bytes_written += bytes;
    } else if (opcode == JOB_SYNC) {
        counters->syncs++;
    }
}

/* Replaces invalid UTF-8 and control characters by '?': JSON would lengthen the latter. */
static json_t *json_name(const char *name)
{
    char *copy = strdup(name);
    if (copy)
        limefile_text_sanitize(copy, "");
    json_t *text = copy ? json_string(copy) : NULL;
    free(copy);
    return text;
}

static json_t *list_host_ranks(const struct job_server *server, int first)
{
    json_t *ranks = json_array();
    for (int i = first; i < server->ranks && json_array_size(ranks) < RANKS_MAX / HOSTS_MAX;
         i++)
        if (strcmp(server->locations[i].host, server->locations[first].host) == 0)
            json_array_append_new(ranks, json_integer(i));
    return ranks;
}

bool job_is_first_on_host(const struct job_server *server, int rank)
{
    for (int i = 0; i < rank; i++)
        if (strcmp(server->locations[i].host, server->locations[rank].host) == 0)
            return false;
    return true;
}

static json_t *list_hosts(const struct job_server *server)
{
    json_t *hosts = json_array();
    for (int i = 0; i < server->ranks && json_array_size(hosts) < HOSTS_MAX; i++)
        if (job_is_first_on_host(server, i))
            json_array_append_new(hosts, json_pack("{s:o, s:o}", "name",
                                                   json_name(server->locations[i].host),
                                                   "ranks", list_host_ranks(server, i)));
    return hosts;
}

static json_t *list_files(const struct job_server *server, int *count)
{
    json_t *files = json_array();
    size_t bytes = 0;
    *count = 0;
    for (const struct job_file *file = server->files; file; file = file->next) {
        if (!file->is_open)
            continue;
        ++*count;
        bytes += strlen(file->path) + 8;
        if (bytes < PATHS_MAX)
            json_array_append_new(files, json_name(file->path));
    }
    return files;
}

/* How many open files each method serves. */
static json_t *count_files_by_io(const struct job_server *server)
{
    json_int_t counts[LIMEJOB_IO_AUTO] = {0};
    for (const struct job_file *file = server->files; file; file = file->next)
        if (file->is_open && file->io < LIMEJOB_IO_AUTO)
            counts[file->io]++;
    json_t *object = json_object();
    for (int i = 0; i < LIMEJOB_IO_AUTO; i++)
        json_object_set_new(object, limejob_io_names[i], json_integer(counts[i]));
    return object;
}

/* Counts the clients that can read and write: a status query has no window. */
static int count_clients(const struct job_server *server)
{
    int count = 0;
    for (const struct job_client *client = server->clients; client; client = client->next)
        count += client->window && !client->is_closed;
    return count;
}

static void set_number(json_t *status, const char *key, uint64_t value)
{
    json_object_set_new(status, key, json_integer((json_int_t)value));
}

static void set_counters(json_t *status, const struct job_counters *counters)
{
    set_number(status, "bytes_read", counters->bytes_read);
    set_number(status, "bytes_written", counters->bytes_written);
    set_number(status, "requests", counters->requests);
    set_number(status, "in_flight", counters->in_flight);
    set_number(status, "writes_in_flight", counters->writes_in_flight);
    set_number(status, "syncs", counters->syncs);
    set_number(status, "errors", counters->errors);
}

char *job_status_json(const struct job_server *server)
{
    int files;
    json_t *open_files = list_files(server, &files);
    json_t *status =
        json_pack("{s:s, s:I, s:f, s:i, s:o, s:I, s:s, s:i, s:i, s:o, s:o}", "version",
                  LIMEFS_VERSION, "pid", (json_int_t)getpid(), "uptime_s",
                  (double)((job_now_us() - server->started_us) / 1000) / 1000, "ranks",
                  server->ranks, "hosts", list_hosts(server), "stripe",
                  (json_int_t)server->stripe, "io", limejob_io_names[server->options->io],
                  "clients", count_clients(server), "open_file_count", files, "open_files",
                  open_files, "open_files_by_io", count_files_by_io(server));
    if (status)
        set_counters(status, &server->counters);
    char *text = status ? json_dumps(status, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(status);
    if (text && strlen(text) > LIMEJOB_PAYLOAD_MAX - 4) {
        free(text);
        return NULL;
    }
    return text;
}
