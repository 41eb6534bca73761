/* container.c - open and index containers, report their faults, find their records */
#define _GNU_SOURCE
#include "container.h"
#include "limedetect.h"
#include "limegauge.h"
#include "mounted_container.h"
#include "suggest.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 256 }; /* of a file, to find its format */

/* Prints that a directory in a mount, which is a container, cannot be opened as a file. */
static void report_mounted(const char *dir)
{
    char *file = mounted_file(dir);
    message(dir, "a container in a mount; edit the file%s%s", file ? " " : " below the mount",
            file ? file : "");
    free(file);
}

int open_or_report(const char *path, int flags)
{
    int fd = limefile_open(path, flags);
    if (fd == -EISDIR && mounted_is_container(path))
        report_mounted(path);
    else if (fd < 0)
        message_code(path, "open", fd);
    return fd;
}

void message_finding(const char *path, const struct limefile_finding *finding, bool is_warning)
{
    char text[512];
    limefile_finding_text(finding, text, sizeof text);
    message(path, "%s%s", is_warning ? "warning: " : "", text);
}

static void count_deviation(void *context, const struct limefile_finding *finding)
{
    uint64_t *deviations = context;
    if (!limefile_is_fault(finding->code) && !limefile_is_harmless(finding->code))
        ++*deviations;
}

const char *container_detect_format(struct limefile_source *source)
{
    unsigned char head[HEAD_BYTES];
    uint64_t size;
    if (source->ops->size(source, &size) != 0)
        return NULL;
    ssize_t n = limefile_read_full(source, head, sizeof head, 0);
    if (n < 4 || limefile_header_is_magic(head, (size_t)n))
        return NULL;
    enum limefile_gauge_format format = limefile_gauge_detect(head, (size_t)n, size);
    return format ? limefile_gauge_format_name(format) : NULL;
}

bool container_report_format(const char *path, struct limefile_source *source)
{
    const char *format = container_detect_format(source);
    if (format)
        message(path, "a %s file; 'lime convert --to ildg' makes a container of it", format);
    return format != NULL;
}

/* Prints why the file does not begin with a valid header, and returns the exit status. */
static int report_beginning(struct container *c)
{
    struct limefile_finding finding;
    int kind = limefile_detect_container(c->source, &finding);
    if (kind == 0) {
        if (!container_report_format(c->path, c->source))
            message(c->path, "%s", TEXT_NOT_CONTAINER);
        return TOOL_UNUSABLE;
    }
    if (kind == 1) /* an unknown version of the format */
        finding = *limefile_index_fault(c->index);
    if (finding.code)
        message_finding(c->path, &finding, false);
    else
        message_code(c->path, "read", kind);
    return finding.code ? TOOL_BAD : TOOL_UNUSABLE;
}

static int build_index(struct container *c)
{
    c->deviations = 0;
    int err = limefile_index_scan(c->source, count_deviation, NULL, &c->deviations, &c->index);
    if (err)
        message_code(c->path, "index", err);
    return err ? TOOL_UNUSABLE : TOOL_GOOD;
}

/* Prints why a file in another format is not shown as a container. Returns an exit status. */
static int report_format(struct container *c, int err)
{
    char why[LIMEFILE_GAUGE_WHY_MAX] = "";
    struct limefile_gauge *gauge = NULL;
    if (limefile_gauge_open(c->source, 0, &gauge, why) == 0)
        limefile_gauge_close(gauge);
    message(c->path, "%s file: %s%s%s", c->format, limefile_strerror(err), *why ? ": " : "",
            why);
    return limefile_gauge_error_is_damage(err) ? TOOL_BAD : TOOL_UNUSABLE;
}

/* Indexes c->source, whatever it is. Builds the index of the adapter if the file is in another
 * format and `with_formats` is true. */
static int index_source(struct container *c, bool with_formats)
{
    int status = build_index(c);
    if (status != TOOL_GOOD || limefile_index_is_container(c->index))
        return status;
    if (!with_formats || !c->format)
        return report_beginning(c);
    int err = limefile_gauge_adapter_open(c->fd, &c->adapter);
    if (err)
        return report_format(c, err);
    c->source = limefile_gauge_adapter_source(c->adapter);
    limefile_index_free(c->index);
    c->index = NULL;
    return build_index(c);
}

static int open_container_file(struct container *c)
{
    c->fd = open_or_report(c->path, O_RDONLY);
    limefile_fd_init(&c->file, c->fd);
    c->source = &c->file.source;
    return c->fd < 0 ? c->fd : 0;
}

/* Opens a file, or a container in a mount. Sets c->format. Returns 0, or < 0 after a message.
 */
static int open_file_or_mounted(struct container *c, const char *path)
{
    *c = (struct container){.path = path, .fd = -1};
    bool is_mounted = mounted_is_container(path);
    int err = is_mounted ? mounted_open(path, &c->mounted) : open_container_file(c);
    if (err && is_mounted)
        message_code(path, "open", err);
    if (err)
        return err;
    if (is_mounted) {
        c->fd = mounted_fd(c->mounted);
        c->source = mounted_source(c->mounted);
    }
    c->format = is_mounted ? mounted_format(c->mounted) : container_detect_format(c->source);
    return 0;
}

/* Replaces a container in a mount by the file that the mount shows, if it can be opened. */
static void replace_by_file(struct container *c)
{
    char *file = mounted_file(c->path);
    int fd = file ? limefile_open(file, O_RDONLY) : -1;
    free(file);
    if (fd < 0)
        return;
    mounted_close(c->mounted);
    c->mounted = NULL;
    c->fd = fd;
    limefile_fd_init(&c->file, fd);
    c->source = &c->file.source;
}

int container_open_source(struct container *c, const char *path)
{
    int err = open_file_or_mounted(c, path);
    if (c->mounted && c->format)
        replace_by_file(c);
    return err;
}

/* err: the result of opening c. Builds the index if it is 0. Closes c after any failure. */
static int index_or_close(struct container *c, int err, bool with_formats)
{
    int status = err ? TOOL_UNUSABLE : index_source(c, with_formats);
    if (status != TOOL_GOOD)
        container_close(c);
    return status;
}

int container_open(struct container *c, const char *path)
{
    *c = (struct container){.path = path};
    return index_or_close(c, open_container_file(c), false);
}

int container_open_or_mounted(struct container *c, const char *path)
{
    return index_or_close(c, open_file_or_mounted(c, path), true);
}

void container_close(struct container *c)
{
    limefile_index_free(c->index);
    limefile_gauge_adapter_close(c->adapter);
    if (c->mounted)
        mounted_close(c->mounted);
    else if (c->fd >= 0)
        close(c->fd);
    c->index = NULL;
}

uint64_t container_size(const struct container *c)
{
    struct stat st;
    if (!c->format)
        return limefile_index_size(c->index);
    char *file = c->mounted ? mounted_file(c->path) : strdup(c->path);
    bool known = file && stat(file, &st) == 0;
    free(file);
    return known ? (uint64_t)st.st_size : limefile_index_size(c->index);
}

int container_open_data(const struct container *c, struct limefile_record *record,
                        struct container_data *out)
{
    out->source = c->source;
    out->file.fd = -1;
    if (!c->mounted)
        return 0;
    int fd = mounted_open_data(c->mounted, record->ordinal);
    limefile_fd_init(&out->file, fd);
    out->source = &out->file.source;
    record->data_offset = 0;
    return fd < 0 ? fd : 0;
}

void container_close_data(struct container_data *data)
{
    if (data->file.fd >= 0)
        close(data->file.fd);
}

int container_copy(const struct container *c, const struct limefile_record *record,
                   struct limefile_copy *copy)
{
    struct container_data data;
    struct limefile_record local = *record;
    int err = container_open_data(c, &local, &data);
    copy->source = data.source;
    copy->in_offset += local.data_offset;
    if (!err)
        err = limefile_copy(copy);
    container_close_data(&data);
    return err;
}

int container_report_fault(const struct container *c)
{
    const struct limefile_finding *fault = limefile_index_fault(c->index);
    if (!fault)
        return TOOL_GOOD;
    message_finding(c->path, fault, false);
    return limefile_is_read_error(fault->code) ? TOOL_UNUSABLE : TOOL_BAD;
}

const char *format_type(const char *type, size_t len, char out[TYPE_TEXT_MAX])
{
    limefile_name_encode(type, len, out, TYPE_TEXT_MAX);
    return out;
}

enum {
    LISTED_MAX = 20,     /* ordinals in the message for an ambiguous type */
    COMPARED_MAX = 1000, /* records whose names are compared with a mistyped one */
};

static void report_no_record(const struct container *c, const char *word)
{
    char name[TYPE_TEXT_MAX];
    struct limefile_suggestion near = {0};
    struct limefile_record record;
    for (uint64_t i = 1; i <= COMPARED_MAX && limefile_index_get(c->index, i, &record) == 0;
         i++) {
        limefile_suggest(&near, word, format_type(record.type, record.type_len, name));
        limefile_name_format(&record, name);
        limefile_suggest(&near, word, name);
    }
    const char *text = limefile_suggest_text(&near);
    if (access(word, F_OK) == 0)
        message(c->path, "record '%s': no such record; name only one FILE", word);
    else
        message(c->path, "record '%s': no such record%s", format_type(word, strlen(word), name),
                *text ? text : "; see 'lime ls'");
    container_report_fault(c); /* the record may be behind the fault */
}

static void report_ambiguous_type(const struct container *c,
                                  const struct limefile_record *first, uint64_t count)
{
    char list[LISTED_MAX * 22 + 8], type_name[TYPE_TEXT_MAX];
    size_t used = 0;
    uint64_t listed = 0;
    struct limefile_record record = *first;
    for (uint64_t i = first->ordinal; listed < LISTED_MAX && listed < count; i++) {
        if (limefile_index_get(c->index, i, &record) != 0)
            break;
        if (record.type_len != first->type_len ||
            memcmp(record.type, first->type, first->type_len) != 0)
            continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%" PRIu64,
                                 listed ? ", " : "", i);
        listed++;
    }
    message(c->path,
            "type '%s': %" PRIu64 " records are of this type; choose one by its ordinal: %s%s",
            format_type(first->type, first->type_len, type_name), count, list,
            listed < count ? ", ..." : "");
}

/* Finds the only record of a type. If there are several, prints this and sets *was_reported. */
static bool find_by_type(const struct container *c, const char *type, size_t len,
                         struct limefile_record *out, bool *was_reported)
{
    uint64_t count;
    if (limefile_index_by_type(c->index, type, len, out, &count) != 0)
        return false;
    if (count > 1) {
        report_ambiguous_type(c, out, count);
        *was_reported = true;
        return false;
    }
    return true;
}

/* Returns true if the word looks like N or N.M; *found: the record exists. */
static bool find_by_number(const struct container *c, const char *word,
                           struct limefile_record *out, bool *found)
{
    uint64_t first, second;
    const char *dot = strchr(word, '.');
    if (limefile_parse_number(word, strlen(word), &first)) {
        *found = limefile_index_get(c->index, first, out) == 0;
        return true;
    }
    if (!dot || !limefile_parse_number(word, (size_t)(dot - word), &first) ||
        !limefile_parse_number(dot + 1, strlen(dot + 1), &second))
        return false;
    *found = first <= UINT32_MAX && second <= UINT32_MAX &&
             limefile_index_by_number(c->index, (uint32_t)first, (uint32_t)second, out) == 0;
    return true;
}

bool select_record(const struct container *c, const char *word, bool as_type,
                   struct limefile_record *out)
{
    bool found = false, was_reported = false;
    char decoded[LIMEFILE_TYPE_BYTES + 2];
    if (as_type || !find_by_number(c, word, out, &found)) {
        found = find_by_type(c, word, strlen(word), out, &was_reported);
        if (!found && !was_reported) { /* the word may be a type as 'lime ls' prints it */
            size_t len = limefile_name_decode(word, strlen(word), decoded, sizeof decoded);
            found = find_by_type(c, decoded, len, out, &was_reported);
        }
        if (!found && !was_reported && !as_type)
            found = limefile_name_find(c->index, word, out) == 0;
    }
    if (!found && !was_reported)
        report_no_record(c, word);
    return found;
}
