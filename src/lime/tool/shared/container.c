/* container.c - opening containers and telling what is wrong with them */
#include "container.h"
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

int container_open(struct container *c, const char *path)
{
    c->path = path;
    c->fd = open_with_message(path, O_RDONLY);
    if (c->fd < 0)
        return TOOL_UNUSABLE;
    limefile_fd_init(&c->file, c->fd);
    int err = limefile_index_build(&c->file.source, &c->index);
    if (err) {
        message_code(path, "index", err);
        close(c->fd);
        return TOOL_BAD;
    }
    if (!limefile_index_is_container(c->index)) {
        container_fault_message(c);
        message(path, "not a LIME container");
        container_close(c);
        return TOOL_UNUSABLE;
    }
    return TOOL_GOOD;
}

void container_close(struct container *c)
{
    limefile_index_free(c->index);
    close(c->fd);
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
