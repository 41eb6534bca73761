/* container.c - opening containers and telling what is wrong with them */
#include "container.h"
#include "limebeginning.h"
#include "mounted.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int open_with_message(const char *path, int flags)
{
    int fd = limefile_open(path, flags);
    if (fd < 0)
        message_code(path, "open", fd);
    return fd;
}

void finding_message(const char *path, const struct limefile_finding *finding)
{
    char text[512];
    limefile_finding_text(finding, text, sizeof text);
    message(path, "%s", text);
}

void warning_message(const char *path, const struct limefile_finding *finding)
{
    char text[512];
    limefile_finding_text(finding, text, sizeof text);
    message(path, "warning: %s", text);
}

bool finding_is_unreadable(const struct limefile_finding *finding)
{
    return limefile_is_read_error(finding->code);
}

static void count_deviation(void *context, const struct limefile_finding *finding)
{
    uint64_t *deviations = context;
    if (!limefile_is_fault(finding->code) && !limefile_is_harmless(finding->code))
        ++*deviations;
}

/* The file does not begin with a record header: says on stderr what it is instead. */
static int refuse_beginning(struct container *c, struct limefile_source *source)
{
    struct limefile_finding finding;
    c->beginning = limefile_beginning(source, &finding);
    if (c->beginning == 0) {
        message(c->path, "%s", CONTAINER_FOREIGN);
        return TOOL_UNUSABLE;
    }
    if (c->beginning == 1) { /* of another version */
        finding = *limefile_index_fault(c->index);
        c->beginning = finding.code;
    }
    if (finding.code)
        finding_message(c->path, &finding);
    else
        message_code(c->path, "read", c->beginning);
    return finding.code ? TOOL_BAD : TOOL_UNUSABLE;
}

/* Closes nothing that it has not made. */
static int build_index(struct container *c, struct limefile_source *source)
{
    c->deviations = 0;
    int err = limefile_index_scan(source, count_deviation, NULL, &c->deviations, &c->index);
    if (err) {
        message_code(c->path, "index", err);
        return TOOL_UNUSABLE;
    }
    if (limefile_index_is_container(c->index))
        return TOOL_GOOD;
    int status = refuse_beginning(c, source);
    limefile_index_free(c->index);
    return status;
}

int container_open(struct container *c, const char *path)
{
    c->path = path;
    c->beginning = 1;
    c->fd = open_with_message(path, O_RDONLY);
    if (c->fd < 0)
        return TOOL_UNUSABLE;
    limefile_fd_init(&c->file, c->fd);
    int status = build_index(c, &c->file.source);
    if (status != TOOL_GOOD)
        close(c->fd);
    return status;
}

int container_open_source(struct container *c, const char *path)
{
    int err = 0;
    c->path = path;
    c->beginning = 1;
    c->mounted = NULL;
    c->source = &c->file.source;
    if (!mounted_is(path)) {
        c->fd = open_with_message(path, O_RDONLY);
        limefile_fd_init(&c->file, c->fd);
        return c->fd < 0 ? c->fd : 0;
    }
    c->fd = -1;
    err = mounted_open(path, &c->mounted);
    if (err)
        message_code(path, "open", err);
    else
        c->source = mounted_source(c->mounted);
    return err;
}

void container_close_source(struct container *c)
{
    if (c->fd >= 0)
        close(c->fd);
    mounted_close(c->mounted);
}

int container_open_shown(struct container *c, const char *path)
{
    if (container_open_source(c, path) != 0)
        return TOOL_UNUSABLE;
    int status = build_index(c, c->source);
    if (status != TOOL_GOOD)
        container_close_source(c);
    return status;
}

void container_close(struct container *c)
{
    limefile_index_free(c->index);
    close(c->fd);
}

void container_close_shown(struct container *c)
{
    limefile_index_free(c->index);
    container_close_source(c);
}

const char *container_failure_text(const struct container *c)
{
    return c->beginning == 0  ? "not a LIME container"
           : c->beginning < 0 ? limefile_strerror(c->beginning)
                              : "cannot be opened or read";
}

int container_fault_message(const struct container *c)
{
    const struct limefile_finding *fault = limefile_index_fault(c->index);
    if (!fault)
        return TOOL_GOOD;
    finding_message(c->path, fault);
    return finding_is_unreadable(fault) ? TOOL_UNUSABLE : TOOL_BAD;
}

const char *type_shown(const char *type, size_t len, char out[TYPE_SHOWN_MAX])
{
    limefile_name_encode(type, len, out, TYPE_SHOWN_MAX);
    return out;
}
