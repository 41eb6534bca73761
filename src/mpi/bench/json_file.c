/* json_file.c - write the result file of --json */
#define _GNU_SOURCE
#include "json_file.h"
#include "cleanup.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    ERRNO_MAX = 4095,
};

/* Prints "name: action: reason", or "name: reason" for -EISDIR and limefile.h's own codes,
 * whose texts need no action. Always returns false. */
static bool report_file_error(const char *name, const char *action, int err)
{
    if (err < -ERRNO_MAX || err == -EISDIR)
        bench_log("%s: %s", name, limefile_strerror(err));
    else
        bench_log("%s: %s: %s", name, action, limefile_strerror(err));
    return false;
}

/* If this process ends before the commit, the guard process (cleanup.h) removes the file. */
bool bench_json_open(struct bench_json *json, const char *name, bool force)
{
    *json = (struct bench_json){.name = name, .to = stdout};
    if (strcmp(name, "-") == 0)
        return true;
    int err = limefile_output_open(&json->file, name, force, NULL, 0);
    if (err) {
        json->name = NULL;
        return report_file_error(name, "open", err);
    }
    bench_cleanup_add_file(json->file.temporary);
    int fd = dup(json->file.fd);
    json->to = fd < 0 ? NULL : fdopen(fd, "w");
    if (json->to)
        return true;
    report_file_error(name, "open", -errno);
    if (fd >= 0)
        close(fd);
    bench_json_abort(json);
    return false;
}

bool bench_json_report_conflict(const struct bench_json *json, const char *path)
{
    if (!json->name || json->to == stdout)
        return false;
    const char *slash = strrchr(json->name, '/'), *end = strrchr(json->file.temporary, '/');
    size_t directory = (size_t)(end - json->file.temporary) + 1;
    int fd = open(path, O_PATH | O_CLOEXEC);
    bool same = fd < 0 ? strncmp(json->file.temporary, path, directory) == 0 &&
                             strcmp(slash ? slash + 1 : json->name, path + directory) == 0
                       : limefile_output_is_target(&json->file, fd);
    if (fd >= 0)
        close(fd);
    if (same)
        bench_log("%s: is also the data file; choose another name", json->name);
    return same;
}

bool bench_json_write(struct bench_json *json, json_t *object)
{
    FILE *to = json->to;
    bool good = json_dumpf(object, to,
                           JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9)) == 0 &&
                fputc('\n', to) != EOF;
    good = (to == stdout ? fflush(to) : fclose(to)) == 0 && good;
    int err = good ? 0 : errno ? -errno : -EIO;
    json->to = NULL;
    json_decref(object);
    if (good && to != stdout)
        err = limefile_output_commit(&json->file);
    if (err)
        report_file_error(json->name, "write", err);
    bench_json_abort(json);
    return !err;
}

void bench_json_abort(struct bench_json *json)
{
    if (json->name && strcmp(json->name, "-") != 0) {
        if (json->to && json->to != stdout)
            fclose(json->to);
        limefile_output_abort(&json->file);
    }
    json->name = NULL;
    json->to = NULL;
}
