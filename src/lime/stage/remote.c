/* remote.c - not yet */
#include "remote.h"
#include <errno.h>
#include <stdio.h>
struct stage_remote {
    int x;
};
int stage_remote_connect(const char *socket, unsigned blocks, struct stage_remote **out,
                         char *text, size_t cap)
{
    (void)socket;
    (void)blocks;
    *out = NULL;
    snprintf(text, cap, "not yet");
    return -ENOSYS;
}
void stage_remote_free(struct stage_remote *r)
{
    (void)r;
}
size_t stage_remote_block_bytes(const struct stage_remote *r)
{
    (void)r;
    return 0;
}
char *stage_remote_window(struct stage_remote *r)
{
    (void)r;
    return NULL;
}
bool stage_remote_is_gone(struct stage_remote *r, const char **why)
{
    (void)r;
    (void)why;
    return true;
}
int stage_remote_open(struct stage_remote *r, const char *path, const struct stat *st,
                      bool writing, struct stage_remote_file *out)
{
    (void)r;
    (void)path;
    (void)st;
    (void)writing;
    (void)out;
    return -ENOSYS;
}
void stage_remote_close(struct stage_remote_file *f)
{
    (void)f;
}
int stage_remote_read(struct stage_remote_file *f, char *data, size_t n, uint64_t offset)
{
    (void)f;
    (void)data;
    (void)n;
    (void)offset;
    return -EIO;
}
int stage_remote_write(struct stage_remote_file *f, const char *data, size_t n, uint64_t offset)
{
    (void)f;
    (void)data;
    (void)n;
    (void)offset;
    return -EIO;
}
int stage_remote_sync(struct stage_remote_file *f)
{
    (void)f;
    return -EIO;
}
