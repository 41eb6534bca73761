/* container.c - opening containers and telling what is wrong with them */
#include "container.h"
#include "mounted.h"
#include "several.h"
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

static void count_record(void *context, uint64_t done, uint64_t size)
{
    uint64_t *records = context;
    (void)done;
    (void)size;
    several_need_room(++*records);
}

/* Closes nothing that it has not made. */
static int build_index(struct container *c, struct limefile_source *source)
{
    uint64_t records = 0;
    int err = limefile_index_scan(source, NULL, count_record, &records, &c->index);
    c->foreign = !err && !limefile_index_is_container(c->index);
    if (err) {
        message_code(c->path, "index", err);
        return TOOL_BAD;
    }
    if (!c->foreign)
        return TOOL_GOOD;
    container_fault_message(c);
    message(c->path, "not a LIME container");
    limefile_index_free(c->index);
    return TOOL_UNUSABLE;
}

int container_open(struct container *c, const char *path)
{
    c->path = path;
    c->foreign = false;
    c->fd = open_with_message(path, O_RDONLY);
    if (c->fd < 0)
        return TOOL_UNUSABLE;
    limefile_fd_init(&c->file, c->fd);
    int status = build_index(c, &c->file.source);
    if (status != TOOL_GOOD)
        close(c->fd);
    return status;
}

bool container_begins(int fd, bool *empty)
{
    unsigned char start[4];
    ssize_t got = limefile_fd_read(fd, start, sizeof start, 0);
    *empty = got == 0;
    return got < 0 || (got > 0 && limefile_header_is_magic(start, (size_t)got));
}

int container_open_source(struct container *c, const char *path)
{
    int err = 0;
    c->path = path;
    c->foreign = false;
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
    return c->foreign ? "not a LIME container" : "cannot be opened or read";
}

int container_fault_message(const struct container *c)
{
    const struct limefile_finding *fault = limefile_index_fault(c->index);
    if (!fault)
        return TOOL_GOOD;
    finding_message(c->path, fault);
    return TOOL_BAD;
}

const char *type_shown(const char *type, size_t len, char out[TYPE_SHOWN_MAX])
{
    limefile_name_encode(type, len, out, TYPE_SHOWN_MAX);
    return out;
}
