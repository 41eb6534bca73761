/* documentfile.c - documents read, and understood or not, with messages */
#define _GNU_SOURCE
#include "configs.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Files that have no size, as those of /proc, too. */
static int read_all(const char *path, int fd, char **text, size_t *n)
{
    *text = malloc(LIMEFILE_QCDML_BYTES_MAX + 1);
    ssize_t got =
        *text ? limefile_fd_read(fd, *text, LIMEFILE_QCDML_BYTES_MAX + 1, 0) : -ENOMEM;
    if (got < 0)
        message_code(path, "read", (int)got);
    else if (got > LIMEFILE_QCDML_BYTES_MAX)
        message(path, "longer than %d bytes: not read", LIMEFILE_QCDML_BYTES_MAX);
    *n = got < 0 ? 0 : (size_t)got;
    if (got >= 0 && got <= LIMEFILE_QCDML_BYTES_MAX)
        return TOOL_GOOD;
    free(*text);
    *text = NULL;
    return TOOL_UNUSABLE;
}

int document_read(const char *path, char **text, size_t *n)
{
    *text = NULL;
    int fd = open_with_message(path, O_RDONLY);
    if (fd < 0)
        return TOOL_UNUSABLE;
    int status = read_all(path, fd, text, n);
    close(fd);
    return status;
}

int document_understand(const char *path, const char *text, size_t n,
                        struct limefile_qcdml *out)
{
    int err = limefile_qcdml_parse(text, n, out);
    if (err == LIMEFILE_E_XML || err == LIMEFILE_E_XML_VALUE)
        message(path, "line %zu: %s", out->line, out->why);
    else if (err)
        message_code(path, "read", err);
    if (err)
        limefile_qcdml_release(out);
    return err ? TOOL_BAD : TOOL_GOOD;
}
