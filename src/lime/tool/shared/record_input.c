/* record_input.c - open and copy the data of a new record, and report copies that fail */
#define _GNU_SOURCE
#include "record_input.h"
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

enum { STREAM_BYTES = 1024 * 1024 };

bool copy_is_unchanged(int in, const struct stat *before)
{
    struct stat st;
    if (fstat(in, &st) != 0)
        return false;
    struct limefile_identity old = limefile_identify(before);
    struct limefile_identity current = limefile_identify(&st);
    return limefile_identity_equal(&old, &current);
}

void message_copy(const struct limefile_copy *c, const char *in_name, const char *out_name,
                  int code)
{
    message_code(c->out_failed ? out_name : in_name, c->out_failed ? "write" : "read", code);
}

struct limefile_copy stdout_copy(const struct limefile_record *record)
{
    return (struct limefile_copy){
        .out = STDOUT_FILENO,
        .out_offset = LIMEFILE_AT_POSITION,
        .left = record->bytes,
    };
}

bool input_open(struct input *input, const char *path, int container)
{
    bool standard = strcmp(path, "-") == 0;
    input->name = standard ? "standard input" : path;
    input->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                         : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int err = input->fd < 0 || fstat(input->fd, &input->st) != 0 ? -errno : 0;
    if (!err && S_ISDIR(input->st.st_mode))
        err = -EISDIR;
    if (err) {
        message_code(input->name, "open", err);
    } else if (limefile_output_same_file(input->fd, container)) {
        message(input->name, "the input is the container itself");
    } else {
        input->has_size = !standard && S_ISREG(input->st.st_mode);
        return true;
    }
    input_close(input);
    return false;
}

bool input_open_memory(struct input *input, const char *name, const void *data, size_t n)
{
    input->name = name;
    input->has_size = true;
    input->fd = memfd_create("lime-record", MFD_CLOEXEC);
    int err = input->fd < 0 ? -errno : limefile_fd_write(input->fd, data, n, 0);
    if (!err && fstat(input->fd, &input->st) != 0)
        err = -errno;
    if (!err)
        return true;
    message_code(name, "buffer in memory", err);
    input_close(input);
    return false;
}

void input_close(struct input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    input->fd = -1;
}

bool input_copy_part(struct input *input, uint64_t from, uint64_t n, int out,
                     const char *out_name, uint64_t offset, struct progress *progress)
{
    struct limefile_copy copy = {
        .in = input->fd,
        .in_offset = from,
        .out = out,
        .out_offset = (int64_t)offset,
        .left = n,
        .progress = progress_add,
        .context = progress,
    };
    int err = limefile_copy(&copy);
    if (err)
        message_copy(&copy, input->name, out_name, err);
    return !err;
}

static bool check_input_unchanged(const struct input *input)
{
    if (copy_is_unchanged(input->fd, &input->st))
        return true;
    message(input->name, "read: the file changed while it was read");
    return false;
}

/* Copies all bytes up to EOF, and sets *bytes to their number. False: after a message. */
static bool copy_stream(struct input *input, int out, const char *out_name, uint64_t offset,
                        struct progress *progress, uint64_t *bytes)
{
    static _Alignas(4096) char buffer[STREAM_BYTES];
    struct limefile_fd file;
    limefile_fd_init(&file, out);
    for (*bytes = 0;;) {
        ssize_t got = read(input->fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            message_code(input->name, "read", -errno);
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

bool input_copy(struct input *input, int out, const char *out_name, uint64_t offset,
                struct progress *progress, uint64_t *bytes)
{
    if (!input->has_size)
        return copy_stream(input, out, out_name, offset, progress, bytes);
    *bytes = (uint64_t)input->st.st_size;
    return input_copy_part(input, 0, *bytes, out, out_name, offset, progress) &&
           check_input_unchanged(input);
}

/* Creates a file without a name in the directory or, if the file system can't, in /tmp. */
static int open_unnamed_in(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    FILE *file = tmpfile();
    fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
    int err = errno;
    if (file)
        fclose(file);
    return fd < 0 ? -err : fd;
}

static int open_unnamed_near(const char *near_path)
{
    char *copy = strdup(near_path);
    int fd = copy ? open_unnamed_in(dirname(copy)) : -ENOMEM;
    free(copy);
    return fd;
}

bool input_spool(struct input *input, const char *near_path)
{
    struct progress progress;
    uint64_t bytes;
    if (input->has_size)
        return true;
    int fd = open_unnamed_near(near_path);
    if (fd < 0) {
        message_code(near_path, "buffer input", fd);
        return false;
    }
    progress_begin(&progress, "read", 0);
    bool good = copy_stream(input, fd, near_path, 0, &progress, &bytes);
    progress_end(&progress);
    input_close(input);
    input->fd = fd;
    input->has_size = true;
    if (good && fstat(fd, &input->st) != 0) {
        message_code(input->name, "read", -errno);
        good = false;
    }
    return good;
}
