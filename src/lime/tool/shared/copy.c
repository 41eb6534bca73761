/* copy.c - open and copy the data of a new record, and report copies that fail */
#define _GNU_SOURCE
#include "copy.h"
#include "limefile.h"
#include "limeoutput.h"
#include "limerange.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STREAM_BYTES = 1024 * 1024,
};

bool copy_is_unchanged(int in, const struct stat *before)
{
    struct stat st;
    if (fstat(in, &st) != 0)
        return false;
    struct limefile_identity was = limefile_identity_of(before);
    struct limefile_identity is = limefile_identity_of(&st);
    return limefile_identity_equal(&was, &is);
}

void copy_message(const struct limefile_copy *c, const char *in_name, const char *out_name,
                  int code)
{
    message_code(c->out_failed ? out_name : in_name, c->out_failed ? "write" : "read", code);
}

struct limefile_copy copy_to_stdout(int in, const struct limefile_record *record)
{
    return (struct limefile_copy){
        .in = in,
        .in_offset = record->data_offset,
        .out = STDOUT_FILENO,
        .out_offset = LIMEFILE_AT_POSITION,
        .left = record->bytes,
    };
}

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

bool feed_memory(struct feed *feed, const char *name, const void *data, size_t n)
{
    feed->name = name;
    feed->sized = true;
    feed->fd = memfd_create("lime-record", MFD_CLOEXEC);
    int err = feed->fd < 0 ? -errno : limefile_fd_write(feed->fd, data, n, 0);
    if (!err && fstat(feed->fd, &feed->st) != 0)
        err = -errno;
    if (!err)
        return true;
    message_code(name, "keep the data in memory", err);
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
    struct limefile_copy copy = {
        .in = feed->fd,
        .in_offset = from,
        .out = out,
        .out_offset = (int64_t)offset,
        .left = n,
        .progress = progress_add,
        .context = progress,
    };
    int err = limefile_copy(&copy);
    if (err)
        copy_message(&copy, feed->name, out_name, err);
    return !err;
}

static bool feed_is_unchanged(const struct feed *feed)
{
    if (copy_is_unchanged(feed->fd, &feed->st))
        return true;
    message(feed->name, "read: the file changes while it is read");
    return false;
}

static bool copy_stream(struct feed *feed, int out, const char *out_name, uint64_t offset,
                        struct progress *progress, uint64_t *bytes)
{
    static _Alignas(4096) char buffer[STREAM_BYTES];
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
        progress->total += (uint64_t)got; /* the total is unknown in advance */
        progress_add(progress, (uint64_t)got);
    }
}

bool feed_run(struct feed *feed, int out, const char *out_name, uint64_t offset,
              struct progress *progress, uint64_t *bytes)
{
    if (!feed->sized)
        return copy_stream(feed, out, out_name, offset, progress, bytes);
    *bytes = (uint64_t)feed->st.st_size;
    return feed_part(feed, 0, *bytes, out, out_name, offset, progress) &&
           feed_is_unchanged(feed);
}

/* Creates a file without a name in that directory or, if it does not support that, in /tmp. */
static int tempfile_unnamed(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    FILE *file = tmpfile();
    fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
    int err = errno;
    if (file)
        fclose(file);
    return fd < 0 ? -err : fd;
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
    bool good = copy_stream(feed, fd, beside, 0, &progress, &bytes);
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
