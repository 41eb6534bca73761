/* feed.c - files by copy_run(), streams by reading until they end */
#define _GNU_SOURCE
#include "feed.h"
#include "copy.h"
#include "limeoutput.h"
#include "tempfile.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 1024 * 1024,
};

bool feed_open(struct feed *feed, const char *path, int container)
{
    bool standard = strcmp(path, "-") == 0;
    feed->name = standard ? "standard input" : path;
    feed->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                        : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int err = feed->fd < 0 || fstat(feed->fd, &feed->st) != 0 ? -errno : 0;
    if (!err && S_ISDIR(feed->st.st_mode))
        err = -EISDIR;
    if (err) {
        message_code(feed->name, "open", err);
    } else if (limefile_output_same(feed->fd, container)) {
        message(feed->name, "read: that is the container itself");
    } else {
        feed->sized = !standard && S_ISREG(feed->st.st_mode);
        return true;
    }
    feed_close(feed);
    return false;
}

void feed_close(struct feed *feed)
{
    if (feed->fd >= 0)
        close(feed->fd);
    feed->fd = -1;
}

bool feed_part(struct feed *feed, uint64_t from, uint64_t n, int out, const char *out_name,
               uint64_t offset, struct progress *progress)
{
    struct copy copy = {
        .in = feed->fd,
        .in_offset = from,
        .out = out,
        .out_offset = (int64_t)offset,
        .left = n,
        .progress = progress,
    };
    int err = copy_run(&copy);
    if (err)
        copy_message(&copy, feed->name, out_name, err);
    return !err;
}

static bool is_unchanged(const struct feed *feed)
{
    if (copy_is_unchanged(feed->fd, &feed->st))
        return true;
    message(feed->name, "read: the file changes while it is read");
    return false;
}

static bool run_stream(struct feed *feed, int out, const char *out_name, uint64_t offset,
                       struct progress *progress, uint64_t *bytes)
{
    static _Alignas(4096) char buffer[BUFFER_BYTES];
    struct limefile_fd file;
    limefile_fd_init(&file, out);
    for (*bytes = 0;;) {
        ssize_t got = read(feed->fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            message_code(feed->name, "read", -errno);
        if (got <= 0)
            return got == 0;
        int err = limefile_write_full(&file.source, buffer, (size_t)got, offset + *bytes);
        if (err) {
            message_code(out_name, "write", err);
            return false;
        }
        *bytes += (uint64_t)got;
        progress->total += (uint64_t)got; /* nobody knows what is to come */
        progress_add(progress, (uint64_t)got);
    }
}

bool feed_run(struct feed *feed, int out, const char *out_name, uint64_t offset,
              struct progress *progress, uint64_t *bytes)
{
    if (!feed->sized)
        return run_stream(feed, out, out_name, offset, progress, bytes);
    *bytes = (uint64_t)feed->st.st_size;
    return feed_part(feed, 0, *bytes, out, out_name, offset, progress) && is_unchanged(feed);
}

static int open_unnamed(const char *beside)
{
    char *copy = strdup(beside);
    int fd = copy ? tempfile_unnamed(dirname(copy)) : -ENOMEM;
    free(copy);
    return fd;
}

bool feed_collect(struct feed *feed, const char *beside)
{
    struct progress progress;
    uint64_t bytes;
    if (feed->sized)
        return true;
    int fd = open_unnamed(beside);
    if (fd < 0) {
        message_code(beside, "collect the data beside it", fd);
        return false;
    }
    progress_begin(&progress, "read", 0);
    bool good = run_stream(feed, fd, beside, 0, &progress, &bytes);
    progress_end(&progress);
    feed_close(feed);
    feed->fd = fd;
    feed->sized = true;
    if (good && fstat(fd, &feed->st) != 0) {
        message_code(feed->name, "read", -errno);
        good = false;
    }
    return good;
}
