/* container.c - open and index containers, report their faults, find their records */
#define _GNU_SOURCE
#include "container.h"
#include "limedetect.h"
#include "mounted_container.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int open_or_report(const char *path, int flags)
{
    int fd = limefile_open(path, flags);
    if (fd < 0)
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

/* Prints why the file does not begin with a valid header, and returns the exit status. */
static int report_beginning(struct container *c)
{
    struct limefile_finding finding;
    int kind = limefile_detect_container(c->source, &finding);
    if (kind == 0) {
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
    if (err) {
        message_code(c->path, "index", err);
        return TOOL_UNUSABLE;
    }
    if (limefile_index_is_container(c->index))
        return TOOL_GOOD;
    int status = report_beginning(c);
    limefile_index_free(c->index);
    c->index = NULL;
    return status;
}

static int open_container_file(struct container *c)
{
    c->fd = open_or_report(c->path, O_RDONLY);
    limefile_fd_init(&c->file, c->fd);
    c->source = &c->file.source;
    return c->fd < 0 ? c->fd : 0;
}

int container_open_source(struct container *c, const char *path)
{
    *c = (struct container){.path = path, .fd = -1};
    if (!mounted_is_container(path))
        return open_container_file(c);
    int err = mounted_open(path, &c->mounted);
    if (err)
        message_code(path, "open", err);
    else
        c->source = mounted_source(c->mounted);
    return err;
}

/* err: the result of opening c. Builds the index if it is 0. Closes c after any failure. */
static int index_or_close(struct container *c, int err)
{
    int status = err ? TOOL_UNUSABLE : build_index(c);
    if (status != TOOL_GOOD)
        container_close(c);
    return status;
}

int container_open(struct container *c, const char *path)
{
    *c = (struct container){.path = path};
    return index_or_close(c, open_container_file(c));
}

int container_open_or_mounted(struct container *c, const char *path)
{
    return index_or_close(c, container_open_source(c, path));
}

void container_close(struct container *c)
{
    if (c->index)
        limefile_index_free(c->index);
    if (c->fd >= 0)
        close(c->fd);
    mounted_close(c->mounted);
}

int container_open_data(const struct container *c, struct limefile_record *record)
{
    if (c->mounted) {
        record->data_offset = 0;
        return mounted_open_data(c->mounted, record->ordinal);
    }
    int fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
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

enum { LISTED_MAX = 20 }; /* ordinals in the message for an ambiguous type */

static void report_no_record(const struct container *c, const char *word)
{
    char type_name[TYPE_TEXT_MAX];
    if (access(word, F_OK) == 0)
        message(c->path, "record '%s': no such record; name only one FILE", word);
    else
        message(c->path, "record '%s': no such record; see 'lime ls'",
                format_type(word, strlen(word), type_name));
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
