/* packer.c - a packlist becomes a container */
#define _GNU_SOURCE
#include "container.h"
#include "copy.h"
#include "limeoutput.h"
#include "packlist.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SMALL = 64 * 1024, /* up to here data go through the writer's buffer */
};

/* The container that is being written. */
struct output {
    const struct packing *packing;
    const char *target; /* what it will be, for messages */
    struct limefile_writer *writer;
    const struct limefile_output *file;
    bool writing; /* after a failure: it was the writing that failed */
    uint32_t message, record;
    struct progress progress;
};

/* One file on its way into it. */
struct input {
    char name[PATH_MAX]; /* for messages */
    int fd;
    struct stat st;
};

static bool input_open(struct input *in, const struct packing *p, const struct pack_item *item)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    snprintf(in->name, sizeof in->name, "%s%s%s", p->folder_name ? p->folder_name : "",
             p->folder_name ? "/" : "", item->path);
    in->fd = openat(p->folder, item->path, flags | (p->follow_links ? 0 : O_NOFOLLOW));
    if (in->fd < 0 && errno == ELOOP && !p->follow_links) {
        message(in->name, "open: a symbolic link; the folder must hold the file itself");
        return false;
    }
    if (in->fd < 0 || fstat(in->fd, &in->st) != 0) {
        message_code(in->name, "open", -errno);
    } else if (S_ISDIR(in->st.st_mode)) {
        message_code(in->name, "open", -EISDIR);
    } else if (!S_ISREG(in->st.st_mode)) {
        message(in->name, "open: not a regular file, so its length is not known beforehand; "
                          "write it to a file first");
    } else {
        return true;
    }
    if (in->fd >= 0)
        close(in->fd);
    return false;
}

static int put_small(struct output *out, const struct input *in)
{
    static char buffer[SMALL];
    out->writing = false;
    ssize_t got = limefile_fd_read(in->fd, buffer, (size_t)in->st.st_size, 0);
    if (got < 0)
        return (int)got;
    if (got < in->st.st_size)
        return LIMEFILE_E_SHRUNK;
    out->writing = true;
    return limefile_writer_write(out->writer, buffer, (size_t)got);
}

static int put_large(struct output *out, const struct input *in)
{
    uint64_t offset;
    int err = limefile_writer_reserve(out->writer, (uint64_t)in->st.st_size, &offset);
    if (err)
        return err;
    struct copy copy = {
        .in = in->fd,
        .out = out->file->fd,
        .out_offset = (int64_t)offset,
        .left = (uint64_t)in->st.st_size,
        .progress = &out->progress,
    };
    err = copy_run(&copy);
    out->writing = !err || copy.writing;
    return err;
}

static int put_record(struct output *out, const struct pack_item *item, const struct input *in)
{
    uint64_t bytes = (uint64_t)in->st.st_size;
    out->writing = true;
    int err = limefile_writer_begin(out->writer, item->type, item->type_len, bytes, item->mb,
                                    item->me);
    if (!err)
        err = bytes <= SMALL ? put_small(out, in) : put_large(out, in);
    if (!err)
        err = limefile_writer_end(out->writer);
    if (err)
        return err;
    out->writing = false;
    return copy_is_unchanged(in->fd, &in->st) ? 0 : -EBUSY;
}

static bool put_item(struct output *out, const struct pack_item *item)
{
    static struct input in; /* static for its size */
    const struct packing *p = out->packing;
    if (!input_open(&in, p, item))
        return false;
    out->message += item->mb;
    out->record = item->mb ? 1 : out->record + 1;
    if (p->announce)
        p->announce(out->message, out->record, (uint64_t)in.st.st_size, item);
    int err = put_record(out, item, &in);
    close(in.fd);
    if (err == -EBUSY)
        message(in.name, "read: the file changes while it is read");
    else if (err)
        message_code(out->writing ? out->target : in.name, out->writing ? "write" : "read",
                     err);
    return !err;
}

/* For the bar only, so what cannot be looked at does not matter here. */
static uint64_t total_of(const struct packing *p)
{
    struct stat st;
    uint64_t total = 0;
    for (size_t i = 0; isatty(STDERR_FILENO) && i < p->list->count; i++) {
        struct pack_item item;
        packlist_get(p->list, i, &item);
        if (fstatat(p->folder, item.path, &st, 0) == 0)
            total += (uint64_t)st.st_size;
    }
    return total;
}

static bool put_all(const struct packing *p, const struct limefile_output *file,
                    const char *target)
{
    struct limefile_fd to;
    struct output out = {.packing = p, .target = target, .file = file};
    uint64_t size;
    bool good = true;
    limefile_fd_init(&to, file->fd);
    int err = limefile_writer_new(&to.source, 0, &out.writer);
    if (!err) {
        progress_begin(&out.progress, "pack", total_of(p));
        for (size_t i = 0; good && i < p->list->count; i++) {
            struct pack_item item;
            packlist_get(p->list, i, &item);
            good = put_item(&out, &item);
        }
        progress_end(&out.progress);
        err = good ? limefile_writer_finish(out.writer, &size) : 0;
        limefile_writer_free(out.writer);
    }
    if (err)
        message_code(target, "write", err);
    return good && !err;
}

static bool is_packed(const struct packing *p, const char *path,
                      const struct limefile_output *out)
{
    int fd = openat(p->folder, path, O_PATH | O_CLOEXEC);
    bool is = fd >= 0 && limefile_output_is(out, fd);
    if (fd >= 0)
        close(fd);
    return is;
}

/* Nothing is created if the target is an input: it could be a part of a container in a mount.
 */
static int open_output(const struct packing *p, const char *target, struct limefile_output *out)
{
    int err = limefile_output_find(out, target);
    if (err)
        return err;
    bool is_input = p->list_name && is_packed(p, p->list_name, out);
    for (size_t i = 0; !is_input && i < p->list->count; i++) {
        struct pack_item item;
        packlist_get(p->list, i, &item);
        is_input = is_packed(p, item.path, out);
    }
    if (!is_input)
        return limefile_output_create(out, p->force);
    limefile_output_abort(out);
    return LIMEFILE_E_OUTPUT_INPUT;
}

int pack_to_file(const struct packing *p, const char *target)
{
    struct limefile_output out;
    int err = open_output(p, target, &out);
    if (err) {
        message_output(target, "create", err);
        return TOOL_BAD;
    }
    if (!put_all(p, &out, target)) {
        limefile_output_abort(&out);
        return TOOL_BAD;
    }
    err = limefile_output_commit(&out);
    if (err)
        message_output(target, "write", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}
